//! What the loop counts: exact histograms of the whole run, a histogram per second for
//! `latency.hlog`, and a snapshot that a terminal shows during the run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest response time that histograms distinguish: an hour, in nanoseconds. Longer ones count as
/// this.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds, exact to 3 significant digits (and to 64 ns). It grows with its
/// values.
pub fn histogram() -> Histogram<u64> {
    // Construction can't fail with these constant bounds.
    let mut histogram = Histogram::new_with_bounds(64, 4_096, 3).unwrap_or_else(|_| unreachable!("bounds are valid"));
    histogram.auto(true);
    histogram
}

/// Response time (from intended start), service time (from send) and send lag of one operation.
#[derive(Clone)]
pub struct Latencies {
    /// From the intended start.
    pub response: Histogram<u64>,
    /// From the send. Requests that were never sent are not included.
    pub service: Histogram<u64>,
    /// From the time it could be sent to the send: the generator's own delay.
    pub send_lag: Histogram<u64>,
    /// Requests that ended, by outcome number, including those without a time. Empty if they were
    /// not counted.
    pub(crate) outcomes: Vec<u64>,
}

impl Latencies {
    /// Empty histograms.
    pub fn new() -> Self {
        Self { response: histogram(), service: histogram(), send_lag: histogram(), outcomes: Vec::new() }
    }

    /// Empty histograms that take hardly any memory: to be merged, not to be counted in.
    pub fn nothing() -> Self {
        // Construction can't fail with these constant bounds.
        let coarse = || Histogram::new_with_bounds(1, 2, 0).unwrap_or_else(|_| histogram());
        Self { response: coarse(), service: coarse(), send_lag: coarse(), outcomes: Vec::new() }
    }

    /// Whether these are such histograms.
    pub fn is_nothing(&self) -> bool {
        self.response.sigfig() == 0
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        if self.is_nothing() && !other.is_nothing() {
            let outcomes = std::mem::take(&mut self.outcomes);
            *self = Self { outcomes, ..Self::new() };
        }
        // Adding can't fail: both resize themselves.
        let _ = self.response.add(&other.response);
        let _ = self.service.add(&other.service);
        let _ = self.send_lag.add(&other.send_lag);
        self.outcomes.resize(self.outcomes.len().max(other.outcomes.len()), 0);
        self.outcomes.iter_mut().zip(&other.outcomes).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Each with its name.
    pub fn into_parts(self) -> [(&'static str, Histogram<u64>); 3] {
        [("response", self.response), ("service", self.service), ("send_lag", self.send_lag)]
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts `ns` in `histogram`.
pub fn count(histogram: &mut Histogram<u64>, ns: i64) {
    // Recording can't fail below the bound: the histogram resizes itself.
    let _ = histogram.record((ns.max(0) as u64).min(HIGHEST_NS));
}

/// Length of a slice.
pub const SLICE: Duration = Duration::from_secs(1);

/// State of a run, for a live view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time since the start.
    pub elapsed: Duration,
    /// Name of the present phase.
    pub phase: String,
    /// What a search is doing, in words; empty without one.
    pub doing: String,
    /// Rate that this process offers now, requests (or sessions) per second; 0 in a closed model.
    pub rate: f64,
    /// Requests that were due so far.
    pub offered: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests on the wire.
    pub in_flight: usize,
    /// Requests due but waiting for a free connection.
    pub waiting: usize,
    /// Most requests that can be on the wire at once.
    pub slots: usize,
    /// Median response time of the last slice, milliseconds; none if nothing ended in it.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the last slice, milliseconds.
    pub p99_ms: Option<f64>,
}

/// A snapshot that the loop writes and others read.
#[derive(Clone, Default)]
pub struct Live(Arc<Mutex<Snapshot>>);

impl Live {
    /// The present state.
    pub fn get(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, snapshot: Snapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

/// One second of the load, for outputs that are written during the run. It is longer if a loop was
/// kept from running, and the last one is shorter. A request belongs to the second in which it
/// ended.
#[derive(Clone)]
pub struct Second {
    /// Its start, from the start of the load.
    pub from: Duration,
    /// Its end.
    pub to: Duration,
    /// Its start, nanoseconds since the Unix epoch.
    pub started_at: i64,
    /// Name of the phase in which it began.
    pub phase: String,
    /// Rate that this process offered at its start, requests (or sessions) per second; 0 in a closed model.
    pub rate: f64,
    /// Requests on the wire at its end.
    pub in_flight: usize,
    /// Requests due but waiting for a free connection at its end.
    pub waiting: usize,
    /// The requests that ended in it, by operation, in the scenario's order.
    pub operations: Vec<OperationSecond>,
}

/// The requests of one operation that ended in one second.
#[derive(Clone)]
pub struct OperationSecond {
    /// Its name.
    pub name: String,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed, by kind.
    pub failures: std::collections::BTreeMap<&'static str, u64>,
    /// Their times.
    pub latencies: Latencies,
}
