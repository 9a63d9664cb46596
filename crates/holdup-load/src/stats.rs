//! What the loop counts: exact histograms of the whole run, histograms a second for `latency.hlog`, and a
//! snapshot that a terminal shows while it runs.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use hdrhistogram::Histogram;
use holdup_recording::hlog::Interval;

/// Longest response time that is told apart: an hour, in nanoseconds. Longer ones count as this.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds, exact to 3 significant digits.
pub fn histogram() -> Histogram<u64> {
    // The bounds are constants for which construction can't fail.
    Histogram::new_with_bounds(1_000, HIGHEST_NS, 3).unwrap_or_else(|_| unreachable!("bounds are valid"))
}

/// Response time (from intended start), service time (from send) and send lag of one operation.
pub struct Latencies {
    /// From the intended start.
    pub response: Histogram<u64>,
    /// From the send. Requests that were never sent are not in it.
    pub service: Histogram<u64>,
    /// From the moment it could be sent to the send: the generator's own delay.
    pub send_lag: Histogram<u64>,
}

impl Latencies {
    /// Empty ones.
    pub fn new() -> Self {
        Self { response: histogram(), service: histogram(), send_lag: histogram() }
    }

    fn parts(&self) -> [(&'static str, &Histogram<u64>); 3] {
        [("response", &self.response), ("service", &self.service), ("send_lag", &self.send_lag)]
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts `ns` in `histogram`.
pub fn count(histogram: &mut Histogram<u64>, ns: i64) {
    histogram.saturating_record(ns.max(0) as u64);
}

/// Sends finished second-slices to whoever writes `latency.hlog`.
pub struct Slices {
    sender: Option<mpsc::Sender<Interval>>,
    tags: Vec<[String; 3]>,
    current: Vec<Latencies>,
    from: Duration,
}

/// Length of a slice.
pub const SLICE: Duration = Duration::from_secs(1);

impl Slices {
    /// Slices of `operations`, sent to `sender` if there is one.
    pub fn new(operations: &[String], sender: Option<mpsc::Sender<Interval>>) -> Self {
        // A tag of an interval log has no commas and no white space.
        let clean = |name: &str| name.replace(|c: char| c == ',' || c.is_whitespace() || c.is_control(), "_");
        Self {
            sender,
            tags: operations
                .iter()
                .map(|o| ["response", "service", "send_lag"].map(|p| format!("{}.{p}", clean(o))))
                .collect(),
            current: operations.iter().map(|_| Latencies::new()).collect(),
            from: Duration::ZERO,
        }
    }

    /// The present slice of an operation.
    pub fn of(&mut self, operation: usize) -> &mut Latencies {
        &mut self.current[operation]
    }

    /// Ends the present slice at `now` from the start if it is at least [`SLICE`] long, or `force`.
    pub fn roll(&mut self, now: Duration, force: bool) {
        if now < self.from + SLICE && !force {
            return;
        }
        for (latencies, tags) in self.current.iter_mut().zip(&self.tags) {
            for ((_, histogram), tag) in latencies.parts().iter().zip(tags) {
                if let (Some(sender), false) = (&self.sender, histogram.is_empty()) {
                    let length = now.saturating_sub(self.from);
                    let _ = sender.send(Interval {
                        tag: tag.clone(),
                        from: self.from,
                        length,
                        histogram: (*histogram).clone(),
                    });
                }
            }
            latencies.response.reset();
            latencies.service.reset();
            latencies.send_lag.reset();
        }
        self.from = now;
    }
}

/// How a run stands, for a live view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time since the start.
    pub elapsed: Duration,
    /// Name of the present phase.
    pub phase: String,
    /// Offered rate now, requests per second.
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
