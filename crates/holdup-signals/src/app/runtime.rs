//! Pauses of an app's runtime, in one vocabulary: the share of time for which all code of a process
//! stood still, and how long at a time. The JVM, Go, .NET and V8 count the seconds; an event loop
//! reports how late it was; Go counts for how long goroutines were runnable and did not run.
//!
//! An interpreter's lock is not here: no runtime counts the wait for it. From outside it is a
//! process that uses all of one CPU.

pub mod go;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Labels;

use crate::Evidence;
use crate::view::stretches::{added, pairs, within};
use crate::{Missing, View, Window};
pub use go::GoScheduler;
pub use names::Stop;
use names::{COUNTERS, EVENT_LOOPS, EXPORTERS, StopCounter, identity, is_called, is_concurrent};

/// What to record for it.
pub const ENABLE: &str =
    "--watch prometheus:http://APP/metrics with its runtime's metrics: collector pauses, event loop lag";

/// Node.js measures how late a timer of this period is, and counts the period too, seconds: the
/// default of `monitorEventLoopDelay` and of both libraries.
const LOOP_PERIOD_S: f64 = 0.010;

/// A process: its source, and what tells it from others of that source.
type ProcessKey<'s> = (&'s str, Labels);

/// Series of one process.
type ProcessSeries<'s> = Vec<&'s [(i64, f64)]>;

/// The time between two samples, and how the process stood still in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoppedInterval {
    /// From sample to sample.
    pub window: Window,
    /// Share (0-1) of it for which the process stood still.
    pub ratio: f64,
    /// How long it stood still at a time, seconds; none if that was not counted.
    pub length_s: Option<f64>,
}

/// The stops of one process.
#[derive(Clone, Debug)]
pub struct Stops {
    /// The source, e.g. `prometheus:http://127.0.0.1:8080/metrics`.
    pub source: String,
    /// What tells it from other processes of that source.
    pub identity: Labels,
    /// `JVM`, `Go`, `Node.js`, `.NET`, `Python` or `app`.
    pub runtime: &'static str,
    /// What stops it.
    pub stop: Stop,
    /// Its intervals, in time order.
    pub intervals: Vec<StoppedInterval>,
    metric: String,
    window: Window,
}

impl Stops {
    /// Share (0-1) of the time for which it stood still.
    pub fn ratio(&self) -> f64 {
        let all: f64 = self.intervals.iter().map(|i| i.window.seconds()).sum();
        if all > 0.0 { self.stopped_s() / all } else { 0.0 }
    }

    /// Seconds for which it stood still.
    pub fn stopped_s(&self) -> f64 {
        self.intervals.iter().map(|i| i.ratio * i.window.seconds()).sum()
    }

    /// How long the stop is that a request meets, seconds: longer ones are met more often. None if
    /// the stops were not counted.
    pub fn length_s(&self) -> Option<f64> {
        let timed = || self.intervals.iter().filter_map(|i| Some((i.ratio * i.window.seconds(), i.length_s?)));
        let seconds: f64 = timed().map(|(seconds, _)| seconds).sum();
        (seconds > 0.0).then(|| timed().map(|(seconds, length)| seconds * length).sum::<f64>() / seconds)
    }

    /// Evidence that points at the counter or gauge.
    pub fn evidence(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = self.identity.clone().with("metric", self.metric.clone());
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }
}

impl View<'_> {
    /// The stops of each process whose runtime reports any. Of several accounts of one process,
    /// that which has most: a collection is also a safepoint, and makes an event loop late.
    ///
    /// # Errors
    /// If no runtime reports stops.
    pub fn runtime_stops(&self) -> Result<Vec<Stops>, Missing> {
        self.samples_readable()?;
        let mut most: BTreeMap<(String, Labels), Stops> = BTreeMap::new();
        for stops in self.event_loops().into_iter().chain(self.counted_stops()) {
            let key = (stops.source.clone(), stops.identity.clone());
            match most.get_mut(&key) {
                // An account of all stops is better than one of collections that is about as high.
                Some(known) if stops.stopped_s() <= known.stopped_s() => {}
                Some(known) => *known = stops,
                None => {
                    most.insert(key, stops);
                }
            }
        }
        if most.is_empty() {
            return Err(Missing::new("pauses of the app's runtime: of its collector, of its event loop", ENABLE));
        }
        Ok(most.into_values().collect())
    }

    /// Whether any app reports on its runtime.
    pub fn has_runtime(&self) -> bool {
        self.runtime_stops().is_ok() || !self.go_schedulers().is_empty()
    }

    /// Whether `source` translates for another program: requests do not meet its pauses.
    fn is_exporter(&self, source: &str) -> bool {
        EXPORTERS
            .iter()
            .flat_map(|end| self.metrics_called(end))
            .any(|metric| self.sources_of(metric).contains(&source))
    }

    /// The recorded metrics that are called `end`, with any prefix.
    fn metrics_called(&self, end: &str) -> Vec<&str> {
        let all = self.index.condensed.series.by_metric.keys().map(String::as_str);
        all.filter(|metric| is_called(metric, end)).collect()
    }

    /// The processes that have series of `metric`, each with its series.
    fn processes_of(&self, metric: &str) -> BTreeMap<ProcessKey<'_>, ProcessSeries<'_>> {
        let mut processes: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ((source, labels), points) in self.index.series(metric, &[]) {
            if !is_concurrent(labels) && !self.is_exporter(source) {
                processes.entry((source.as_str(), identity(labels))).or_default().push(&points[..]);
            }
        }
        processes
    }

    fn counted_stops(&self) -> Vec<Stops> {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut all = Vec::new();
        for counter in COUNTERS {
            for metric in self.metrics_called(counter.ends) {
                // `gc_pause_seconds_sum` ends the names of others, too.
                if taken.insert(metric.to_owned()) {
                    all.extend(self.stops_by(counter, metric));
                }
            }
        }
        all
    }

    fn stops_by(&self, counter: &StopCounter, metric: &str) -> Vec<Stops> {
        let stem = metric.strip_suffix(counter.ends).unwrap_or_default();
        let counts = counter.count_ends.map(|end| self.processes_of(&format!("{stem}{end}"))).unwrap_or_default();
        let of_process = |(key, seconds): (ProcessKey<'_>, ProcessSeries<'_>)| {
            let counts: BTreeMap<i64, f64> = counts.get(&key).map_or_else(BTreeMap::new, |series| {
                pairs(&added(series.iter().copied()), self.window).map(|(a, b)| (a.0, b.1 - a.1)).collect()
            });
            let interval = |((from, before), (to, after)): ((i64, f64), (i64, f64))| {
                let window = Window { from, to };
                let stopped = after - before;
                let count = counts.get(&from).copied().filter(|count| *count > 0.0 && stopped > 0.0);
                (stopped >= 0.0 && to > from).then(|| StoppedInterval {
                    window,
                    ratio: (stopped / window.seconds()).min(1.0),
                    length_s: count.map(|count| stopped / count),
                })
            };
            let intervals = pairs(&added(seconds), self.window).filter_map(interval).collect();
            self.stops(key, (counter.runtime, counter.stop), metric, intervals)
        };
        self.processes_of(metric).into_iter().filter_map(of_process).collect()
    }

    fn stops(
        &self,
        (source, identity): (&str, Labels),
        (runtime, stop): (&'static str, Stop),
        metric: &str,
        intervals: Vec<StoppedInterval>,
    ) -> Option<Stops> {
        let window = self.window;
        let (source, metric) = (source.to_owned(), metric.to_owned());
        (!intervals.is_empty()).then_some(Stops { source, identity, runtime, stop, intervals, metric, window })
    }

    fn event_loops(&self) -> Vec<Stops> {
        let mut all = Vec::new();
        for [mean_end, deviation_end, greatest_end] in EVENT_LOOPS {
            for metric in self.metrics_called(mean_end) {
                let stem = metric.strip_suffix(mean_end).unwrap_or_default();
                let [deviations, greatest] =
                    [deviation_end, greatest_end].map(|end| self.processes_of(&format!("{stem}{end}")));
                for (key, means) in self.processes_of(metric) {
                    let instants = |of: Option<&ProcessSeries<'_>>| -> BTreeMap<i64, f64> {
                        of.map_or_else(BTreeMap::new, |series| added(series.iter().copied()).into_iter().collect())
                    };
                    let lag = LoopLag {
                        means: added(means),
                        deviations: instants(deviations.get(&key)),
                        greatest: instants(greatest.get(&key)),
                    };
                    all.extend(self.stops(key, ("Node.js", Stop::EventLoop), metric, lag.intervals(self.window)));
                }
            }
        }
        all
    }
}

/// How late the event loop of a process was, by instant; each sample is about the time since the
/// one before.
struct LoopLag {
    means: Vec<(i64, f64)>,
    deviations: BTreeMap<i64, f64>,
    greatest: BTreeMap<i64, f64>,
}

impl LoopLag {
    /// A timer with a period fires late if a callback runs. Without one it measures the period, or
    /// nothing where a library subtracts that. What it measures beyond is the time for which the
    /// loop could not turn, out of the period and that.
    fn intervals(&self, window: Window) -> Vec<StoppedInterval> {
        let finite = || self.means.iter().filter(|(_, mean)| mean.is_finite());
        let idle_s = finite().map(|(_, mean)| *mean).fold(LOOP_PERIOD_S, f64::min);
        let seen = within(&self.means, window);
        let Some(first) = seen.first() else { return Vec::new() };
        let mut from = self.means.iter().rev().find(|(at, _)| *at < first.0).map(|(at, _)| *at);
        let mut intervals = Vec::new();
        for &(at, mean) in seen {
            let begun = from.replace(at);
            let (Some(from), true) = (begun, mean.is_finite()) else { continue };
            let late_s = (mean - idle_s).max(0.0);
            let length_s = self.deviations.get(&at).map(|deviation| {
                // The mean square over the mean: the stop that an instant meets.
                let length = (deviation * deviation + late_s * late_s) / late_s.max(1e-9);
                let greatest = self.greatest.get(&at).copied().unwrap_or(f64::INFINITY);
                length.min((greatest - idle_s).max(late_s))
            });
            intervals.push(StoppedInterval {
                window: Window { from, to: at },
                ratio: late_s / (late_s + LOOP_PERIOD_S),
                length_s: length_s.filter(|length| length.is_finite()),
            });
        }
        intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    const APP: &str = "prometheus:app";

    fn stops(made: &SyntheticRecording) -> Vec<(&'static str, Stop, f64, Option<f64>)> {
        let round = |value: f64| (value * 1e3).round() / 1e3;
        made.seen(|view| {
            let all = view.runtime_stops().unwrap_or_default();
            all.iter().map(|s| (s.runtime, s.stop, round(s.ratio()), s.length_s().map(round))).collect()
        })
    }

    /// `stopped` of each second in pauses of `length`, as a summary called `stem`.
    fn summary(
        made: SyntheticRecording,
        stem: &str,
        labels: &[(&str, &str)],
        stopped: f64,
        length: f64,
    ) -> SyntheticRecording {
        made.counter(APP, &format!("{stem}_sum"), labels, stopped).counter(
            APP,
            &format!("{stem}_count"),
            labels,
            stopped / length,
        )
    }

    #[test]
    fn every_runtime_has_its_own_words_for_a_pause() {
        let new = || SyntheticRecording::new(12);
        for (stem, runtime) in [
            ("jvm_gc_pause_seconds", "JVM"),
            ("jvm_gc_duration_seconds", "JVM"),
            ("jvm_gc_collection_seconds", "JVM"),
            ("go_gc_duration_seconds", "Go"),
            ("nodejs_gc_duration_seconds", "Node.js"),
            ("shop_nodejs_gc_duration_seconds", "Node.js"),
            ("v8js_gc_duration_seconds", "Node.js"),
            ("hub_python_gc_pause_seconds", "Python"),
            ("worker_gc_pause_seconds", "app"),
        ] {
            let seen = stops(&summary(new(), stem, &[], 0.2, 0.05));
            assert_eq!(seen, [(runtime, Stop::Collector, 0.2, Some(0.05))], "{stem}");
        }
        let dotnet = new().counter(APP, "dotnet_gc_pause_time_seconds_total", &[], 0.1);
        assert_eq!(stops(&dotnet), [(".NET", Stop::Collector, 0.1, None)]);
        // Collections of Python's client are counted without their time.
        let python = new().counter(APP, "python_gc_collections_total", &[("generation", "2")], 3.0);
        assert!(python.seen(|view| view.runtime_stops().is_err() && !view.has_runtime()));
        assert_eq!(stops(&summary(new(), "msgc_pause_seconds", &[], 0.2, 0.05)), []);
    }

    #[test]
    fn concurrent_collections_are_not_pauses() {
        let new = || SyntheticRecording::new(12);
        for (label, concurrent, pauses) in [
            ("gc", "ZGC Cycles", "ZGC Pauses"),
            ("gc", "Shenandoah Cycles", "Shenandoah Pauses"),
            ("gc", "ConcurrentMarkSweep", "ParNew"),
            ("gc", "ZGC Major Cycles", "G1 Concurrent GC"),
        ] {
            let made = summary(new(), "jvm_gc_collection_seconds", &[(label, concurrent)], 0.9, 0.9);
            let made = summary(made, "jvm_gc_collection_seconds", &[(label, pauses)], 0.01, 0.001);
            assert_eq!(stops(&made), [("JVM", Stop::Collector, 0.01, Some(0.001))], "{concurrent}");
        }
        let action = |action: &'static str| [("jvm_gc_action", action), ("jvm_gc_name", "ZGC")];
        let made = summary(new(), "jvm_gc_duration_seconds", &action("end of GC cycle"), 0.9, 0.9);
        let made = summary(made, "jvm_gc_duration_seconds", &action("end of GC pause"), 0.02, 0.002);
        assert_eq!(stops(&made), [("JVM", Stop::Collector, 0.02, Some(0.002))]);
    }

    #[test]
    fn one_stop_that_is_told_twice_is_one() {
        let made =
            summary(SyntheticRecording::new(12), "jvm_gc_pause_seconds", &[("action", "end of minor GC")], 0.2, 0.05);
        let made = summary(made, "jvm_gc_pause_seconds", &[("action", "end of major GC")], 0.1, 0.05);
        let both = summary(made.clone(), "jvm_safepoint_seconds", &[], 0.32, 0.04);
        assert_eq!(stops(&made), [("JVM", Stop::Collector, 0.3, Some(0.05))]);
        assert_eq!(stops(&both), [("JVM", Stop::Safepoint, 0.32, Some(0.04))]);
        // Two processes of one receiver are two.
        let shop = |name: &'static str| [("service_name", name)];
        let two = summary(SyntheticRecording::new(12), "jvm_gc_duration_seconds", &shop("a"), 0.2, 0.05);
        assert_eq!(stops(&summary(two, "jvm_gc_duration_seconds", &shop("b"), 0.1, 0.05)).len(), 2);
    }

    /// What Node.js 20 measured with 50 ms of work every 200 ms, and before without.
    #[test]
    fn a_late_event_loop_is_late_beyond_the_period_of_its_timer() {
        let made = |stem: &str| {
            let name = |what: &str| format!("{stem}_{what}_seconds");
            let by = |idle: f64, busy: f64| move |second: i64| if second < 5 { idle } else { busy };
            SyntheticRecording::new(12)
                .counted(APP, &name("mean"), &[], by(0.010_09, 0.012_78))
                .counted(APP, &name("stddev"), &[], by(0.000_07, 0.011_39))
                .counted(APP, &name("max"), &[], by(0.010_9, 0.059_4))
        };
        for stem in ["nodejs_eventloop_lag", "shop_nodejs_eventloop_lag", "nodejs_eventloop_delay"] {
            let (runtime, stop, ratio, length) = made(stem).seen(|view| {
                let busy = View { window: Window { from: 6_000_000_000, to: 13_000_000_000 }, ..*view };
                let stops = busy.runtime_stops().unwrap().remove(0);
                (stops.runtime, stops.stop, stops.ratio(), stops.length_s().unwrap())
            });
            assert_eq!((runtime, stop), ("Node.js", Stop::EventLoop));
            assert!((0.18..0.25).contains(&ratio) && (0.035..0.06).contains(&length), "{ratio} {length}");
        }
        let idle = made("nodejs_eventloop_lag").seen(|view| {
            let baseline = View { window: Window { from: 0, to: 4_500_000_000 }, ..*view };
            baseline.runtime_stops().unwrap()[0].ratio()
        });
        assert!(idle < 0.02, "{idle}");
    }
}
