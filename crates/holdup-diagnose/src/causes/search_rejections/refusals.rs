//! What nodes rejected, and what held their threads meanwhile.

use holdup_recording::metrics::Metric;
use holdup_recording::metrics::elasticsearch as metric;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Gauge, Missing, View, Window};

use crate::causes::{bytes, thousands};
use crate::strength::{CERTAIN, NONE, Strength, WEAK};

pub(super) const ENABLE: &str = "--watch elasticsearch://USER@HOST:PORT or opensearch://USER@HOST:PORT";

/// Fewer rejected tasks are chance.
const SOME: f64 = 10.0;

/// Share (0-1) of the tasks below which clients that send again do not notice.
const SHARE: f64 = 0.01;

/// In as many samples: fewer are one burst.
const LASTING: usize = 3;

/// The pool of writes, whose tasks the limit of indexing pressure rejects, too.
pub(super) const WRITES: [&str; 3] = ["write", "bulk", "index"];

/// What a node rejected for one reason.
pub(super) struct Refusals<'v> {
    pub(super) source: &'v str,
    pub(super) node: &'v str,
    /// The pool whose queue was full; none for the memory of writes in flight.
    pub(super) pool: Option<&'v str>,
    rejected: Counter,
    /// Tasks that it did meanwhile.
    completed: f64,
    /// From sample to sample in which some were rejected.
    pub(super) windows: Vec<Window>,
    /// Samples, whether some were rejected or not.
    samples: usize,
}

impl<'v> Refusals<'v> {
    /// Those of the node and reason with most; none if no node is watched.
    pub(super) fn worst(view: &View<'v>) -> Option<Self> {
        let of =
            |metric: Metric| view.index.series(metric.name, &[]).map(|((source, labels), _)| (source.as_str(), labels));
        let pools = of(metric::POOL_REJECTED).filter_map(|(source, labels)| {
            let pool = labels.get("pool")?;
            Self::read(view, source, labels.get("node")?, Some(pool))
        });
        // A node has a series for each stage, and all have the same labels but that.
        let stages = of(metric::INDEXING_PRESSURE_REJECTIONS);
        let pressure = stages.filter(|(_, labels)| labels.get("stage") == Some("primary"));
        let pressure = pressure.filter_map(|(source, labels)| Self::read(view, source, labels.get("node")?, None));
        pools.chain(pressure).max_by(|a, b| {
            let rank = |of: &Self| (of.strength().chance(), of.count());
            rank(a).0.total_cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1))
        })
    }

    fn read(view: &View<'v>, source: &'v str, node: &'v str, pool: Option<&'v str>) -> Option<Self> {
        let is_own = |of: &str| of == source;
        let labels = [("node", node), ("pool", pool.unwrap_or("write"))];
        let (counted, own) = match pool {
            Some(_) => (metric::POOL_REJECTED, &labels[..]),
            None => (metric::INDEXING_PRESSURE_REJECTIONS, &labels[..1]),
        };
        let rejected = view.counter_where(is_own, counted.name, own, ENABLE).ok()?;
        let completed = view.counter_where(is_own, metric::POOL_COMPLETED.name, &labels, ENABLE);
        let growths = view.growths(is_own, counted.name, own);
        let windows = growths.iter().filter(|growth| growth.delta > 0.0).map(|growth| growth.window).collect();
        let completed = completed.map_or(0.0, |completed| completed.delta);
        Some(Self { source, node, pool, rejected, completed, windows, samples: growths.len() })
    }

    /// Rejected tasks.
    pub(super) fn count(&self) -> f64 {
        self.rejected.delta
    }

    /// How much they say: a short burst is what clients send again.
    pub(super) fn strength(&self) -> Strength {
        let ratio = self.count() / (self.count() + self.completed).max(1.0);
        match self.count() {
            none if none <= 0.0 => NONE,
            some if some >= SOME && ratio >= SHARE && self.windows.len() >= LASTING.min(self.samples) => CERTAIN,
            _ => WEAK,
        }
    }

    /// Whether it is writes that were rejected.
    pub(super) fn are_writes(&self) -> bool {
        self.pool.is_none_or(|pool| WRITES.contains(&pool))
    }

    pub(super) fn gauge(&self, view: &View<'_>, metric: Metric) -> Result<Gauge, Missing> {
        let labels = [("node", self.node), ("pool", self.pool.unwrap_or_default())];
        let labels = if self.pool.is_some() { &labels[..] } else { &labels[..1] };
        view.gauge_where(|of| of == self.source, metric.name, labels, ENABLE)
    }

    /// What was rejected, and how full the queue or the memory was.
    pub(super) fn evidence(&self, view: &View<'_>) -> Evidence {
        let what = self.pool.map_or_else(|| "writes".to_owned(), |pool| format!("{pool} tasks"));
        let count = match self.count() {
            none if none <= 0.0 => format!("rejected no {what}"),
            some => format!(
                "rejected {} of {} {what}, in {} of {} samples",
                thousands(some),
                thousands(some + self.completed),
                self.windows.len(),
                self.samples
            ),
        };
        let text = format!("node {} {count}{}", self.node, self.level(view));
        self.rejected.evidence(thousands(self.count()), "0", text)
    }

    fn level(&self, view: &View<'_>) -> String {
        let max = |metric| self.gauge(view, metric).ok().map(|gauge| gauge.max);
        let of = |limit: Option<String>| limit.map_or_else(String::new, |limit| format!(" of {limit}"));
        if self.pool.is_none() {
            let (used, limit) = (max(metric::INDEXING_PRESSURE_BYTES), max(metric::INDEXING_PRESSURE_LIMIT_BYTES));
            return used.map_or_else(String::new, |used| {
                format!(": writes in flight took up to {}{}", bytes(used), of(limit.map(bytes)))
            });
        }
        let threads = max(metric::POOL_SIZE).or_else(|| max(metric::POOL_THREADS));
        let threads = threads.map_or_else(String::new, |threads| match threads {
            one if one <= 1.0 => " for its one thread".to_owned(),
            more => format!(" for its {} threads", thousands(more)),
        });
        let limit = of(max(metric::POOL_QUEUE_LIMIT).map(thousands));
        max(metric::POOL_QUEUE)
            .map_or_else(String::new, |queue| format!(": up to {}{limit} waited{threads}", thousands(queue)))
    }

    /// Milliseconds that a request waited in the queue while `completed` of them ended, by Little's law. A
    /// request with several tasks waits for them at once.
    pub(super) fn waited_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        let queue = self.pool.and_then(|_| self.gauge(view, metric::POOL_QUEUE).ok());
        let labels = [("node", self.node), ("pool", self.pool.unwrap_or_default())];
        let tasks = view.counter_where(|of| of == self.source, metric::POOL_COMPLETED.name, &labels, ENABLE);
        let rate = (completed / view.window.seconds().max(1e-9)).max(tasks.map_or(0.0, |tasks| tasks.rate()));
        queue.map_or(0.0, |queue| queue.mean / rate.max(1e-9) * 1e3)
    }

    /// The queue, and `cost`, what a request waited there.
    pub(super) fn queue_evidence(&self, view: &View<'_>, cost: &str) -> Result<Evidence, Missing> {
        let queue = self.gauge(view, metric::POOL_QUEUE)?;
        let mean = format!("{:.1}", queue.mean);
        let text = format!("{mean} tasks waited there on average, which cost a request {cost}");
        Ok(queue.evidence(mean, "near 0", text))
    }
}
