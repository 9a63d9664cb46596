//! Processes of the service that something stopped from outside: SIGSTOP, a debugger, a paused
//! container. A stopped thread is in state T (or t, under a debugger), or sleeps in the kernel's
//! freezer. No thread stops itself so, and a process at work or idle has none.
//!
//! What stops cost is counted and not modelled: the requests in flight at stopped instants. By
//! Little's law their mean number over all instants, divided by the rate, is what each lost. Without
//! single requests it is bounded by the slowest: a request that arrives as a stop begins waits for
//! all of it, and one that arrives at any time in it for half of that on average.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdup_recording::{Labels, metrics};
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

use crate::case::Case;
use crate::failures;

/// What to record to see the states of threads.
const ENABLE: &str = "--watch pid:N for the app and the database";

/// States of a stopped thread: by a signal, and by a debugger.
const STOPPED: &[&str] = &["T", "t"];

/// Where the kernel keeps the threads of a frozen group: they count as asleep.
const FREEZERS: &[&str] = &["do_freezer_trap", "__refrigerator"];

/// A process counts as stopped if this share (0-1) of its threads are: each stops when it gets to
/// it, and a look at many threads takes a while.
const MOSTLY: f64 = 0.5;

/// Stopped again and again: seen so at this many instants …
const OFTEN: usize = 2;

/// … that are this share (0-1) of all.
const OFTEN_RATIO: f64 = 0.05;

/// The watched process that was stopped most.
#[derive(Debug)]
pub struct Stops {
    /// Its name.
    pub name: String,
    /// Share (0-1) of the instants at which it was stopped.
    pub ratio: f64,
    /// The same in the baseline window.
    pub baseline_ratio: f64,
    /// Milliseconds of a request in its stops.
    pub request_ms: f64,
    /// Number of instants at which it was stopped.
    instants: usize,
    /// Requests in flight while it was stopped, on average; none without single requests.
    pub in_flight: Option<f64>,
    window: Window,
}

impl Stops {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If no process's threads were counted by state.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    /// Evidence that points at the states of threads.
    pub fn evidence(&self, observed: String, expected: String, text: String) -> Evidence {
        let labels = Labels::new([("metric", metrics::process::THREADS.name)]);
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }

    /// Milliseconds that they add to a request, beyond those of the baseline window.
    pub fn explains_ms(&self) -> f64 {
        let grown = 1.0 - self.baseline_ratio / self.ratio.max(1e-9);
        self.request_ms * grown.clamp(0.0, 1.0)
    }

    /// What would show the cost of its stops, if it was stopped again and again and nothing outside of
    /// it timed requests.
    pub fn untimed(&self) -> Option<Missing> {
        let is_often = self.instants >= OFTEN && self.ratio >= OFTEN_RATIO;
        let timed = "load from holdup run, or the log of a load balancer or proxy in front";
        (is_often && self.in_flight.is_none()).then(|| Missing::new(failures::UNCOUNTED, timed))
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = case.slow();
        view.gauge(metrics::process::THREADS.name, &[], ENABLE)?;
        let of = |source: &str, name: &str| {
            let (stopped, instants) = stopped_at(&view, source);
            let baseline = case.baseline().map(|baseline| stopped_at(&baseline, source));
            let ratio = stopped.len() as f64 / (instants as f64).max(1.0);
            let in_flight = in_flight(case, &stopped);
            let running = running_at(&view, source, &stopped);
            Self {
                name: name.to_owned(),
                baseline_ratio: baseline
                    .map_or(0.0, |(stopped, instants)| stopped.len() as f64 / (instants as f64).max(1.0)),
                request_ms: cost(case, &view, ratio, in_flight, &running),
                ratio,
                instants: stopped.len(),
                in_flight,
                window: view.window,
            }
        };
        let processes = view.processes_with(metrics::process::THREADS.name);
        let each = processes.iter().map(|process| of(process.source, process.name));
        each.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
            .ok_or_else(|| Missing::new("the states of the service's threads", ENABLE))
    }
}

/// Instants at which `source` was stopped, and at how many its threads were counted.
fn stopped_at(view: &View<'_>, source: &str) -> (BTreeSet<i64>, usize) {
    let of = |labels: &[(&str, &str)]| view.levels(source, metrics::process::THREADS.name, labels);
    let all = of(&[]);
    let by_state: Vec<_> = STOPPED.iter().map(|state| of(&[("state", state)])).collect();
    let rows = view.recording.tables.threads.with_columns(&["observed_at", "source", "wchan"]).unwrap_or_default();
    let is_frozen = |wchan: &Option<String>| wchan.as_deref().is_some_and(|wchan| FREEZERS.contains(&wchan));
    let frozen: Vec<(i64, f64)> = rows
        .iter()
        .filter(|row| row.source == source && is_frozen(&row.wchan) && view.window.contains(row.observed_at))
        .map(|row| (row.observed_at, row.count() as f64))
        .collect();
    let stopped = |at: &i64| {
        let counted: f64 = by_state.iter().filter_map(|levels| levels.get(at)).sum();
        counted + frozen.iter().filter(|(of, _)| of == at).map(|(_, count)| count).sum::<f64>()
    };
    let is_stopped = |(at, all): &(&i64, &f64)| **all > 0.0 && stopped(at) >= MOSTLY * **all;
    (all.iter().filter(is_stopped).map(|(at, _)| *at).collect(), all.len())
}

/// Requests that had been due and not answered, on average of `instants`; none without instants or
/// single requests.
fn in_flight(case: &Case<'_>, instants: &BTreeSet<i64>) -> Option<f64> {
    let rows = case.slow_requests().ok().filter(|_| !instants.is_empty())?;
    let met: usize = rows.iter().map(|r| instants.range(r.intended_at..r.done_at).count() * r.count() as usize).sum();
    Some(met as f64 / instants.len() as f64)
}

/// Instants at which threads of `source` were counted, and it was not stopped.
fn running_at(view: &View<'_>, source: &str, stopped: &BTreeSet<i64>) -> BTreeSet<i64> {
    let all = view.levels(source, metrics::process::THREADS.name, &[]);
    all.into_keys().filter(|at| !stopped.contains(at)).collect()
}

/// Milliseconds of a request in stops that take `ratio` (0-1) of the time.
///
/// By the requests in flight at instants at which it was stopped. Samples may all meet stops just as
/// these begin, when few requests wait yet. So it is also what all requests in flight are more than
/// those `running`, at other instants; but a stop delays no request by more than itself, half of it
/// on average, and the slowest requests met a whole one.
fn cost(case: &Case<'_>, view: &View<'_>, ratio: f64, stopped: Option<f64>, running: &BTreeSet<i64>) -> f64 {
    let per_second = case.completed_in(view.window).ok().map(|n| n / view.window.seconds().max(1e-9));
    let slowest_ms = case.degradation.as_ref().map_or(0.0, |slow| slow.slow_p99_ms);
    let most_ms = ratio * slowest_ms / 2.0;
    let Some((stopped, per_second)) = stopped.zip(per_second) else { return most_ms };
    let beyond_ms = in_flight(case, running).map_or(0.0, |running| {
        let mean_ms = case.degradation.as_ref().map_or(0.0, |slow| slow.slow_mean_ms);
        mean_ms - waited_ms((1.0 - ratio) * running, per_second)
    });
    waited_ms(ratio * stopped, per_second).max(beyond_ms.min(most_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn samples_that_meet_stops_as_they_begin_do_not_make_them_cheap() {
        // From 20 s on mariadbd is stopped for each fifth second, just before it is looked at: the 100 requests of
        // that second wait until it ends, 500 ms on average. At the look hardly one does.
        let is_stopped = |s: i64| s >= 20 && s % 5 == 0;
        let made = SyntheticRecording::new(60).requests(100, 1).each_request(|n, r| {
            if is_stopped(n / 100) {
                r.done_at = (n / 100 + 1) * 1_000_000_000;
            }
        });
        let looks = |made: SyntheticRecording| {
            let stopped = move |s: i64| if is_stopped(s) { 20.0 } else { 0.0 };
            made.setting("pid:7", "comm", "mariadbd")
                .counted("pid:7", "process_threads", &[("state", "T")], stopped)
                .counted("pid:7", "process_threads", &[("state", "S")], move |s| 20.0 - stopped(s))
        };
        looks(made).with(|case| {
            let stops = Stops::for_case(case).unwrap();
            // In 8 of 60 seconds, so a request lost 67 ms on average.
            assert!((stops.ratio - 0.13).abs() < 0.01 && stops.in_flight.unwrap() < 2.0, "{stops:?}");
            assert!((50.0..75.0).contains(&stops.request_ms), "{stops:?}");
        });
    }
}
