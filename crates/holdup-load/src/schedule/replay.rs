//! The arrivals of a recorded log: when each request came, and which of the distinct requests it
//! was.
//!
//! If [`super::Arrival::request`] is present, it is an index into [`Replay::requests`]. Then that
//! method and path are sent, without a body, as the scenario's operation number
//! [`ReplayedRequest::operation`], with that operation's headers. If it is absent, the log gives
//! only the timing, and the scenario's operations are sent by weight as in any other schedule.

use std::sync::Arc;

/// One of the distinct requests of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedRequest {
    /// `GET`, `HEAD`, …
    pub method: &'static str,
    /// Path and query as they are sent.
    pub path: Arc<str>,
    /// Index into [`Replay::operations`], which are the scenario's operations in their order.
    pub operation: u32,
}

/// A log as a schedule: the data that its arrivals refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The distinct requests; [`super::Arrival::request`] is an index into them. Empty if only the
    /// timing is replayed and the scenario's own operations are sent.
    pub requests: Arc<[ReplayedRequest]>,
    /// Names of the groups of requests. Empty if only the timing is replayed.
    pub operations: Vec<String>,
    /// Notes for the user about how the log was read: what was left out, sorted, or spread.
    pub notes: Vec<String>,
    /// When each arrival is due, nanoseconds from the first, ascending.
    times: Vec<u64>,
    /// The request of each arrival; empty if only the timing is replayed.
    which: Vec<u32>,
}

impl Replay {
    /// From a log's arrivals in order, with the request of each (none if only the timing counts).
    pub fn new(
        times: Vec<u64>,
        which: Vec<u32>,
        requests: Arc<[ReplayedRequest]>,
        operations: Vec<String>,
        notes: Vec<String>,
    ) -> Self {
        Self { requests, operations, notes, times, which }
    }

    pub(super) fn arrival(&self, number: u64) -> Option<(u64, Option<u32>)> {
        let index = usize::try_from(number).ok()?;
        Some((*self.times.get(index)?, self.which.get(index).copied()))
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Most arrivals in one of the seconds from the start.
    pub(super) fn peak_rate(&self) -> f64 {
        let seconds = self.times.chunk_by(|a, b| a / 1_000_000_000 == b / 1_000_000_000);
        seconds.map(<[u64]>::len).max().unwrap_or(0) as f64
    }

    /// Arrivals in the second around `at_ns`.
    pub(super) fn rate_at(&self, at_ns: u64) -> f64 {
        let until = |t: u64| self.times.partition_point(|&due| due < t);
        (until(at_ns.saturating_add(500_000_000)) - until(at_ns.saturating_sub(500_000_000))) as f64
    }
}
