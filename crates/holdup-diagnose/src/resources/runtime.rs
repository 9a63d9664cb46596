//! Pauses of the app's runtime, and what they cost a request.
//!
//! A process that stands still for the share `s` of the time, each time for `l`, delays a request
//! that takes `d` without that by `s * (d + l / 2)`: while the request runs it meets stops in
//! proportion to its length, and if it arrives in a stop it waits for half of that on average. This
//! assumes that requests arrive independently of the stops, that none makes progress in one, and
//! that the queue of a stop has gone before the next. It is a lower bound: calls that end in a stop
//! wait for its end as well, and the queue that a stop leaves is only counted where its speed is
//! known. In a process that runs one thread at a time, the rest of its CPU drains it: by
//! `1 / (1 - utilization)` (a fluid queue whose server has vacations).
//!
//! Go's scheduler counts the time that goroutines waited. It is shared among the requests.

use std::sync::Arc;

use holdup_recording::metrics;
use holdup_recording::words::{ms, percent};
use holdup_signals::app::runtime::{GoScheduler, Stop, Stops, go};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, app::timing};

use crate::case::Case;

/// Runtimes that run one thread at a time.
const ONE_THREAD: &[&str] = &["Python"];

/// Assumed most utilization (0-1) of such a process outside of its stops.
const MOST_BUSY: f64 = 0.9;

/// What holds up the code of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holdup {
    /// It stands still.
    Stop(Stop),
    /// Its goroutines wait for a thread that may run them.
    Scheduler,
}

/// The pauses of an episode, of the process where they cost most.
#[derive(Debug)]
pub struct RuntimePauses {
    /// The source.
    pub source: String,
    /// The runtime's name.
    pub runtime: &'static str,
    /// What holds it up.
    pub holdup: Holdup,
    /// Milliseconds that they add to a request, beyond those of the baseline window.
    pub explains_ms: f64,
    /// At most that much: as if each request were in the process all the time.
    pub most_ms: f64,
    /// Milliseconds of CPU per request that collectors computed with the app stopped, beyond those of the
    /// baseline window.
    pub collected_ms: f64,
    /// GOMAXPROCS, of a Go process that reports it.
    pub max_procs: Option<f64>,
    /// Milliseconds that they cost a request, by the time between two samples.
    pub intervals: Vec<(i64, i64, f64)>,
    /// What is not known of some process, with what would record it: then they clear nothing.
    pub unseen: Option<Missing>,
    /// Share (0-1) of the time and length in seconds of its stops.
    stops: (f64, Option<f64>),
    baseline_ms: Option<f64>,
    request_ms: f64,
    evidence: Evidence,
}

/// What stops cost a request, milliseconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    likely: f64,
    most: f64,
}

impl RuntimePauses {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If no runtime of the app reports its pauses.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = case.slow();
        let all = view.runtime_stops();
        let schedulers = view.go_schedulers();
        let unseen = all.as_ref().ok().and_then(|all| all.iter().find_map(|stops| unseen(stops, &schedulers)));
        let stops = all.as_ref().ok().and_then(|all| Self::by_stops(case, &view, all));
        let scheduler = Self::by_scheduler(case, &view, &schedulers)?;
        let mut found = match (stops, scheduler) {
            (Some(stops), Some(scheduler)) if scheduler.explains_ms > stops.explains_ms => scheduler,
            (Some(stops), _) => stops,
            (None, Some(scheduler)) => scheduler,
            (None, None) => return Err(all.err().unwrap_or_else(|| unrecorded(&view))),
        };
        found.unseen = unseen;
        found.collected_ms = collected_ms(case, &view, all.as_deref().unwrap_or_default());
        Ok(found)
    }

    /// By the process whose stops cost most; requests are shared among processes as these count
    /// them.
    fn by_stops(case: &Case<'_>, view: &View<'_>, all: &[Stops]) -> Option<Self> {
        let baseline_view = case.baseline();
        let before = baseline_view.as_ref().map(|baseline| baseline.runtime_stops().unwrap_or_default());
        let served: Vec<f64> = all.iter().map(|stops| served(view, stops)).collect();
        let all_served: f64 = served.iter().sum();
        let of_process = |(stops, served): (&Stops, &f64)| {
            let part = if all_served > 0.0 { served / all_served } else { 1.0 };
            let earlier = before.iter().flatten().find(|b| b.source == stops.source && b.identity == stops.identity);
            let now = cost(case, view, stops);
            let then = baseline_view.as_ref().zip(earlier).map(|(baseline, stops)| cost(case, baseline, stops));
            let evidence = stops.evidence(percent(stops.ratio()), "hardly any of the time", String::new());
            Self {
                source: stops.source.clone(),
                runtime: stops.runtime,
                holdup: Holdup::Stop(stops.stop),
                explains_ms: part * (now.likely - then.unwrap_or_default().likely).max(0.0),
                most_ms: part * (now.most - then.unwrap_or_default().most).max(0.0),
                collected_ms: 0.0,
                max_procs: None,
                intervals: intervals(case, view, stops),
                unseen: None,
                stops: (stops.ratio(), stops.length_s()),
                baseline_ms: then.map(|then| part * then.likely),
                request_ms: part * now.likely,
                evidence,
            }
        };
        let mut each: Vec<Self> = all.iter().zip(&served).map(of_process).collect();
        // Each request meets the stops of one process: theirs add up by the requests that they get.
        let sum = |of: fn(&Self) -> f64| each.iter().map(of).sum::<f64>();
        let whole = (all_served > 0.0).then(|| (sum(|p| p.explains_ms), sum(|p| p.most_ms), sum(|p| p.request_ms)));
        each.sort_by(|a, b| a.explains_ms.total_cmp(&b.explains_ms).then(a.most_ms.total_cmp(&b.most_ms)));
        let mut worst = each.pop()?;
        if let Some((explains_ms, most_ms, request_ms)) = whole {
            let scale = request_ms / worst.request_ms.max(1e-9);
            worst.intervals.iter_mut().for_each(|(.., ms)| *ms *= scale);
            (worst.explains_ms, worst.most_ms, worst.request_ms) = (explains_ms, most_ms, request_ms);
        }
        Some(worst)
    }

    fn by_scheduler(case: &Case<'_>, view: &View<'_>, all: &[GoScheduler]) -> Result<Option<Self>, Missing> {
        let Some(one) = all.iter().max_by(|a, b| a.waited_s.total_cmp(&b.waited_s)) else { return Ok(None) };
        let sum = |all: &[GoScheduler]| all.iter().map(|scheduler| scheduler.waited_s).sum::<f64>();
        let request_ms = sum(all) / case.completed_in(view.window)?.max(1.0) * 1e3;
        let baseline_ms = match case.baseline() {
            Some(baseline) => Some(sum(&baseline.go_schedulers()) / case.completed_in(baseline.window)?.max(1.0) * 1e3),
            None => None,
        };
        let explains_ms = (request_ms - baseline_ms.unwrap_or(0.0)).max(0.0);
        Ok(Some(Self {
            source: one.source.clone(),
            runtime: "Go",
            holdup: Holdup::Scheduler,
            explains_ms,
            most_ms: explains_ms,
            collected_ms: 0.0,
            max_procs: one.max_procs,
            intervals: vec![(view.window.from, view.window.to, request_ms)],
            unseen: None,
            stops: (0.0, None),
            baseline_ms,
            request_ms,
            evidence: one.evidence(ms(request_ms), "near 0 ms", String::new()),
        }))
    }

    /// Milliseconds that they cost a request that ended between `from` and `to`; 0 if no sample is
    /// about that time.
    pub fn mean_ms(&self, from: i64, to: i64) -> f64 {
        let overlap = |a: i64, b: i64| (b.min(to) - a.max(from)).max(0) as f64;
        let (ms, time) = self
            .intervals
            .iter()
            .fold((0.0, 0.0), |(ms, time), &(a, b, of)| (ms + of * overlap(a, b), time + overlap(a, b)));
        if time > 0.0 { ms / time } else { 0.0 }
    }

    /// What they cost a request, in words, with the pointer to their metric.
    pub fn evidence(&self) -> Evidence {
        let before = match self.baseline_ms {
            Some(baseline_ms) => format!(", against {} before", ms(baseline_ms)),
            None => String::new(),
        };
        let cost = format!("{} of a request{before}", ms(self.request_ms));
        let text = match self.holdup {
            Holdup::Scheduler => {
                let procs = self.max_procs.map_or_else(String::new, |n| format!(" (GOMAXPROCS is {n:.0})"));
                format!("runnable goroutines of {} waited for a thread{procs}: {cost}", self.source)
            }
            Holdup::Stop(stop) => {
                let (ratio, length_s) = self.stops;
                let length = length_s.map_or_else(String::new, |s| format!(", {} at a time", ms(s * 1e3)));
                let what = match stop {
                    Stop::EventLoop => "callbacks blocked the event loop of",
                    Stop::Collector => "the garbage collector stopped",
                    Stop::Safepoint => "all threads stood at safepoints in",
                };
                format!("{what} {} for {} of the time{length}: {cost}", self.source, percent(ratio))
            }
        };
        let expected = "a small part of the delay, unless it is the cause";
        Evidence {
            observed: format!("{} a request", ms(self.request_ms)),
            expected: expected.to_owned(),
            text,
            ..self.evidence.clone()
        }
    }
}

/// Milliseconds of a request for which collectors stopped the app, beyond those of the baseline window: at
/// least one thread computes meanwhile.
fn collected_ms(case: &Case<'_>, view: &View<'_>, all: &[Stops]) -> f64 {
    let of = |view: &View<'_>, all: &[Stops]| {
        let ratio: f64 = all.iter().filter(|stops| stops.stop == Stop::Collector).map(Stops::ratio).sum();
        let completed = case.completed_in(view.window).unwrap_or(0.0).max(1.0);
        ratio * view.window.seconds() / completed * 1e3
    };
    let before = case.baseline().map_or(0.0, |baseline| of(&baseline, &baseline.runtime_stops().unwrap_or_default()));
    (of(view, all) - before).max(0.0)
}

/// Requests that the process of `stops` counted in the window; 0 if it does not count them.
fn served(view: &View<'_>, stops: &Stops) -> f64 {
    let labels: Vec<(&str, &str)> = stops.identity.iter().collect();
    let metric = format!("{}_count", timing::HTTP_SERVER);
    view.counter_where(|of| of == stops.source, &metric, &labels, "").map_or(0.0, |counter| counter.delta)
}

/// What `stops` cost a request of the case.
fn cost(case: &Case<'_>, view: &View<'_>, stops: &Stops) -> Cost {
    let (ratio, length_ms) = (stops.ratio(), stops.length_s().unwrap_or(0.0) * 1e3);
    let slow_ms = case.degradation.as_ref().map_or(0.0, |found| found.slow_mean_ms);
    Cost {
        likely: stopped_ms(case, ratio, length_ms, utilization(view, stops)),
        most: ratio * (slow_ms + length_ms / (1.0 - MOST_BUSY)),
    }
}

/// Milliseconds of a request, by the formula above.
fn stopped_ms(case: &Case<'_>, ratio: f64, length_ms: f64, utilization: f64) -> f64 {
    let usual_ms = case.degradation.as_ref().map_or(0.0, |found| found.baseline_mean_ms);
    ratio * (usual_ms + length_ms / 2.0 / (1.0 - utilization))
}

fn intervals(case: &Case<'_>, view: &View<'_>, stops: &Stops) -> Vec<(i64, i64, f64)> {
    let utilization = utilization(view, stops);
    let of = stops.intervals.iter().map(|interval| {
        let length_ms = interval.length_s.unwrap_or(0.0) * 1e3;
        (interval.window.from, interval.window.to, stopped_ms(case, interval.ratio, length_ms, utilization))
    });
    of.collect()
}

/// Utilization (0-1) of a process that runs one thread at a time, outside of its stops; 0 for
/// others.
fn utilization(view: &View<'_>, stops: &Stops) -> f64 {
    if !ONE_THREAD.contains(&stops.runtime) {
        return 0.0;
    }
    let metric = metrics::app::PROCESS_CPU.name;
    let used = view.counter_where(|of| of == stops.source, metric, &[], "").map_or(0.0, |cpu| cpu.rate());
    let ratio = stops.ratio();
    ((used - ratio) / (1.0 - ratio).max(1e-9)).clamp(0.0, MOST_BUSY)
}

/// What the account of `stops` leaves open, if anything.
fn unseen(stops: &Stops, schedulers: &[GoScheduler]) -> Option<Missing> {
    let (what, enable) = match (stops.runtime, stops.stop) {
        (_, Stop::Safepoint | Stop::EventLoop) | ("JVM" | ".NET", Stop::Collector) => return None,
        ("Go", _) if schedulers.iter().any(|scheduler| scheduler.source == stops.source) => return None,
        ("Go", _) => ("for how long goroutines wait for a thread", go::ENABLE),
        ("Node.js", _) => (
            "how late the event loop is, beside collections",
            "--watch prometheus:http://APP/metrics with nodejs_eventloop_lag_mean_seconds or nodejs.eventloop.delay.mean",
        ),
        ("Python", _) => (
            "for how long threads wait for the interpreter's lock, beside collections: no runtime counts it",
            "--watch pid:N of the app, which shows a process that uses all of one CPU",
        ),
        _ => ("what else stops the app's runtime, beside collections", holdup_signals::app::runtime::ENABLE),
    };
    Some(Missing::new(what, enable))
}

fn unrecorded(view: &View<'_>) -> Missing {
    let what = format!("pauses of the app's runtime in {:.0} s", view.window.seconds());
    Missing::new(what, holdup_signals::app::runtime::ENABLE)
}
