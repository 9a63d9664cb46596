//! What the loop counts: exact histograms of the whole run, histograms a second for `latency.hlog`, and a
//! snapshot that a terminal shows while it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest response time that is told apart: an hour, in nanoseconds. Longer ones count as this.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds, exact to 3 significant digits (and to 64 ns). It is as large as what it holds needs.
pub fn histogram() -> Histogram<u64> {
    // The bounds are constants for which construction can't fail.
    let mut histogram = Histogram::new_with_bounds(64, 4_096, 3).unwrap_or_else(|_| unreachable!("bounds are valid"));
    histogram.auto(true);
    histogram
}

/// Response time (from intended start), service time (from send) and send lag of one operation.
#[derive(Clone)]
pub struct Latencies {
    /// From the intended start.
    pub response: Histogram<u64>,
    /// From the send. Requests that were never sent are not in it.
    pub service: Histogram<u64>,
    /// From the moment it could be sent to the send: the generator's own delay.
    pub send_lag: Histogram<u64>,
    /// Requests that ended, by the number of their outcome, those without a time among them. Empty if nobody counted.
    pub(crate) outcomes: Vec<u64>,
}

impl Latencies {
    /// Empty ones.
    pub fn new() -> Self {
        Self { response: histogram(), service: histogram(), send_lag: histogram(), outcomes: Vec::new() }
    }

    /// Empty ones that take next to no room: nothing is to be counted in them, only added.
    pub fn nothing() -> Self {
        // The bounds are constants for which construction can't fail.
        let coarse = || Histogram::new_with_bounds(1, 2, 0).unwrap_or_else(|_| histogram());
        Self { response: coarse(), service: coarse(), send_lag: coarse(), outcomes: Vec::new() }
    }

    /// Whether they are such.
    pub fn is_nothing(&self) -> bool {
        self.response.sigfig() == 0
    }

    /// Adds another's.
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
    // A value below the bound can be recorded: the histogram resizes itself.
    let _ = histogram.record((ns.max(0) as u64).min(HIGHEST_NS));
}

/// Length of a slice.
pub const SLICE: Duration = Duration::from_secs(1);

/// How a run stands, for a live view.
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
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests on the wire.
    pub in_flight: usize,
    /// Requests due but waiting for a free connection.
    pub waiting: usize,
    /// Most requests that can be on the wire at once.
    pub lanes: usize,
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

/// A second of the load, for whoever writes it down while it runs. Where a loop was kept from running it is longer,
/// and the last one is shorter. A request belongs to the second in which it ended.
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
    /// What ended in it, by operation, in the scenario's order.
    pub operations: Vec<OperationSecond>,
}

/// What ended of one operation in one second.
#[derive(Clone)]
pub struct OperationSecond {
    /// Its name.
    pub name: String,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed, by kind.
    pub failures: std::collections::BTreeMap<&'static str, u64>,
    /// Their times.
    pub latencies: Latencies,
}
