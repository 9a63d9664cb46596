//! Response time by the server's counters of statements. A service sends the same statements all
//! the time, so the time per call of one digest says how the database answers, whatever the mix:
//! each interval is compared with what the same calls usually take. A batch job's own long
//! statements do not delay others, so only digests count that are called most of the time.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics;

use crate::Window;
use crate::time::distribution::Distribution;
use crate::time::requests::{ClientView, Second};
use crate::view::Index;

/// A digest belongs to the service if it was called in this share (0-1) of the intervals.
const CALLED: f64 = 0.5;

/// Shortest interval, nanoseconds: shorter ones have too few calls of each digest.
const LEAST_NS: i64 = 900_000_000;

/// One digest's calls and seconds by interval.
#[derive(Default)]
struct Digest {
    by_interval: BTreeMap<usize, (f64, f64)>,
}

impl Digest {
    fn calls(&self) -> f64 {
        self.by_interval.values().map(|(calls, _)| calls).sum()
    }

    /// Its usual time per call, seconds: the median over the intervals.
    fn usual_s(&self) -> f64 {
        let each = self.by_interval.values().map(|(calls, seconds)| (seconds / calls, 1));
        Distribution::from_counts(each).quantile(0.5).unwrap_or(0.0)
    }
}

/// Intervals between reads of the counters in `whole`: the mean time of a statement, as if the mix
/// were always that of all intervals. Of several servers the one with most calls counts. Empty
/// without counters by digest.
pub(super) fn view(index: &Index, whole: Window) -> ClientView {
    let sources: BTreeSet<&str> = index.condensed.totals.iter().map(|total| total.source.as_str()).collect();
    let views = sources.into_iter().map(|source| of_source(index, source, whole));
    let calls = |view: &ClientView| view.seconds.iter().map(|second| second.offered).sum::<u64>();
    views.max_by_key(calls).unwrap_or_default()
}

fn of_source(index: &Index, source: &str, whole: Window) -> ClientView {
    let totals = || index.condensed.totals.iter().filter(|total| total.source == source);
    let bounds = bounds(totals().flat_map(|total| total.readings.iter().map(|reading| reading.observed_at)), whole);
    let mut digests: Vec<Digest> = Vec::new();
    for total in totals() {
        let mut digest = Digest::default();
        for pair in total.readings.windows(2) {
            let (calls, ns) = (pair[1].calls - pair[0].calls, pair[1].duration_ns - pair[0].duration_ns);
            let middle = pair[0].observed_at + (pair[1].observed_at - pair[0].observed_at) / 2;
            // A fall means a restart, or that the digest left the server's table and came back.
            if calls <= 0 || ns < 0 || !whole.contains(middle) {
                continue;
            }
            let interval = bounds.partition_point(|at| *at <= middle);
            if interval > 0 && interval < bounds.len() {
                let sum = digest.by_interval.entry(interval - 1).or_default();
                *sum = (sum.0 + calls as f64, sum.1 + ns as f64 * 1e-9);
            }
        }
        digests.push(digest);
    }
    seconds(digests, &bounds)
}

/// The mean time in each interval, as if the mix of `digests` were always that of all intervals.
fn seconds(mut digests: Vec<Digest>, bounds: &[i64]) -> ClientView {
    let least = CALLED * bounds.len().saturating_sub(1) as f64;
    digests.retain(|digest| !digest.by_interval.is_empty() && digest.by_interval.len() as f64 >= least);
    let usual: Vec<f64> = digests.iter().map(Digest::usual_s).collect();
    let all_calls: f64 = digests.iter().map(Digest::calls).sum();
    let all_usual_s: f64 = digests.iter().zip(&usual).map(|(digest, usual)| digest.calls() * usual).sum();
    let second = |interval: usize| {
        let (mut calls, mut took_s, mut usual_s) = (0.0, 0.0, 0.0);
        for (digest, usual) in digests.iter().zip(&usual) {
            let (of_calls, of_s) = digest.by_interval.get(&interval).copied().unwrap_or_default();
            calls += of_calls;
            took_s += of_s;
            usual_s += of_calls * usual;
        }
        let ms = took_s / usual_s * all_usual_s / all_calls * 1e3;
        let window = Window { from: bounds[interval], to: bounds[interval + 1] };
        (usual_s > 0.0 && ms.is_finite()).then(|| Second::of_mean(window, ms, calls as u64))
    };
    ClientView { seconds: (0..bounds.len().saturating_sub(1)).filter_map(second).collect() }
}

/// The same for MongoDB, which counts by kind of operation. Commands are left out: drivers and
/// monitors send most of them, not the service.
pub(super) fn of_documents(index: &Index, whole: Window) -> ClientView {
    const KINDS: [&str; 2] = ["reads", "writes"];
    let counters = [metrics::mongodb::OPERATIONS.name, metrics::mongodb::OPERATION_TIME.name];
    let series = |source: &str, metric: &str, kind: &str| {
        let labels = [("kind", kind)];
        let found = index.series(metric, &labels).find(|((of, _), _)| of == source);
        found.map(|(_, series)| series.clone()).unwrap_or_default()
    };
    let sources: BTreeSet<&str> = index.series(counters[0], &[]).map(|((source, _), _)| source.as_str()).collect();
    let views = sources.into_iter().map(|source| {
        let of = KINDS.map(|kind| counters.map(|metric| series(source, metric, kind)));
        let bounds = bounds(of.iter().flat_map(|[calls, _]| calls.iter().map(|(at, _)| *at)), whole);
        let digest = |[calls, took]: &[Vec<(i64, f64)>; 2]| {
            let at = |series: &[(i64, f64)], at: i64| Some(series.get(series.partition_point(|(t, _)| *t < at))?.1);
            let mut digest = Digest::default();
            for (interval, ends) in bounds.windows(2).enumerate() {
                let grown = |series: &[(i64, f64)]| Some(at(series, ends[1])? - at(series, ends[0])?);
                // A fall means a restart.
                if let Some((calls, seconds)) = grown(calls).zip(grown(took)).filter(|(n, s)| *n >= 1.0 && *s >= 0.0) {
                    digest.by_interval.insert(interval, (calls, seconds));
                }
            }
            digest
        };
        seconds(of.iter().map(digest).collect(), &bounds)
    });
    let calls = |view: &ClientView| view.seconds.iter().map(|second| second.offered).sum::<u64>();
    views.max_by_key(calls).unwrap_or_default()
}

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    [metrics::mongodb::OPERATIONS.name, metrics::mongodb::OPERATION_TIME.name].contains(&metric)
}

/// Ends of the intervals: the instants of the reads, as near to each other as [`LEAST_NS`].
fn bounds(instants: impl Iterator<Item = i64>, whole: Window) -> Vec<i64> {
    let instants: BTreeSet<i64> = instants.filter(|at| whole.contains(*at)).collect();
    let mut bounds: Vec<i64> = Vec::new();
    for at in instants {
        if bounds.last().is_none_or(|last| at - last >= LEAST_NS) {
            bounds.push(at);
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;
    use crate::time::episodes;

    /// 100 reads a second of `ms`, and from 25 s on a report of 10 s.
    fn seen(ms: impl Fn(i64) -> i64) -> ClientView {
        let total = |second: i64| (1..=second).map(&ms).sum::<i64>() * 100;
        let report = |second: i64| ((second - 25).max(0), 10_000 * (second - 25).max(0));
        let made = SyntheticRecording::new(40)
            .digest("SELECT item", |second| (100 * second, total(second), 0, 0, 0))
            .digest("SELECT report", |second| (report(second).0, report(second).1, 0, 0, 0));
        let index = Index::new(&made.recording().tables);
        view(&index, Window { from: 0, to: i64::MAX })
    }

    #[test]
    fn statements_that_take_longer_are_an_episode_and_a_report_is_none() {
        let steady = seen(|_| 2);
        assert_eq!((steady.seconds.len(), steady.seconds[30].offered), (40, 100));
        assert!(episodes::find(&steady.seconds).is_empty());
        let slower = seen(|second| if (15..30).contains(&second) { 7 } else { 2 });
        let found = episodes::find(&slower.seconds);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].ratio() - 3.5).abs() < 0.1 && found[0].window.seconds() >= 13.0, "{found:?}");
    }

    #[test]
    fn operations_of_mongodb_that_take_longer_are_an_episode() {
        let seen = |reads_ms: fn(i64) -> f64| {
            let total = move |second: i64| (1..=second).map(reads_ms).sum::<f64>() * 0.2;
            let made = [("reads", 200.0), ("writes", 50.0), ("commands", 900.0)]
                .into_iter()
                .fold(SyntheticRecording::new(40), |made, (kind, rate)| {
                    made.counter("mongodb://db", "mongodb_operations_total", &[("kind", kind)], rate)
                });
            let took = "mongodb_operation_time_seconds_total";
            let made = made
                .counted("mongodb://db", took, &[("kind", "reads")], total)
                .counter("mongodb://db", took, &[("kind", "writes")], 0.1)
                .counter("mongodb://db", took, &[("kind", "commands")], 90.0);
            of_documents(&Index::new(&made.recording().tables), Window { from: 0, to: i64::MAX })
        };
        let slower = seen(|second| if (15..30).contains(&second) { 22.0 } else { 2.0 });
        assert_eq!((slower.seconds.len(), slower.seconds[35].offered), (40, 250));
        let found = episodes::find(&slower.seconds);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].level_ms - 18.0).abs() < 0.5 && (found[0].baseline_ms - 2.0).abs() < 0.1, "{found:?}");
        assert!(episodes::find(&seen(|_| 2.0).seconds).is_empty());
    }

    /// More of a slow statement is another mix, no slower database.
    #[test]
    fn another_mix_is_not_slower() {
        let made = SyntheticRecording::new(40)
            .digest("SELECT quick", |second| (100 * second, 100 * second, 0, 0, 0))
            .digest("SELECT slow", |second| {
                let calls = 2 * second + 80 * (second - 20).max(0);
                (calls, 50 * calls, 0, 0, 0)
            });
        let seen = view(&Index::new(&made.recording().tables), Window { from: 0, to: i64::MAX });
        assert!(episodes::find(&seen.seconds).is_empty());
    }
}
