//! Workers by the app's own timing of its requests. That begins when a worker takes a request, so
//! clients' time beyond it is the wait for a worker, with transport. And by Little's law, the rate
//! times that time is how many workers are busy, even if no source counts them.

use holdup_recording::Labels;
use holdup_recording::rows::Request;
use holdup_recording::words::ms;
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::{mean_over, service_ms};
use holdup_signals::{View, app::timing};

use super::Pool;
use crate::case::Case;
use holdup_signals::app::accounts::{Accounts, Owner};

/// The app and the client count the same requests if their counts differ by at most this factor:
/// requests that clients gave up are served as well.
const SAME_REQUESTS: f64 = 2.0;

/// Part (0-1) of the use that a single worker needs for so long a queue in front of it, which the
/// workers must have: arrivals and work that come in bursts queue at less.
const NEEDED_USE: f64 = 0.5;

/// Requests that the server has accepted, beyond those of its workers, must be this share (0-1) of
/// the wait in front of its workers: the others are still on their way.
const ARRIVED: f64 = 0.25;

/// A request's time with the app and in front of it, over one stretch.
#[derive(Clone, Debug)]
pub struct AppTiming {
    /// Milliseconds for which a request holds its worker.
    pub held_ms: f64,
    /// Milliseconds that requests are with the server beyond that, or that clients wait.
    pub before_ms: f64,
    /// Workers busy at a time, on average.
    pub busy: f64,
    pointer: Evidence,
}

impl AppTiming {
    /// Of the episode's requests. None if the app reports no timing, or not of these requests.
    pub fn in_episode(case: &Case<'_>) -> Option<Self> {
        Self::measure(case, &case.slow(), Some(case.accounts()), case.slow_requests().unwrap_or_default())
    }

    /// Of those of the baseline window, if there is one.
    pub fn in_baseline(case: &Case<'_>) -> Option<Self> {
        let baseline = case.baseline()?;
        Self::measure(case, &baseline, case.baseline_accounts(), &case.requests_in(baseline.window).unwrap_or_default())
    }

    fn measure(
        case: &Case<'_>,
        view: &View<'_>,
        accounts: Option<&Accounts<'_>>,
        requests: &[&Request],
    ) -> Option<Self> {
        let completed = case.completed_in(view.window).ok()?.max(1.0);
        let per_second = completed / view.window.seconds().max(1e-9);
        // Where holdup only watched, the requests that the server has show for how long: Little's law.
        let with_server = || Some(waited_ms(view.outside().ok()?.answering?, per_second));
        let service = mean_over(requests.iter().copied(), service_ms).or_else(with_server)?;
        let by_spans = accounts.filter(|a| a.all.iter().any(|a| a.has_app));
        if let Some(before_ms) = by_spans.and_then(|a| a.mean_ms_of_app(Owner::Network)) {
            let labels = Labels::new([("resource", "request")]);
            let pointer = Evidence::new("spans", "duration_ns", labels, view.window, ms(before_ms), "", "");
            let held_ms = (service - before_ms).max(0.0);
            return Some(Self { held_ms, before_ms, busy: per_second * held_ms / 1e3, pointer });
        }
        let app = view.mean(timing::HTTP_SERVER, &[], timing::APP_METRICS).ok()?;
        let (fewer, more) = (app.count.min(completed), app.count.max(completed));
        (more <= SAME_REQUESTS * fewer).then(|| Self {
            held_ms: app.ms,
            before_ms: (service - app.ms).max(0.0),
            busy: app.ms * app.count / 1e3 / app.seconds.max(1e-9),
            pointer: app.evidence(ms(app.ms), "", ""),
        })
    }

    /// Whether the time in front can be a queue for a worker: while requests wait for one, at least
    /// one works. A single worker with a queue of this mean length is busy for before / (before +
    /// held) of the time (M/M/1), several are busier. If they are not, the server did not get to its
    /// requests at all, or they were still on their way.
    pub fn is_queue(&self) -> bool {
        self.busy >= NEEDED_USE * self.before_ms / (self.before_ms + self.held_ms).max(1e-9)
    }

    /// Evidence that points at the app's timing.
    pub fn evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        self.pointer.clone().saying(expected, text)
    }
}

impl Pool {
    /// Milliseconds in front of workers by the app's own timing, more than in the baseline window.
    /// None without that, or if those are counted: then their own queue shows it.
    pub fn timed_ms(&self) -> Option<f64> {
        let timing = self.timing.as_ref().filter(|_| self.most.is_none())?;
        Some((timing.before_ms - self.baseline_timing.as_ref().map_or(0.0, |baseline| baseline.before_ms)).max(0.0))
    }

    /// Milliseconds of a request that the server has accepted beyond those of its workers, by the
    /// app's timing; none without both.
    pub fn beyond_workers_ms(&self) -> Option<f64> {
        let answering = self.outside.as_ref()?.answering?;
        Some(waited_ms((answering - self.timing.as_ref()?.busy).max(0.0), self.per_second))
    }

    /// Whether the time in front of workers is a queue for one: they are busy, and the requests have
    /// arrived.
    pub fn is_timed_queue(&self) -> bool {
        let arrived = |ms: f64| self.beyond_workers_ms().is_none_or(|beyond| beyond >= ARRIVED * ms);
        self.timing.as_ref().is_some_and(AppTiming::is_queue) && self.timed_ms().is_some_and(arrived)
    }
}
