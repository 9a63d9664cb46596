//! Which of the failed requests were in flight while something happened.

use holdup_recording::rows::Request;
use holdup_signals::host::processes::is_unanswered;
use holdup_signals::time::requests::failed;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Missing, Window};

use crate::case::Case;

/// A smaller share (0-1) of failed requests is usual, and not what has to be explained.
pub const FAILURES_MATTER: f64 = 0.01;

/// What is missing where a limit was reached, a process was killed or a connection was refused, and
/// no source counted the requests that failed of it. It happened all the same.
pub const UNCOUNTED: &str = "how many requests failed of it";

/// How many requests failed of something that is present.
pub struct Failed {
    /// Share (0-1) of the failed requests; 0 if no source counts them.
    pub share: f64,
    /// What would count them, if no source does: what made them fail happened all the same.
    pub uncounted: Option<Missing>,
}

impl Failed {
    /// Of a share that was asked for.
    ///
    /// # Errors
    /// If another fact is missing than the failed requests.
    pub fn of(share: Result<f64, Missing>) -> Result<Self, Missing> {
        match share {
            Ok(share) => Ok(Self { share, uncounted: None }),
            Err(missing) if missing.what == UNCOUNTED => Ok(Self { share: 0.0, uncounted: Some(missing) }),
            Err(missing) => Err(missing),
        }
    }

    /// Whether hardly any request failed of it.
    pub fn is_small(&self) -> bool {
        self.uncounted.is_none() && self.share < MATTERS
    }
}

/// The share of failed requests that can be due to `events`: each needs at least one.
///
/// # Errors
/// If requests were not recorded.
pub fn at_most(case: &Case<'_>, share: f64, events: f64) -> Result<f64, Missing> {
    let bad: u64 = case.slow_requests()?.iter().filter(|r| failed(r)).map(|r| r.count()).sum();
    Ok(share.min(events / (bad as f64).max(1.0)))
}

/// The share (0-1) of the episode's failed requests that were in flight in one of `windows`; 0 if
/// hardly any failed.
///
/// # Errors
/// If requests were not recorded.
pub fn failed_share(case: &Case<'_>, windows: &[Window]) -> Result<f64, Missing> {
    share_of_failed(case, windows, |_| true)
}

/// The same for requests without an answer: no connection, no answer in time, or a connection that
/// ended before it.
///
/// # Errors
/// If requests were not recorded.
pub fn unanswered_share(case: &Case<'_>, windows: &[Window]) -> Result<f64, Missing> {
    share_of_failed(case, windows, is_unanswered)
}

fn share_of_failed(case: &Case<'_>, windows: &[Window], is_meant: impl Fn(&Request) -> bool) -> Result<f64, Missing> {
    let uncounted = |missing: Missing| Missing { what: UNCOUNTED.to_owned(), ..missing };
    let rows = case.slow_requests().map_err(uncounted)?;
    let count = |wanted: &dyn Fn(&Request) -> bool| rows.iter().filter(|r| wanted(r)).map(|r| r.count()).sum::<u64>();
    let (all, bad) = (count(&|_| true), count(&|r| failed(r)));
    if case.degradation.is_none() || (bad as f64) < FAILURES_MATTER * all as f64 || bad == 0 {
        return Ok(0.0);
    }
    let under_way = |r: &Request| windows.iter().any(|w| r.intended_at < w.to && w.from <= r.done_at);
    Ok(count(&|r| failed(r) && is_meant(r) && under_way(r)) as f64 / bad as f64)
}
