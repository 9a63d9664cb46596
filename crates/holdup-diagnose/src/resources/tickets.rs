//! Tickets of MongoDB's storage engine: an operation needs one to read or to write, and waits in the
//! server's queue until one is free. By Little's law, that queue over the rate of requests is what a
//! request waits.

use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::percent;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Gauge, Missing, View};

use crate::case::Case;

pub use crate::resources::slowed_operations::MONGODB;

/// Of reads and of writes: operations in the queue, tickets in use, tickets left.
const KINDS: [(&str, [Metric; 3]); 2] = [
    (
        "read",
        [
            metrics::mongodb::SERVER_STATUS_GLOBAL_LOCK_CURRENT_QUEUE_READERS,
            metrics::mongodb::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_READ_OUT,
            metrics::mongodb::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_READ_AVAILABLE,
        ],
    ),
    (
        "write",
        [
            metrics::mongodb::SERVER_STATUS_GLOBAL_LOCK_CURRENT_QUEUE_WRITERS,
            metrics::mongodb::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_OUT,
            metrics::mongodb::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_AVAILABLE,
        ],
    ),
];

/// Tickets of one kind.
pub struct Tickets {
    /// `read` or `write`.
    pub kind: &'static str,
    queue: Gauge,
    out: Gauge,
    left: Gauge,
}

impl Tickets {
    /// Those of the kind with the longer queue.
    ///
    /// # Errors
    /// If the queue or the tickets were not recorded.
    pub fn measure(view: &View<'_>) -> Result<Self, Missing> {
        let level = |metric: Metric| view.gauge(metric.name, &[], MONGODB);
        let all = KINDS.map(|(kind, [queue, out, left])| {
            Ok::<_, Missing>(Self { kind, queue: level(queue)?, out: level(out)?, left: level(left)? })
        });
        let [reads, writes] = all;
        let (reads, writes) = (reads?, writes?);
        Ok(if reads.queue.mean > writes.queue.mean { reads } else { writes })
    }

    /// Mean number of operations in the queue.
    pub fn queued(&self) -> f64 {
        self.queue.mean
    }

    /// Share (0-1) of the samples in which none was left.
    pub fn gone_ratio(&self) -> f64 {
        1.0 - self.left.positive_ratio
    }

    /// Milliseconds that a request waits in the queue while `completed` of them end.
    pub fn request_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        self.queue.mean / (completed / view.window.seconds().max(1e-9)) * 1e3
    }

    /// The queue, and the tickets that were left.
    pub fn evidence(&self) -> [Evidence; 2] {
        let Self { kind, queue, out, left } = self;
        let gone = percent(self.gone_ratio());
        let text = format!(
            "no {kind} ticket was left in {gone} of the samples; {:.0} were in use on average, {:.0} at most",
            out.mean, out.max
        );
        let left = left.evidence(format!("none left in {gone} of the samples"), "some left in each", text);
        let text = format!("{:.1} operations waited to {kind} on average, {:.0} at most", queue.mean, queue.max);
        let queue = queue.evidence(format!("{:.1} on average", queue.mean), "0", text);
        [queue, left]
    }
}

/// Milliseconds of a request for which its operations were at work with a ticket: their time in the
/// server without the queue. What makes up most of that is why no ticket is left.
pub fn held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let took = operations_ms(&view, completed)?;
    let queued = Tickets::measure(&view).ok()?.request_ms(&view, completed);
    Some((took - queued).max(0.0))
}

/// Milliseconds of a request that its reads and writes took in the server.
pub fn operations_ms(view: &View<'_>, completed: f64) -> Option<f64> {
    let of = |kind: &str| view.counter(metrics::mongodb::OPERATION_TIME.name, &[("kind", kind)], MONGODB).ok();
    let all: Vec<f64> = ["reads", "writes"].into_iter().filter_map(of).map(|counter| counter.delta).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / completed * 1e3)
}
