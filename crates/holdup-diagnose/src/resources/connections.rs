//! Connections of the app's own pool: how many are in use, how long a request holds one, and how
//! much of that is database calls.

mod names;
mod unreported;

use holdup_recording::words::ms;
use holdup_signals::app::timing::{self, APP_METRICS};
use holdup_signals::evidence::Evidence;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Gauge, Mean, Missing, View};

pub use names::{NAMES, Names};
pub use unreported::{Place, UnreportedPool};

use super::in_service_ms;
use super::pooler::Pooler;
use super::statements;
use crate::case::Case;

/// Utilization (0-1) up to which a pool of some tens hardly has a queue (Erlang's C formula).
pub const ENOUGH: f64 = 0.8;

/// A connection is held longer from this share (0-1) above the baseline: windows differ by less.
pub const GREW: f64 = 0.25;

/// From this share (0-1) of its growth, a component is what a connection is held for; and of
/// instants, most.
const MOST: f64 = 0.5;

/// Below this share (0-1) of what the queue's length says, waits that have ended are not all.
const ENDED: f64 = 0.5;

/// The pool in one stretch.
#[derive(Clone, Debug)]
pub struct PoolStretch {
    /// Connections in use.
    pub used: Gauge,
    /// The most there may be.
    pub max: Gauge,
    /// Milliseconds for which a request holds connections, all uses together: the larger of those
    /// that have ended and, if nearly all are in use at most instants, of those in use, by Little's
    /// law. A connection that is never returned shows in the second only.
    pub held_ms: f64,
    /// The same by the uses that have ended.
    pub ended_ms: f64,
    /// Milliseconds of a request in database calls; none if the app does not time them.
    pub database_ms: Option<f64>,
    /// Milliseconds of a request in the app without a connection and without waiting for one; none
    /// if the app does not time its requests.
    pub other_ms: Option<f64>,
}

impl PoolStretch {
    /// The pool in `view` by the metrics with `names`.
    ///
    /// # Errors
    /// If the app does not report them.
    pub fn measure(case: &Case<'_>, view: &View<'_>, names: &Names) -> Result<Self, Missing> {
        let (in_use, states) = names.used;
        let labels: Vec<Vec<(&str, &str)>> = match states {
            [] => vec![Vec::new()],
            _ => states.iter().map(|label| vec![(*label, "used")]).collect(),
        };
        let reported = labels.iter().find_map(|of| Some((of, view.gauge(in_use, of, APP_METRICS).ok()?)));
        let missing = || Missing::new(format!("samples of {in_use}, of connections in use"), APP_METRICS);
        let (labels, used) = reported.ok_or_else(missing)?;
        let max = view.gauge(names.max, &[], APP_METRICS)?;
        let completed = case.completed_in(view.window)?.max(1.0);
        let per_request = |mean: &Mean| mean.ms * mean.count / completed;
        let of = |metric: &str| view.mean(metric, &[], APP_METRICS).ok().map(|mean| per_request(&mean));
        let ended_ms = of(names.held).unwrap_or(0.0);
        // A pool that is full now and then holds connections for as long as uses take: samples may
        // be taken just when it is.
        let is_full = full_ratio(view, in_use, labels, max.mean) >= MOST;
        let in_use_ms = if is_full { used.mean * view.window.seconds() / completed * 1e3 } else { 0.0 };
        let waited_ms = pool_wait_ms(case, view, names).unwrap_or(0.0);
        let other_ms = of(timing::HTTP_SERVER).map(|app_ms| (app_ms - ended_ms - waited_ms).max(0.0));
        let database_ms = of(timing::OPERATION);
        Ok(Self { held_ms: ended_ms.max(in_use_ms), ended_ms, used, max, database_ms, other_ms })
    }
}

/// Milliseconds that a request of `view` waits for a pooled connection: by the waits that have ended,
/// or by the requests that wait (Little's law), if ended waits are less than half of that. A request
/// that gives up before it gets a connection is in no total. None if the app does not time waits.
pub fn pool_wait_ms(case: &Case<'_>, view: &View<'_>, names: &Names) -> Option<f64> {
    let ended = view.mean(names.wait, &[], APP_METRICS).ok()?;
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let ended_ms = ended.ms * ended.count / completed;
    let Ok(pending) = view.gauge(names.pending, &[], APP_METRICS) else { return Some(ended_ms) };
    let queued_ms = pending.mean * view.window.seconds() / completed * 1e3;
    Some(if ended_ms < ENDED * queued_ms && pending.positive_ratio >= MOST { queued_ms } else { ended_ms })
}

/// Share (0-1) of instants at which nearly all of `most` connections were in use.
fn full_ratio(view: &View<'_>, in_use: &str, labels: &[(&str, &str)], most: f64) -> f64 {
    let levels = view.sources_of(in_use).into_iter().flat_map(|source| view.levels(source, in_use, labels));
    let levels: Vec<f64> = levels.map(|(_, used)| used).collect();
    let full = levels.iter().filter(|used| **used >= ENOUGH * most).count();
    full as f64 / (levels.len() as f64).max(1.0)
}

/// Connections that the app keeps without waiting for the database.
pub struct KeptConnections {
    /// Milliseconds of a request for which it keeps one over other work than before: that work is
    /// what changed, and takes the request's own time as well.
    pub request_ms: f64,
    /// In words.
    pub text: String,
}

/// How long requests of the episode hold a connection, against the baseline window.
#[derive(Clone, Debug)]
pub struct ConnectionHold {
    /// In the episode.
    pub now: PoolStretch,
    /// In the baseline window, if there is one.
    pub before: Option<PoolStretch>,
    /// Connections on which the database's answer is due, as the kernel sees them; none if that was
    /// not recorded.
    pub awaited: Option<f64>,
    peak_per_second: f64,
}

impl ConnectionHold {
    /// By the metrics of the pool.
    ///
    /// # Errors
    /// If the app does not report them.
    pub fn measure(case: &Case<'_>, names: &Names) -> Result<Self, Missing> {
        let view = case.slow();
        let source = view.outside().ok().filter(|o| o.has_processes()).map(|o| o.source);
        let awaited = source.and_then(|source| {
            let seen = view.downstream_services(&source)?;
            let databases: Vec<f64> = seen.iter().filter(|n| n.is_database).map(|n| n.pending).collect();
            (!databases.is_empty()).then(|| databases.iter().sum::<f64>())
        });
        Ok(Self {
            now: PoolStretch::measure(case, &view, names)?,
            before: case.baseline().and_then(|baseline| PoolStretch::measure(case, &baseline, names).ok()),
            awaited,
            peak_per_second: case.peak_offered_per_second(),
        })
    }

    /// How many fewer connections the pool may have than in the baseline window; none if no fewer.
    pub fn fewer_by(&self) -> Option<f64> {
        Some(self.before.as_ref()?.max.mean - self.now.max.mean).filter(|n| *n >= 1.0)
    }

    /// If the pool is exhausted only because a connection is held longer than in the baseline
    /// window: the hold time of then, milliseconds.
    pub fn was_enough_at_ms(&self) -> Option<f64> {
        let before_ms = self.before.as_ref().filter(|_| self.fewer_by().is_none())?.held_ms;
        let needed = self.peak_per_second * before_ms / 1e3;
        (self.now.held_ms >= (1.0 + GREW) * before_ms && needed <= ENOUGH * self.now.max.mean).then_some(before_ms)
    }

    /// Whether nearly all connections are in use, although by the uses that end a few would suffice:
    /// those who have one do not go on, or keep it.
    pub fn is_stuck(&self) -> bool {
        let most = self.now.max.mean;
        self.now.used.mean >= ENOUGH * most && self.needed(self.now.ended_ms) <= ENOUGH * most
    }

    /// Connections that all due requests would need if each held one for `held_ms`.
    pub fn needed(&self, held_ms: f64) -> f64 {
        self.peak_per_second * held_ms / 1e3
    }

    /// What a cause must explain to be why the pool is exhausted, milliseconds: the growth of hold
    /// time. Infinite if it did not grow. Without a baseline window, all of it.
    pub fn to_explain_ms(&self) -> f64 {
        let Some(before) = &self.before else { return self.now.held_ms };
        let grown_ms = self.now.held_ms - before.held_ms;
        if grown_ms >= GREW * before.held_ms && self.fewer_by().is_none() { grown_ms } else { f64::INFINITY }
    }

    /// Whether the app itself holds connections, with no one to wait for: most of those in use await
    /// no answer of the database, or most of the growth of hold time is not in database calls. None
    /// if the database has them, if all of the app became slower by as much, or if unknown.
    pub fn kept_by_app(&self) -> Option<KeptConnections> {
        let (now, before) = (&self.now, self.before.as_ref());
        let grown_ms = now.held_ms - before.map_or(0.0, |b| b.held_ms);
        let in_calls_ms = (now.database_ms? - before.and_then(|b| b.database_ms).unwrap_or(0.0)).max(0.0);
        let elsewhere_ms = grown_ms - in_calls_ms;
        let slower_ms = now.other_ms.unwrap_or(0.0) - before.and_then(|b| b.other_ms).unwrap_or(0.0);
        if elsewhere_ms < MOST * grown_ms || slower_ms >= MOST * elsewhere_ms {
            return None;
        }
        let used = now.used.mean;
        let idle = match self.awaited {
            Some(awaited) if awaited >= MOST * used => return None,
            Some(awaited) => format!("; {awaited:.1} of {used:.1} in use awaited an answer of the database"),
            // They may all wait for a call that has not ended.
            None if now.ended_ms < MOST * now.held_ms => return None,
            None => String::new(),
        };
        let text = format!(
            "a request held a connection for {}, of which {} in database calls{idle}: the app keeps it over other work, or does not return it",
            ms(now.held_ms),
            ms(now.database_ms?)
        );
        let ended_ms = now.ended_ms - before.map_or(0.0, |b| b.ended_ms);
        Some(KeptConnections { request_ms: (ended_ms - in_calls_ms).max(0.0), text })
    }

    /// Evidence that points at the connections in use.
    pub fn evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        self.now.used.evidence(format!("{:.1} of {:.0}", self.now.used.mean, self.now.max.mean), expected, text)
    }
}

/// What a cause must explain to be why the pool is exhausted, milliseconds of a request; none if
/// nothing shows how long connections are held.
pub fn to_explain_ms(case: &Case<'_>) -> Option<f64> {
    let by_metrics = NAMES.iter().find_map(|names| ConnectionHold::measure(case, names).ok());
    // It is held at least during its database calls.
    by_metrics
        .map(|hold| hold.to_explain_ms())
        .or_else(|| statements::database_by_spans(case).map(|(ms, ..)| ms))
        .or_else(|| Some(UnreportedPool::for_case(case).ok().filter(|pool| pool.queued_ms() > 0.0)?.to_explain_ms()))
        .or_else(|| {
            let view = case.slow();
            let loan = Pooler::for_case(case).ok()?.loan(&view)?;
            Some(loan.ms * loan.times / case.completed_in(view.window).ok()?.max(1.0))
        })
}

/// If the app reports only a part of its pool's metrics, so that it is unknown whether requests wait
/// for a connection and how long each is held: what is missing.
pub fn partly_reported(case: &Case<'_>) -> Option<Missing> {
    let view = case.slow();
    NAMES.iter().find_map(|names| {
        let gauges = [names.used.0, names.max].map(|name| view.gauge(name, &[], APP_METRICS).is_ok());
        let times = [names.wait, names.held].map(|name| view.mean(name, &[], APP_METRICS).is_ok());
        let all: Vec<bool> = gauges.into_iter().chain(times).collect();
        let missing = || Missing::new(format!("all metrics of the connection pool beside {}", names.max), APP_METRICS);
        (all.contains(&true) && all.contains(&false)).then(missing)
    })
}

/// The same, if requests wait for a connection of the app's pool long enough to matter, and a
/// baseline window shows how long one is held usually; else none.
pub fn waited_for(case: &Case<'_>) -> Option<f64> {
    /// None if requests do not wait for a connection.
    struct QueuedHold(Option<f64>);
    let measure = |case: &Case<'_>| {
        let view = case.slow();
        let completed = case.completed_in(view.window)?.max(1.0);
        let least_ms = MATTERS * in_service_ms(case);
        let waits = |names: &&Names| {
            let waited = view.mean(names.wait, &[], APP_METRICS);
            waited.is_ok_and(|waited| waited.ms * waited.count / completed >= least_ms)
        };
        let hold = NAMES.iter().find(waits).and_then(|names| ConnectionHold::measure(case, names).ok());
        let hold = hold.filter(|hold| hold.before.is_some());
        let unreported = || {
            let is_reported = NAMES.iter().any(|names| view.mean(names.wait, &[], APP_METRICS).is_ok());
            let pool = UnreportedPool::for_case(case).ok().filter(|pool| !is_reported && pool.has_baseline())?;
            Some(pool.to_explain_ms()).filter(|_| pool.queued_ms() >= least_ms)
        };
        Ok::<_, Missing>(QueuedHold(hold.map(|hold| hold.to_explain_ms()).or_else(unreported)))
    };
    case.measured(measure).ok()?.0
}
