//! What held the threads of a node while it rejected tasks.

use holdup_recording::metrics::Metric;
use holdup_recording::metrics::elasticsearch as metric;
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

use super::refusals::{ENABLE, Refusals};
use crate::causes::percent;

/// What kept threads at work.
pub(super) struct Holder {
    pub(super) kind: Kind,
    pub(super) evidence: Evidence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Merges,
    Collections,
    Disk,
    Refreshes,
    Threads,
}

impl Refusals<'_> {
    /// What held the threads of the node while it rejected tasks, the most telling first.
    pub(super) fn holders(&self, view: &View<'_>) -> Vec<Holder> {
        let (Some(first), Some(last)) = (self.windows.first(), self.windows.last()) else { return Vec::new() };
        let view = View { window: Window { from: first.from, to: last.to }, ..*view };
        let timed = TIMED.iter().filter(|timed| self.are_writes() || !timed.of_writes);
        let mut holders: Vec<Holder> = timed.filter_map(|timed| self.holder(&view, timed)).collect();
        holders.extend(self.threads(&view).filter(|_| self.pool.is_some()));
        holders
    }

    fn holder(&self, view: &View<'_>, timed: &Timed) -> Option<Holder> {
        let own = [("node", self.node), timed.label.unwrap_or_default()];
        let own = if timed.label.is_some() { &own[..] } else { &own[..1] };
        let counter = view.counter_where(|of| of == self.source, timed.metric.name, own, ENABLE).ok()?;
        let ratio = counter.rate();
        let share = if ratio > 1.0 { format!("{ratio:.1} s a second") } else { percent(ratio) + " of the time" };
        let text = format!("meanwhile {}: {share}", timed.text);
        (ratio >= timed.least).then(|| Holder { kind: timed.kind, evidence: counter.evidence(share, "little", text) })
    }

    /// That its threads were all at work.
    fn threads(&self, view: &View<'_>) -> Option<Holder> {
        let active = self.gauge(view, metric::POOL_ACTIVE).ok()?;
        let size = self.gauge(view, metric::POOL_SIZE).or_else(|_| self.gauge(view, metric::POOL_THREADS)).ok()?.max;
        let text = format!("meanwhile {:.1} of the pool's {size:.0} threads were at work on average", active.mean);
        let evidence = active.evidence(format!("{:.1}", active.mean), "fewer than there are", text);
        (size > 0.0 && active.mean >= BUSY * size).then_some(Holder { kind: Kind::Threads, evidence })
    }
}

/// Threads at work in this share (0-1) of them are all that there are.
const BUSY: f64 = 0.8;

/// Time of something that holds up a node's threads.
struct Timed {
    kind: Kind,
    metric: Metric,
    label: Option<(&'static str, &'static str)>,
    /// Seconds a second from which it counts.
    least: f64,
    /// Whether it holds up writes alone.
    of_writes: bool,
    text: &'static str,
}

const TIMED: [Timed; 4] = [
    Timed {
        kind: Kind::Merges,
        metric: metric::INDEXING_THROTTLED_TIME,
        label: None,
        least: 0.1,
        of_writes: true,
        text: "shards indexed with one thread each, because merges were behind",
    },
    Timed {
        kind: Kind::Collections,
        metric: metric::COLLECTION_TIME,
        label: None,
        least: 0.1,
        of_writes: false,
        text: "its heap was collected",
    },
    Timed {
        kind: Kind::Disk,
        metric: metric::DISK_BUSY_TIME,
        label: None,
        least: 0.9,
        of_writes: false,
        text: "its disks had a request in flight",
    },
    Timed {
        kind: Kind::Refreshes,
        metric: metric::OPERATION_TIME,
        label: Some(("operation", "refresh")),
        least: 0.5,
        of_writes: true,
        text: "it refreshed shards, to show new documents",
    },
];
