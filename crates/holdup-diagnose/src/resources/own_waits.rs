//! Threads of the app that sleep in a timer while they have a request: `sleep`, a poll of something
//! every few milliseconds, a retry's back-off, a rate limiter. The kernel says where each thread of
//! a watched process sleeps. Idle threads may sleep in timers all along, so only their growth since
//! the baseline window counts; by Little's law it is milliseconds of a request.
//!
//! It does not tell for what threads wait in a futex: an idle worker, a reader of a queue and a
//! waiter for a lock look alike. But a sleep under a lock lets one thread sleep at a time. If
//! requests in flight grew by far more than one, and sleepers by at most one, the others wait for
//! their turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdup_recording::{Labels, metrics};
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::threads::is_database_server;
use holdup_signals::{Missing, View, Window, app::timing};

use crate::case::Case;

/// What to record to see where threads sleep.
pub const ENABLE: &str = "--watch pid:N for the app, as its user or as root";

/// Kernel functions in which a thread sleeps for a time that it chose itself.
const TIMERS: &[&str] = &["hrtimer_nanosleep", "do_nanosleep"];

/// A growth counts from this many standard errors.
const ERRORS: f64 = 2.0;

/// Up to this mean number one sleeps at a time: the middle between one and two. A look at many
/// threads takes a while, in which the lock may pass to the next.
const ONE_AT_MOST: f64 = 1.5;

/// A thread that holds what others wait for does so for at least this share (0-1) of the time;
/// below, hardly any request meets another.
const HELD: f64 = 0.5;

/// Requests in flight grew by this factor more than sleepers: then most of them wait for others'
/// sleep to end.
const BEHIND: f64 = 1.3;

/// Sleeps in timers of the app's processes over an episode.
#[derive(Debug)]
pub struct OwnWaits {
    /// Name of the process with most of them.
    pub process: String,
    /// Threads asleep in a timer beyond those of the baseline window, on average.
    pub grown: f64,
    /// Milliseconds of a request that they are.
    pub slept_ms: f64,
    /// Milliseconds of a request behind another's sleep, if only one sleeps at a time.
    pub behind_ms: Option<f64>,
    mean: f64,
    /// Where most of them sleep; none if none does.
    wchan: Option<String>,
    window: Window,
}

/// Threads asleep in timers: their mean number, its variance by sampling, and where.
#[derive(Default)]
struct Sleepers {
    mean: f64,
    variance: f64,
    places: BTreeMap<(String, String), f64>,
    /// A process of the app whose threads were seen asleep.
    process: String,
}

impl OwnWaits {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If the app's threads were not recorded, or without a baseline window.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    /// All of it, milliseconds of a request.
    pub fn explains_ms(&self) -> f64 {
        self.slept_ms + self.behind_ms.unwrap_or(0.0)
    }

    /// Evidence that points at the threads.
    pub fn evidence(&self, expected: &str, text: String) -> Evidence {
        let labels = Labels::new([("state", "S"), ("process", self.process.as_str())]);
        let (labels, column) = match &self.wchan {
            Some(wchan) => (labels.with("wchan", wchan.clone()), "wchan"),
            None => (labels, "state"),
        };
        let observed = format!("{:.1} threads", self.mean);
        Evidence::new("threads", column, labels, self.window, observed, expected, text)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = case.slow();
        let baseline = case.baseline().ok_or_else(|| Missing::new("a baseline window of the app's threads", ENABLE))?;
        let (now, before) = (sleepers(&view)?, sleepers(&baseline)?);
        let errors = (now.variance + before.variance).sqrt();
        let grown = Some(now.mean - before.mean).filter(|grown| *grown >= ERRORS * errors).unwrap_or(0.0);
        let per_second = case.completed_in(view.window)? / view.window.seconds().max(1e-9);
        let most_ms = grown_in_app_ms(case, &view, &baseline).unwrap_or_else(|| case.excess_ms());
        let slept_ms = waited_ms(grown, per_second).clamp(0.0, most_ms.max(0.0));
        let most = now.places.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|((process, wchan), _)| (process, wchan));
        let process = most.map_or(&now.process, |(process, _)| process).clone();
        let wchan = most.map(|(_, wchan)| wchan.clone());
        Ok(Self {
            behind_ms: behind_ms(slept_ms, per_second, most_ms, ERRORS * errors),
            process,
            grown,
            slept_ms,
            mean: now.mean,
            wchan,
            window: view.window,
        })
    }
}

/// Milliseconds of a request behind another's sleep of `slept_ms`, of at most `most_ms` in all; none
/// if several sleep at a time, or hardly any request meets another. Requests that arrive by chance
/// wait for `rho / (1 - rho)` times the time for which one is served (the queue M/M/1). Near one,
/// where the queue has no end, `rho` is known to its sampling `error` only.
fn behind_ms(slept_ms: f64, per_second: f64, most_ms: f64, error: f64) -> Option<f64> {
    let rho = slept_ms / 1e3 * per_second;
    if !(HELD..ONE_AT_MOST).contains(&rho) || most_ms < BEHIND * slept_ms {
        return None;
    }
    let rho = rho + error;
    let queue_ms = if rho < 1.0 { slept_ms * rho / (1.0 - rho) } else { f64::INFINITY };
    Some(queue_ms.min(most_ms - slept_ms))
}

/// By how much the app's own timing of a request grew, milliseconds; none if it does not time them.
/// A thread that sleeps beyond it has no request.
fn grown_in_app_ms(case: &Case<'_>, view: &View<'_>, baseline: &View<'_>) -> Option<f64> {
    let of = |view: &View<'_>| view.mean(timing::HTTP_SERVER, &[], timing::APP_METRICS).ok().map(|mean| mean.ms);
    Some((of(view)? - of(baseline)?).min(case.excess_ms()))
}

/// Threads of the app's processes in timers at the instants of `view`.
fn sleepers(view: &View<'_>) -> Result<Sleepers, Missing> {
    let missing = || Missing::new("where the app's threads sleep", ENABLE);
    let columns = &["observed_at", "source", "process", "state", "wchan"];
    let rows = view.recording.tables.threads.with_columns(columns).map_err(|_| missing())?;
    let processes = view.processes_with(metrics::process::THREADS.name);
    let apps = processes.into_iter().filter(|process| !is_database_server(process.name));
    let mut all = Sleepers::default();
    for app in apps {
        let instants: BTreeSet<i64> =
            view.levels(app.source, metrics::process::THREADS.name, &[]).into_keys().collect();
        let mut counts: BTreeMap<i64, f64> = instants.iter().map(|at| (*at, 0.0)).collect();
        let n = instants.len() as f64;
        for row in rows.iter().filter(|row| row.source == app.source) {
            let Some(count) = counts.get_mut(&row.observed_at) else { continue };
            let Some(wchan) = row.wchan.as_deref().filter(|_| row.state == "S") else { continue };
            // Places were read, whatever they are.
            all.process.clone_from(&row.process);
            if !TIMERS.contains(&wchan) {
                continue;
            }
            *count += row.count() as f64;
            *all.places.entry((row.process.clone(), wchan.to_owned())).or_default() += row.count() as f64 / n;
        }
        let mean = counts.values().sum::<f64>() / n.max(1.0);
        let spread = counts.values().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        all.mean += mean;
        all.variance += spread / n.max(1.0);
    }
    if all.process.is_empty() { Err(missing()) } else { Ok(all) }
}
