//! A cloud's figures of a database's volume as response times: what its operations took, period by
//! period.

use std::collections::BTreeMap;

use holdup_recording::metrics;

use crate::Window;
use crate::time::requests::{ClientView, Second};
use crate::view::Index;

/// Latency and rate, of reads and of writes.
const DIRECTIONS: [(&str, &str); 2] = [
    (metrics::aws::READ_LATENCY.name, metrics::aws::READ_IOPS.name),
    (metrics::aws::WRITE_LATENCY.name, metrics::aws::WRITE_IOPS.name),
];

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    metric == metrics::aws::DISK_QUEUE_DEPTH.name
        || DIRECTIONS.iter().any(|(latency, rate)| [*latency, *rate].contains(&metric))
}

/// Periods of CloudWatch. With several instances, the first by name.
pub(super) fn seconds(index: &Index, whole: Window) -> ClientView {
    let depth = metrics::aws::DISK_QUEUE_DEPTH.name;
    let names = DIRECTIONS.iter().map(|(latency, _)| *latency).chain([depth]);
    let labelled = names.flat_map(|metric| index.series(metric, &[]));
    let Some(name) = labelled.filter_map(|((_, labels), _)| labels.get("db_instance")).min() else {
        return ClientView { seconds: Vec::new() };
    };
    // The series without a further label is the mean over the whole instance.
    let labels = [("db_instance", name)];
    let one = |metric: &str| {
        let of_it = index.series(metric, &labels).min_by_key(|((_, labels), _)| labels.iter().count());
        of_it.map(|(_, series)| series.clone()).unwrap_or_default()
    };
    let mut periods = by_latency(one);
    if periods.is_empty() {
        periods = by_queue(one);
    }
    let instants: Vec<i64> = periods.keys().copied().collect();
    let mut steps: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    let step = steps.get(steps.len() / 2).copied().unwrap_or(0);
    let second = |(at, (seconds, rate)): (i64, (f64, f64))| {
        let window = Window { from: at - step / 2, to: at + step / 2 };
        let offered = (rate * window.seconds()).round() as u64;
        let has_requests = offered > 0 && whole.contains(at);
        has_requests.then(|| Second::of_mean(window, seconds * 1e3, offered))
    };
    ClientView { seconds: periods.into_iter().filter_map(second).collect() }
}

/// Seconds that an operation took, and operations per second.
type Periods = BTreeMap<i64, (f64, f64)>;

/// A metric's samples in time order.
type Series = Vec<(i64, f64)>;

fn value_at(series: &[(i64, f64)], at: i64) -> Option<f64> {
    series.binary_search_by_key(&at, |(t, _)| *t).ok().map(|i| series[i].1)
}

/// The slower of reads and writes, because a commit waits for a write and a query for a read.
fn by_latency(one: impl Fn(&str) -> Series) -> Periods {
    let mut periods = Periods::new();
    for (latency, rate) in DIRECTIONS {
        let rates = one(rate);
        for (at, seconds) in one(latency) {
            let Some(rate) = value_at(&rates, at) else { continue };
            let slowest = periods.entry(at).or_default();
            if seconds > slowest.0 && rate > 0.0 {
                *slowest = (seconds, rate);
            }
        }
    }
    periods
}

/// Without latencies: the mean operation by Little's law, the operations in the queue divided by
/// those that end in a second.
fn by_queue(one: impl Fn(&str) -> Series) -> Periods {
    let [reads, writes] = DIRECTIONS.map(|(_, rate)| one(rate));
    let period = |(at, queued): (i64, f64)| {
        let rate = value_at(&reads, at)? + value_at(&writes, at)?;
        (rate > 0.0).then(|| (at, (queued / rate, rate)))
    };
    one(metrics::aws::DISK_QUEUE_DEPTH.name).into_iter().filter_map(period).collect()
}
