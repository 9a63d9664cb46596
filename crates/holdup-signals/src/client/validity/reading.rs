//! The generator's own samples, loop by loop: the growth of its counters in a slice. Recordings
//! from before there were several loops have samples without a loop label.

use holdup_recording::metrics;

use crate::Window;
use crate::view::Index;
use crate::view::stretches::{pairs, within};

/// A slice ends at the first sample that is this long (nanoseconds) after the one before.
const LEAST_NS: i64 = 750_000_000;

/// The load left after the last whole slice is a slice too if it is at least this long
/// (nanoseconds).
const REST_NS: i64 = 500_000_000;

/// One counter or gauge of one loop, or of the process: samples in order of time.
pub struct LoopSeries(Vec<(i64, f64)>);

impl LoopSeries {
    /// The reading of a counter of the whole process, which existed before the load; none if not
    /// recorded.
    pub fn of_process(index: &Index, metric: &str) -> Option<Self> {
        let (_, samples) = index.series(metric, &[]).next()?;
        Some(Self(samples.clone()))
    }

    /// The reading of a metric of the loop with `label`, whose counters are zero when the load
    /// begins.
    fn of_loop(index: &Index, metric: &str, label: Option<&str>, begun: i64) -> Option<Self> {
        let mut series = index.series(metric, &[]).filter(|((_, labels), _)| labels.get("loop") == label);
        let (_, samples) = series.next()?;
        let mut points = Vec::with_capacity(samples.len() + 1);
        if samples.first()?.0 > begun && metric.ends_with("_total") {
            points.push((begun, 0.0));
        }
        points.extend(samples);
        Some(Self(points))
    }

    fn pairs(&self, window: Window) -> impl Iterator<Item = ((i64, f64), (i64, f64))> {
        pairs(&self.0, window)
    }

    /// Growth of a counter in `window`; none without two samples.
    pub fn growth(&self, window: Window) -> Option<f64> {
        self.pairs(window).map(|(a, b)| (b.1 - a.1).max(0.0)).reduce(|sum, more| sum + more)
    }

    /// Seconds that [`Self::growth`] covers.
    pub fn seconds(&self, window: Window) -> Option<f64> {
        self.pairs(window).map(|(a, b)| (b.0 - a.0) as f64 / 1e9).reduce(|sum, more| sum + more).filter(|s| *s > 0.0)
    }

    /// Greatest value of a gauge whose samples describe the time before them; 0 without any.
    pub fn greatest(&self, window: Window) -> f64 {
        let until = Window { from: window.from.saturating_add(1), to: window.to.saturating_add(1) };
        within(&self.0, until).iter().map(|(_, v)| *v).fold(0.0, f64::max)
    }
}

/// The readings of one loop.
pub struct Loop {
    /// Its label; empty if it has none.
    pub label: String,
    /// Seconds on a CPU.
    pub cpu: Option<LoopSeries>,
    /// Seconds not asleep.
    pub busy: Option<LoopSeries>,
    /// Seconds runnable, but waiting for a CPU.
    pub run_queue: Option<LoopSeries>,
    /// Send lag, 99th percentile of the second before, seconds. None if it was never computed.
    pub lag: Option<LoopSeries>,
    /// Requests that were due.
    pub offered: Option<LoopSeries>,
    /// Requests that ended, successfully or not.
    pub ended: Option<LoopSeries>,
    /// Requests that found every connection busy.
    pub capped: Option<LoopSeries>,
}

impl Loop {
    /// Every loop with samples, of a load that began at `begun`.
    pub fn all(index: &Index, begun: i64) -> Vec<Self> {
        let labels = index.series(metrics::load::BUSY.name, &[]);
        let labels: Vec<Option<String>> =
            labels.map(|((_, labels), _)| labels.get("loop").map(str::to_owned)).collect();
        let loops = labels.into_iter().map(|label| {
            let read = |metric: &str| LoopSeries::of_loop(index, metric, label.as_deref(), begun);
            Self {
                cpu: read(metrics::load::CPU.name),
                busy: read(metrics::load::BUSY.name),
                run_queue: read(metrics::load::RUN_QUEUE.name),
                lag: read(metrics::load::SEND_LAG_P99.name),
                offered: read(metrics::load::REQUESTS_OFFERED.name),
                ended: both(read(metrics::load::REQUESTS_COMPLETED.name), read(metrics::load::REQUESTS_FAILED.name)),
                capped: read(metrics::load::REQUESTS_CAPPED.name),
                label: label.unwrap_or_default(),
            }
        });
        loops.collect()
    }

    /// Bounds of the slices of `span`: at samples, about a second apart, where there are any.
    pub fn edges(&self, span: Window) -> Vec<i64> {
        let Some(LoopSeries(points)) = &self.busy else { return Vec::new() };
        let mut edges: Vec<i64> = Vec::new();
        for &(at, _) in points {
            if at >= span.from && edges.last().is_none_or(|last| at >= last + LEAST_NS) {
                edges.push(at);
            }
            if at >= span.to {
                break;
            }
        }
        let Some(&end) = points.iter().map(|(at, _)| at).rev().find(|at| **at > span.from) else { return Vec::new() };
        // The last samples come with the last response, or just before the schedule ends.
        let end = if end > span.to - REST_NS { span.to } else { end };
        while edges.len() > 1 && edges.last().is_some_and(|last| *last > end - REST_NS) {
            edges.pop();
        }
        if edges.last().is_some_and(|last| *last < end) {
            edges.push(end);
        }
        edges
    }
}

/// The sum of two counters that were sampled together.
fn both(a: Option<LoopSeries>, b: Option<LoopSeries>) -> Option<LoopSeries> {
    let (LoopSeries(a), LoopSeries(b)) = (a?, b?);
    Some(LoopSeries(a.iter().zip(&b).filter(|(a, b)| a.0 == b.0).map(|(a, b)| (a.0, a.1 + b.1)).collect()))
}
