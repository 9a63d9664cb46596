//! Charts of a cloud's volume: reads with writes on top, so that the sum shows as one line, beside
//! the limits that hold for the sum; operations in the same way; and the queue.

use holdup_recording::metrics;
use holdup_signals::host::flows::{Flow, FlowSource};
use holdup_signals::host::limits::{Documented, KnownLimits};
use holdup_signals::host::throttle::Unit;
use holdup_signals::view::Index;
use holdup_signals::{View, Window};

use super::{Chart, Plot, Points, Series, chart};

/// Reads, writes, and the unit of their limits.
type Directions = (&'static str, &'static str, Unit);

const BYTES: Directions = (
    metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND.name,
    metrics::aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name,
    Unit::Bytes,
);

const OPERATIONS: Directions = (metrics::aws::READ_IOPS.name, metrics::aws::WRITE_IOPS.name, Unit::Operations);

impl Plot<'_> {
    /// The charts; none without a cloud's figures.
    pub(super) fn volume(&self) -> Vec<Chart> {
        if self.samples(BYTES.0, &[]).is_empty() {
            return Vec::new();
        }
        let manifest = &self.recording.manifest;
        let window = Window { from: manifest.started_at, to: manifest.ended_at.unwrap_or(i64::MAX) };
        let index = Index::new(&self.recording.tables);
        let view = View { recording: self.recording, index: &index, window };
        let flows = view.flows().unwrap_or_default();
        let flow = flows.iter().find(|flow| flow.counted == FlowSource::Cloud);
        let known = view.known_limits();
        let queue = self.gauges(&[("in the queue", metrics::aws::DISK_QUEUE_DEPTH.name, &[])]);
        let bytes = self.stacked(BYTES, flow, &known);
        let operations = self.stacked(OPERATIONS, flow, &known);
        vec![
            chart("volume", "Volume: bytes read, and written on top", "bytes/s", bytes),
            chart("volume_operations", "Volume: reads, and writes on top", "operations/s", operations),
            chart("volume_queue", "Volume: operations in the queue", "operations", queue),
        ]
    }

    /// Reads, the sum of reads and writes where both are known, and the limits on the sum.
    fn stacked(&self, (read, write, unit): Directions, flow: Option<&Flow>, known: &KnownLimits) -> Vec<Series> {
        let of = |metric| self.mean_of_instance(metric);
        let (reads, writes) = (of(read), of(write));
        let sum = |(at, value): &(i64, f64)| {
            let i = writes.binary_search_by_key(at, |(at, _)| *at).ok()?;
            Some((*at, Some(value + writes[i].1)))
        };
        let sum: Points = reads.iter().filter_map(sum).collect();
        let Some((first, last)) = sum.first().zip(sum.last()).map(|(first, last)| (first.0, last.0)) else {
            return Vec::new();
        };
        let line = |name: &str, level: f64| self.series(name, vec![(first, Some(level)), (last, Some(level))]);
        let mut all = vec![
            self.series("read", reads.iter().map(|(at, value)| (*at, Some(*value))).collect()),
            self.series("read + write", sum),
        ];
        all.extend(limits(flow, known, unit).iter().map(|limit| line(&format!("limit: {}", limit.of), limit.limit)));
        all
    }

    /// The series of the first instance without a further label: its mean.
    fn mean_of_instance(&self, metric: &str) -> Vec<(i64, f64)> {
        let all = self.samples(metric, &[]);
        all.into_iter().min_by_key(|((_, labels), _)| labels.len()).map(|(_, points)| points).unwrap_or_default()
    }
}

/// The documented limit at which the flow stays, else what may be sustained and for a while.
fn limits(flow: Option<&Flow>, known: &KnownLimits, unit: Unit) -> Vec<Documented> {
    let levels = flow.map(|flow| flow.levels(unit)).unwrap_or_default();
    let mut found: Vec<Documented> = levels.iter().filter_map(|level| known.matching(unit, *level).cloned()).collect();
    if found.is_empty() {
        let (sustained, most) = known.smallest(unit);
        found.extend(sustained.into_iter().chain(most).cloned());
    }
    found.dedup_by(|a, b| a.of == b.of);
    found.sort_by(|a, b| a.limit.total_cmp(&b.limit));
    found.dedup_by(|a, b| a.of == b.of);
    found
}
