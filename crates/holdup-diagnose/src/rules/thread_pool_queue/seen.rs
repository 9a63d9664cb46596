//! The queue as the pool's own tables and the sockets show it.

use crate::strength::{CERTAIN, FAIR, Strength};
use holdup_signals::Gauge;
use holdup_signals::evidence::Evidence;

/// The sources that saw the queue itself.
pub(super) struct QueueSources<'g> {
    /// Whether the server is known to have a pool.
    pub(super) handling: bool,
    pub(super) queue: Option<&'g Gauge>,
    pub(super) unread: Option<&'g Gauge>,
}

impl QueueSources<'_> {
    /// Mean number of waiting statements, from the pool's own tables or from the sockets. A statement
    /// is read by the thread that executes it, so what is queued is unread, too. More are unread if
    /// the group's listener executes one itself: until it ends, none of the others is put in the queue.
    pub(super) fn waiting(&self) -> Option<f64> {
        let unread = self.unread.filter(|u| self.handling && u.max > 0.0).map(|gauge| gauge.mean);
        let queue = self.queue.map(|gauge| gauge.mean);
        if self.is_empty_queue() { queue } else { queue.into_iter().chain(unread).reduce(f64::max) }
    }

    pub(super) fn is_empty_queue(&self) -> bool {
        self.queue.is_some_and(|q| q.max == 0.0)
    }

    pub(super) fn is_queue_seen(&self) -> bool {
        self.queue.is_some_and(|q| q.max > 0.0) || self.unread.is_some_and(|u| u.max > 0.0)
    }

    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let of = |gauge: &Gauge, what: &str| {
            gauge.evidence(
                format!("{:.1} on average, {:.0} at most", gauge.mean, gauge.max),
                "0",
                format!("{:.0} {what} on average, {:.0} at most", gauge.mean, gauge.max),
            )
        };
        let queue = self.queue.map(|q| of(q, "statements waited in the thread pool's queue"));
        let unread = self.unread.filter(|u| u.max > 0.0);
        let unread = unread.map(|u| of(u, "connections had an unread statement"));
        queue.into_iter().chain(unread).collect()
    }

    pub(super) fn weights(&self) -> Vec<Strength> {
        let queue = self.queue.map(|q| CERTAIN * q.positive_ratio);
        queue.into_iter().chain(self.unread.map(|u| FAIR * u.positive_ratio)).collect()
    }
}
