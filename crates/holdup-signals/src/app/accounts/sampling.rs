//! Which traces an app keeps: all, a share chosen in advance (head sampling), or only slow ones
//! (tail sampling). The latter must never stand for the whole.

use holdup_recording::Recording;

use super::Account;

/// Least number of requests that shows a share.
const LEAST: usize = 20;
/// With tail sampling, slow requests are kept at least this many times as often as fast ones.
const TAIL: f64 = 2.0;
/// From this share all traces are kept, and a few were lost.
const ALL: f64 = 0.9;

/// Which traces were kept.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSampling {
    /// Share (0-1) of all requests that the app reported.
    pub ratio: f64,
    /// The same for the slowest tenth.
    pub slow_ratio: f64,
    /// What that means, if it matters.
    pub text: Option<String>,
}

impl TraceSampling {
    /// From the accounts of a stretch, and what the recording says about its traces.
    pub fn classify(accounts: &[Account<'_>], recording: &Recording) -> Self {
        let mut by_time: Vec<&Account<'_>> = accounts.iter().collect();
        by_time.sort_by(|a, b| b.response_ms().total_cmp(&a.response_ms()));
        let (slow, others) = by_time.split_at(by_time.len().div_ceil(10));
        let share = |of: &[&Account<'_>]| {
            let count = |a: &&Account<'_>| a.request.count() as f64;
            of.iter().filter(|a| a.has_app).map(count).sum::<f64>() / of.iter().map(count).sum::<f64>().max(1.0)
        };
        let (ratio, slow_ratio, others_ratio) = (share(&by_time), share(slow), share(others));
        let told = recording.tables.events.rows.iter().any(|e| e.kind == "sampled");
        let percent = holdup_recording::words::percent;
        let text = match () {
            () if ratio == 0.0 || accounts.len() < LEAST => None,
            () if slow_ratio >= TAIL * others_ratio => Some(format!(
                "the app's traces cover {} of the slowest tenth and {} of the others: tail sampling kept the slow ones, so they do not describe the rest",
                percent(slow_ratio),
                percent(others_ratio)
            )),
            () if ratio < ALL => Some(format!(
                "the app's traces cover {} of the requests, slow or not: head sampling chose them in advance",
                percent(ratio)
            )),
            () if told => Some("some of the app's traces report that others were left out".to_owned()),
            () => None,
        };
        Self { ratio, slow_ratio, text }
    }
}
