//! Workers and the queue in front of them: from the server's own figures, from outside, and from
//! the app's timing of its requests ([`AppTiming`]).

use std::sync::Arc;

use holdup_recording::metrics;

use super::{AppTiming, WorkerHold, WorkingThreads, threads};
use crate::case::Case;
use crate::resources::own_waits::OwnWaits;
use crate::resources::share;
use holdup_recording::words::{ms, percent};
use holdup_signals::app::app_server::{Outside, Workers, waited_ms};
use holdup_signals::evidence::Evidence;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Missing, View, Window};

/// If less than this share (0-1) of the accepted requests is in work, by the app's own timing, their
/// number says nothing of its workers: while others wait in front, all of these work.
const AT_WORK: f64 = 0.5;

/// Workers and their queue over the episode.
pub struct Pool {
    /// Requests that the server answers, per second.
    pub per_second: f64,
    /// From the server's own figures; none without them.
    pub workers: Option<Workers>,
    /// The slots that a proxy in front of it has for it; none without such a proxy.
    pub slots: Option<Workers>,
    /// As the kernel sees it; none if that was not recorded.
    pub outside: Option<Outside>,
    /// Threads of the app that all have a request, while more are with it; none without such a level.
    pub threads: Option<WorkingThreads>,
    /// Most workers; none if unknown.
    pub most: Option<f64>,
    /// How many more there were in the baseline window by the server's own figures; none if no more.
    pub fewer_by: Option<f64>,
    /// Busy ones on average.
    pub busy: Option<f64>,
    /// Share (0-1) of instants at which all were busy.
    pub full_ratio: Option<f64>,
    /// Milliseconds of a request in the accept queue; none if not read.
    pub accept_ms: Option<f64>,
    /// Milliseconds of a request that the server has accepted and no worker has taken; none if
    /// unknown.
    pub inside_ms: Option<f64>,
    /// Milliseconds of a request in the queue of a proxy, for one of its slots; none without such a
    /// proxy.
    pub proxy_ms: Option<f64>,
    /// By the app's own timing; none without it.
    pub timing: Option<AppTiming>,
    /// The same in the baseline window, if there is one.
    pub baseline_timing: Option<AppTiming>,
}

impl Pool {
    /// For the episode, or for everything if nothing is degraded.
    ///
    /// # Errors
    /// If no source shows workers, or requests.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = stretch(case);
        let workers = view.workers();
        let outside = view.outside();
        // The host counts the queues of all ports, without the processes that accept from them.
        let knows_holder = outside.as_ref().is_ok_and(|o| o.has_processes() && o.answering.is_some());
        if workers.is_none() && !knows_holder {
            return Err(Missing::new("how many workers of the app server are busy", super::ENABLE));
        }
        let outside = outside.ok();
        let per_second = answered_per_second(case, &view).ok_or_else(|| {
            Missing::new(
                "how many requests were answered",
                "generate the load with holdup run, or watch the app's metrics",
            )
        })?;
        let timing = AppTiming::in_episode(case);
        // It may accept requests for which it has no worker yet: by its own timing few are in work.
        let at_work = |taken: &f64| timing.as_ref().is_none_or(|timing| timing.busy >= AT_WORK * taken);
        let taken = outside.as_ref().and_then(|o| o.takes_at_once).filter(at_work);
        let unreported = outside.as_ref().filter(|_| workers.is_none());
        let threads = unreported.and_then(|outside| threads::working(case, &view, outside, per_second));
        let most = workers.as_ref().map(|w| w.most).or(threads.map(WorkingThreads::count)).or(taken);
        let were = workers.as_ref().and_then(|_| case.baseline()?.workers()).map(|w| w.most);
        let fewer_by = were.zip(most).map(|(were, most)| were - most).filter(|n| *n >= 1.0);
        let answering = outside.as_ref().and_then(|o| o.answering);
        // A server's own figures may be seconds old, and say nothing just after a restart; accepted
        // requests are counted now.
        let in_hand = answering.map(|answering| answering.min(most.unwrap_or(f64::MAX)));
        let busy = workers.as_ref().map(|w| w.busy).into_iter().chain(in_hand).reduce(f64::max);
        let told = workers.as_ref().and_then(|w| Some((w.queue?, w.queue_is_kernels)));
        let kernels = outside.as_ref().map(|o| o.waiting.mean).or_else(|| told.filter(|t| t.1).map(|t| t.0));
        // A request waits for a slot of the proxy before it waits for a worker.
        let slots = view.slots();
        let at_proxy = slots.as_ref().and_then(|slots| slots.queue);
        let has_own = |workers: &&Workers| workers.backend.is_none();
        let own = workers.as_ref().filter(has_own).and(told).filter(|t| !t.1).map_or(0.0, |t| t.0);
        let beyond = answering.zip(most).map(|(answering, most)| (answering - most).max(0.0));
        let in_hand_full = outside.as_ref().zip(most).and_then(|(outside, most)| outside.full_ratio(most));
        let full_ratio = workers.as_ref().map(|w| w.full_ratio).into_iter().chain(in_hand_full).reduce(f64::max);
        Ok(Self {
            accept_ms: kernels.map(|standing| waited_ms(standing, per_second)),
            inside_ms: beyond
                .map(|beyond| beyond.max(own))
                .or((own > 0.0).then_some(own))
                .map(|n| waited_ms(n, per_second)),
            proxy_ms: at_proxy.map(|queued| waited_ms(queued, per_second)),
            slots,
            per_second,
            workers,
            outside,
            threads,
            most,
            fewer_by,
            busy,
            full_ratio,
            timing,
            baseline_timing: AppTiming::in_baseline(case),
        })
    }

    /// Busy workers as a share (0-1) of all; 0 if either is unknown.
    pub fn busy_ratio(&self) -> f64 {
        self.busy.zip(self.most).map_or(0.0, |(busy, most)| busy / most.max(1e-9))
    }

    /// Whether all workers are busy, at most instants or nearly so on average.
    pub fn is_full(&self) -> bool {
        self.full_ratio.is_some_and(|ratio| ratio >= super::MOSTLY) || self.busy_ratio() >= super::BUSY
    }

    /// Whether it is known how many requests the server has accepted.
    pub fn knows_hand(&self) -> bool {
        self.outside.as_ref().is_some_and(|o| o.answering.is_some())
    }

    /// Whether the only source is the server's own figures, and its workers send these when they
    /// get to it: a stopped worker then keeps looking idle.
    pub fn is_unseen(&self) -> bool {
        self.accept_ms.is_none() && self.workers.as_ref().is_some_and(|workers| workers.is_self_reported)
    }

    /// Whether connections stand in the accept queue at most instants.
    pub fn is_standing(&self) -> bool {
        self.standing_ratio() >= super::MOSTLY
    }

    /// Share (0-1) of instants with a connection in the accept queue.
    pub(super) fn standing_ratio(&self) -> f64 {
        self.outside.as_ref().map_or(0.0, |o| o.waiting.positive_ratio)
    }

    /// When requests waited in front of workers: connections stood in the accept queue, or if that
    /// was not read, all workers were busy.
    pub fn waiting_windows(&self) -> Vec<Window> {
        let full = || self.workers.as_ref().map_or_else(Vec::new, |w| w.full.clone());
        let mut windows = self.outside.as_ref().map_or_else(full, |o| o.standing.clone());
        windows.extend(self.slots.iter().flat_map(|slots| slots.full.clone()));
        windows
    }

    /// Evidence of workers and queues.
    pub fn evidence(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let by_hand = self.outside.as_ref().zip(self.most).and_then(|(o, most)| Some((o, most, o.full_ratio(most)?)));
        let is_later = |w: &Workers, ratio: f64| w.backend.is_none() && ratio > w.full_ratio;
        let by_hand = by_hand.filter(|(.., ratio)| self.workers.as_ref().is_none_or(|w| is_later(w, *ratio)));
        match (&self.workers, by_hand) {
            // Its own figures may be seconds old, and are missing just after a restart.
            (Some(workers), Some((outside, most, ratio))) => {
                let text = format!(
                    "the server had accepted requests for all {most:.0} workers of {} at {} of the instants, for {:.1} on average (by its own figures, which are seconds old, all were busy at {})",
                    workers.server,
                    percent(ratio),
                    self.busy.unwrap_or(0.0),
                    percent(workers.full_ratio)
                );
                let observed = format!("{:.1} of {most:.0}", self.busy.unwrap_or(0.0));
                evidence.push(outside.hand_evidence(observed, format!("below {most:.0} at most instants"), text));
            }
            (Some(workers), None) => {
                let text = format!(
                    "all {:.0} {} were busy at {} of the instants, {:.1} on average",
                    workers.most,
                    workers.name(),
                    percent(workers.full_ratio),
                    workers.busy
                );
                evidence.push(workers.evidence(format!("below {:.0} at most instants", workers.most), text));
            }
            (None, _) => {}
        }
        evidence.extend(self.proxy_evidence());
        let Some(outside) = &self.outside else { return evidence };
        if self.workers.is_none()
            && let Some(most) = self.most
        {
            let text = super::says_of_limit(self.threads, most, &outside.port);
            evidence.push(outside.hand_evidence(format!("{most:.1}"), "", text));
        }
        let accept_ms = self.accept_ms.unwrap_or(0.0);
        let text = super::says_of_queue(accept_ms, outside.waiting.mean, &outside.port, self.per_second);
        evidence.push(outside.queue_evidence("0", text));
        if let Some(workers) = self.workers.as_ref().filter(|w| w.queue == Some(0.0) && outside.waiting.mean >= 1.0) {
            let text = format!(
                "by its own figures, {} has no queue: the queue is in the kernel, where the server does not see it",
                workers.server
            );
            evidence.push(workers.evidence("", text));
        }
        if let Some(inside_ms) = self.inside_ms.filter(|ms| *ms > 0.0) {
            let text = format!("it had accepted more requests than it has workers: {} per request", ms(inside_ms));
            evidence.push(outside.hand_evidence(ms(inside_ms), "none", text));
        }
        evidence
    }

    /// The accepted requests, if the number of workers is unknown.
    pub fn answering_evidence(&self) -> Option<Evidence> {
        let outside = self.outside.as_ref()?;
        let answering = outside.answering?;
        let text = format!(
            "the server was working on {answering:.1} requests on average, {} each, and nothing waited in front of it",
            ms(waited_ms(answering, self.per_second))
        );
        Some(outside.hand_evidence(format!("{answering:.1}"), "", text))
    }

    /// For a server that takes any number of requests at once and holds them long: no source shows
    /// what they wait for inside. None if its known waits leave hardly any time.
    pub fn unsplit(&self, case: &Case<'_>, held: Option<&WorkerHold>) -> Option<Missing> {
        let inside_ms = waited_ms(self.outside.as_ref()?.answering?, self.per_second);
        let slept_ms = OwnWaits::for_case(case).map_or(0.0, |waits| waits.explains_ms());
        let known_ms = held.map_or(0.0, WorkerHold::known_ms) + slept_ms;
        let rest_ms = (inside_ms - known_ms).max(0.0);
        (share(case, rest_ms) >= MATTERS).then(|| {
            Missing::new(
                format!(
                    "what requests wait for inside the server: it held each for {}, of which downstream services, database, CPU and its own sleep take {}; the rest may be a wait for a worker, a pooled connection or a lock",
                    ms(inside_ms),
                    ms(known_ms)
                ),
                "--watch otlp, with the app's server span and spans of its waits for a connection (resource pool): time before the span is a wait for a worker, time inside a wait for a connection",
            )
        })
    }
}

/// The episode itself: waiting requests are counted while they wait, although the queue drains
/// later.
pub fn stretch<'c>(case: &'c Case<'_>) -> View<'c> {
    case.view(case.episode())
}

/// How long a request holds a worker in `view`, milliseconds; none if unknown.
pub(super) fn held_in(case: &Case<'_>, view: &View<'_>) -> Option<f64> {
    let in_hand = view.outside().ok().and_then(|o| o.answering);
    let busy = in_hand.or_else(|| view.workers().map(|w| w.busy))?;
    answered_per_second(case, view).filter(|n| *n > 0.0).map(|per_second| waited_ms(busy, per_second))
}

/// Requests per second that the server answers in `view`: by its own count, which includes those
/// that clients gave up, or those that clients got answered, whichever are more. None if nothing
/// counts them.
pub fn answered_per_second(case: &Case<'_>, view: &View<'_>) -> Option<f64> {
    let counted = view.workers().and_then(|w| w.served_per_second);
    let is_answered =
        |outcome: &str| matches!(outcome, "ok" | "http_status" | "check_failed" | "capture_missed" | "bad_json");
    let all = Window { from: i64::MIN, to: i64::MAX };
    let ended = match case.at(view.window).requests_in(all) {
        Ok(rows) => {
            let ended = rows.iter().filter(|r| is_answered(&r.outcome) && view.window.contains(r.done_at));
            Some(ended.map(|r| r.count()).sum::<u64>() as f64)
        }
        Err(_) => case.completed_in(view.window).ok(),
    };
    let answered = ended.map(|n| n / view.window.seconds().max(1e-9));
    counted.into_iter().chain(answered).reduce(f64::max)
}

/// Processes that answer requests: a parent of several also has the listener, and answers none.
pub fn processes(view: &View<'_>, pool: &Pool) -> f64 {
    let source = pool.outside.as_ref().map(|o| o.source.as_str()).unwrap_or_default();
    let holders = view.levels(source, metrics::server::PROCESSES.name, &[]).into_values().fold(0.0, f64::max);
    let roles = view.index.series(metrics::server::ACCEPTED_CONNECTIONS.name, &[("role", "parent")]);
    let has_parent = roles.into_iter().any(|((of, _), _)| of == source);
    (holders - f64::from(has_parent)).max(1.0)
}
