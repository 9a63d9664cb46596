//! Requests that got no answer, beside those that did. A server that refuses a third of its requests is not
//! the quicker one because the rest are quick: its users waited in vain. Where all were offered the same
//! schedule, each request has its counterpart, so percentiles can count all of them: one without an answer is
//! slower than any answer, and took at least as long as the client would have waited.

use holdup_diagnose::case::Case;
use holdup_recording::rows::Request;
use holdup_signals::Distribution;
use holdup_signals::time::requests::{is_latency, response_ms};

use super::measure::WithUnanswered;
use super::within::{Timed, percentile};

/// The requests of one operation that got no answer.
pub(super) struct Unanswered {
    rows: Vec<Timed>,
    /// What the client would have waited, or the largest age of one of them, milliseconds.
    least_ms: f64,
}

impl Unanswered {
    pub fn of_rows<'r>(case: &Case<'_>, rows: impl Iterator<Item = &'r &'r Request>) -> Self {
        let rows: Vec<Timed> =
            rows.filter(|r| !is_latency(r)).map(|r| (r.intended_at, response_ms(r), r.count())).collect();
        let timeout_ms = case.recording.manifest.load.as_ref().map_or(0.0, |load| load.timeout_ns as f64 / 1e6);
        let least_ms = rows.iter().map(|(_, age, _)| *age).fold(timeout_ms, f64::max);
        Self { rows, least_ms }
    }

    /// Percentile `q` (0-1) of these and of the `answered` ones together, whose times are `all`.
    pub fn percentile(&self, answered: &[Timed], phases: &[i64], all: &Distribution, q: f64) -> Option<WithUnanswered> {
        let least_ms = self.least_ms.max(all.max()?);
        let count = self.rows.iter().map(|(.., count)| count).sum();
        let together = Distribution::merged([all, &Distribution::from_counts([(least_ms, count)])]);
        let failed = self.rows.iter().map(|(at, _, count)| (*at, least_ms, *count));
        let rows: Vec<Timed> = answered.iter().copied().chain(failed).collect();
        let (value, error) = percentile(&rows, phases, &together, q)?;
        // The largest answer may have taken as long.
        let is_least = q * together.count() as f64 > all.count() as f64;
        Some(WithUnanswered { value, error: error.unwrap_or(0.0), is_least })
    }
}
