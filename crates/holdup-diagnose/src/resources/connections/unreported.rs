//! A pool of connections that no metric reports, as the kernel and the database see it: while every
//! connection is busy and more requests are with the app, the others wait for a connection. By
//! Little's law their number over the rate is the wait of a request, and the number of busy
//! connections over the rate is how long a request holds one.

mod sessions;
mod sightings;

use std::sync::Arc;

use holdup_recording::Labels;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Missing, View, Window};

pub use self::sightings::Place;
use self::sightings::Sightings;
use super::{ENOUGH, GREW};
use crate::case::Case;
use crate::resources::workers::{MOSTLY, answered_per_second, stretch};

const ENABLE: &str = "--watch server:PORT of the app, or its metrics of the pool";

/// The pool in one stretch.
#[derive(Clone, Copy, Debug)]
struct PoolMoment {
    /// For how long a request holds a connection, milliseconds.
    held_ms: f64,
    /// Part of it within a transaction and without a statement, the same.
    kept_ms: f64,
    /// Requests that wait for a connection, the same.
    queued_ms: f64,
    /// Requests with the app that hold no connection, whatever they do, the same.
    without_ms: f64,
    /// Share (0-1) of instants at which nearly all connections were busy while requests waited.
    full_ratio: f64,
    /// Most requests with the app while they did.
    most: f64,
}

/// The pool in the episode, beside the baseline.
#[derive(Debug)]
pub struct UnreportedPool {
    /// Who sees it, and where it is.
    pub place: Place,
    /// Most connections that were open.
    pub open: f64,
    /// Name of the app's process; empty if it is not watched.
    pub app: String,
    /// Processes of the app; none if they are not watched.
    pub processes: Option<f64>,
    now: PoolMoment,
    before: Option<PoolMoment>,
    words: String,
    evidence: Evidence,
}

impl UnreportedPool {
    /// Measured once for a case: of several pools the one that requests wait for longest.
    ///
    /// # Errors
    /// If neither the kernel nor the database was asked for the app's connections, or if requests
    /// are not counted.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let pools = Sightings::all(case).into_iter().filter_map(|seen| Self::of(case, seen));
        pools
            .max_by(|a, b| a.now.queued_ms.total_cmp(&b.now.queued_ms))
            .ok_or_else(|| Missing::new("the app's connections to its database", ENABLE))
    }

    fn of(case: &Case<'_>, seen: Sightings) -> Option<Self> {
        let baseline = case.baseline();
        let before = baseline.as_ref().and_then(|view| PoolMoment::measure(case, view, &seen, 0.0));
        // Of requests that holdup sent, those without a connection may also be elsewhere, as before.
        let elsewhere_ms = before.filter(|_| seen.place == Place::Sessions).map_or(0.0, |before| before.without_ms);
        let now = PoolMoment::measure(case, &stretch(case), &seen, elsewhere_ms)?;
        Some(Self {
            place: seen.place,
            open: seen.open,
            app: seen.app,
            processes: seen.processes,
            now,
            before,
            words: seen.words,
            evidence: seen.evidence,
        })
    }

    /// Most connections that were open at an instant.
    pub fn open(&self) -> f64 {
        self.open
    }

    /// Milliseconds for which a request waits for a connection: at least, because one may be held
    /// without being seen to be busy.
    pub fn queued_ms(&self) -> f64 {
        self.now.queued_ms
    }

    /// Milliseconds for which a request holds a connection.
    pub fn held_ms(&self) -> f64 {
        self.now.held_ms
    }

    /// Milliseconds for which it holds one within a transaction while no statement runs.
    pub fn kept_ms(&self) -> f64 {
        self.now.kept_ms
    }

    /// Whether there is a baseline window to compare with.
    pub fn has_baseline(&self) -> bool {
        self.before.is_some()
    }

    /// What a cause must explain to be why connections ran out, milliseconds: the growth of the time
    /// for which they are busy. Infinite if it did not grow. Without a baseline window, all of it.
    pub fn to_explain_ms(&self) -> f64 {
        let Some(before) = self.before else { return self.now.held_ms };
        let grown_ms = self.now.held_ms - before.held_ms;
        if grown_ms >= GREW * before.held_ms { grown_ms } else { f64::INFINITY }
    }

    /// Whether each is held longer than in the baseline window, and most of that not because
    /// the app keeps it in a transaction.
    pub fn is_held_longer_by_others(&self) -> bool {
        let kept_before = self.before.map_or(0.0, |before| before.kept_ms);
        let grown_ms = self.to_explain_ms();
        self.has_baseline() && grown_ms.is_finite() && self.now.kept_ms - kept_before < MOSTLY * grown_ms
    }

    /// Evidence that points at holdup's requests in flight in `window`.
    pub fn beside(&self, window: Window) -> Evidence {
        let observed = format!("up to {:.0}", self.now.most);
        let text = format!(
            "up to {:.0} of holdup's requests were in flight while all {:.0} were busy",
            self.now.most, self.open
        );
        Evidence::new("requests", "done_at", Labels::none(), window, observed, format!("up to {:.0}", self.open), text)
    }

    /// Evidence of the queue, and of how long a connection is held.
    pub fn evidence(&self) -> [Evidence; 2] {
        let PoolMoment { queued_ms, full_ratio, most, held_ms, kept_ms, .. } = self.now;
        let (open, words) = (self.open, &self.words);
        let requests = self.place.requests();
        let text = format!(
            "all {open:.0} {words} in {} of the samples, while up to {most:.0} {requests}: a request waited {} for one",
            percent(full_ratio),
            ms(queued_ms)
        );
        let observed = format!("all {open:.0}");
        let queue = Evidence { observed, ..self.evidence.clone().saying("fewer than there are", text) };
        let kept = match kept_ms {
            kept if kept >= MATTERS * held_ms => format!(", of which {} idle in a transaction", ms(kept)),
            _ => String::new(),
        };
        let text = format!(
            "a request holds one for {}{kept}, by Little's law: {open:.0} carry at most {} requests/s",
            ms(held_ms),
            thousands(open / held_ms.max(1e-3) * 1e3)
        );
        let expected = self.before.map_or_else(String::new, |before| ms(before.held_ms));
        let hold = Evidence { observed: ms(held_ms), ..self.evidence.clone().saying(expected, text) };
        [queue, hold]
    }
}

impl PoolMoment {
    /// `elsewhere_ms` of a request without a connection are not a wait for one.
    fn measure(case: &Case<'_>, view: &View<'_>, seen: &Sightings, elsewhere_ms: f64) -> Option<Self> {
        let per_second = answered_per_second(case, view).filter(|rate| *rate > 0.0)?;
        let instants: Vec<_> = seen.instants.iter().filter(|instant| view.window.contains(instant.at)).collect();
        let count = instants.len() as f64;
        let elsewhere = elsewhere_ms / 1e3 * per_second;
        let full = instants.iter().filter(|instant| instant.busy >= ENOUGH * seen.open);
        let waiting: Vec<(f64, f64)> = full
            .map(|instant| {
                let beyond = instant.requests - instant.busy - instant.beside - elsewhere;
                // A request that waits for a connection holds its thread.
                let places = seen.threads.map_or(f64::INFINITY, |threads| threads - instant.busy);
                (instant.requests, beyond.min(places))
            })
            .filter(|(_, waiting)| *waiting > 0.0)
            .collect();
        let full_ratio = waiting.len() as f64 / count;
        let queued = waiting.iter().map(|(_, waiting)| waiting).sum::<f64>() / count;
        // Of what is counted at another place than the requests, chance is a part.
        let is_queue = seen.is_sure || full_ratio >= MOSTLY && queued >= seen.place.least_behind() * seen.open;
        let of = |value: fn(&sessions::Instant) -> f64| {
            waited_ms(instants.iter().map(|instant| value(instant)).sum::<f64>() / count, per_second)
        };
        (count > 0.0).then(|| Self {
            held_ms: of(|instant| instant.busy),
            kept_ms: of(|instant| instant.kept),
            queued_ms: if is_queue { waited_ms(queued, per_second) } else { 0.0 },
            without_ms: of(|instant| (instant.requests - instant.busy).max(0.0)),
            full_ratio,
            most: waiting.iter().map(|(requests, _)| *requests).fold(0.0, f64::max),
        })
    }
}
