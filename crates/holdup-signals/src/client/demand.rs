//! How long the load lasted, and how much longer its last request took.

use holdup_recording::Manifest;
use holdup_recording::manifest::RunState;
use holdup_recording::rows::Request;

use crate::Window;

/// How long the load lasted. Rates are over the schedule, or as far as it got.
pub struct Demand {
    first: i64,
    /// How long requests were due, seconds.
    pub offered_s: f64,
}

impl Demand {
    /// The demand of `requests`, all of which lie within `whole`.
    pub fn from_requests(manifest: &Manifest, requests: &[&Request], whole: Window) -> Self {
        let first_due = requests.iter().map(|r| r.intended_at).min().unwrap_or(0);
        let first = manifest.phases.first().map_or(first_due, |p| p.from.max(whole.from).min(first_due));
        let last_due = requests.iter().map(|r| r.intended_at).max().unwrap_or(first);
        let planned = manifest.phases.last().map_or(last_due, |p| p.to).min(whole.to);
        let end = if manifest.state == RunState::Complete { planned } else { last_due };
        Self { first, offered_s: (end - first).max(1_000_000) as f64 / 1e9 }
    }

    /// Seconds over which to count completions until `last`. If some came after the end of the
    /// schedule, this is the longer time that they took.
    pub fn until(&self, last: Option<i64>) -> f64 {
        last.map_or(self.offered_s, |last| ((last - self.first) as f64 / 1e9).max(self.offered_s))
    }
}
