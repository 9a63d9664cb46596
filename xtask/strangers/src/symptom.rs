//! What clients felt: response times and failures during the fault beside the baseline, from the requests alone. No
//! verdict takes part.

use holdup_recording::Recording;
use holdup_recording::rows::Request;
use serde::{Deserialize, Serialize};

/// From this ratio of mean response times on a fault was felt. Below it machines differ by themselves.
const FELT: f64 = 1.5;

/// From this share of failed requests on it was felt, too.
const FELT_FAILED: f64 = 0.02;

/// The load's first moments: connections are opened.
const SETTLED_NS: i64 = 1_500_000_000;

/// A fault's first moment belongs to neither side.
const BEGUN_NS: i64 = 500_000_000;

/// Response times of one part of a draw, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Requests.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Share (0-1) that failed.
    pub failed_ratio: f64,
}

/// Both parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Symptom {
    /// Before the fault.
    pub baseline: Times,
    /// While it lasted.
    pub fault: Times,
}

impl Symptom {
    /// From the requests of a recording.
    pub fn measure(recording: &Recording, onset_at: i64, end_at: i64) -> Self {
        let rows = &recording.tables.requests.rows;
        let start = rows.iter().map(|row| row.intended_at).min().unwrap_or(onset_at);
        Self { baseline: times(rows, start + SETTLED_NS, onset_at), fault: times(rows, onset_at + BEGUN_NS, end_at) }
    }

    /// Mean response time against the baseline's; 1 where there is none.
    pub fn ratio(&self) -> f64 {
        if self.baseline.mean_ms > 0.0 { self.fault.mean_ms / self.baseline.mean_ms } else { 1.0 }
    }

    /// Whether clients felt it.
    pub fn is_felt(&self) -> bool {
        self.ratio() >= FELT || self.fault.failed_ratio >= self.baseline.failed_ratio + FELT_FAILED
    }
}

/// Median response time of a recording's requests, milliseconds.
pub fn median_ms(recording: &Recording) -> Option<f64> {
    let answered = recording.tables.requests.rows.iter().filter(|row| row.outcome != "unfinished");
    let mut all: Vec<(f64, u64)> =
        answered.map(|row| ((row.done_at - row.intended_at) as f64 * 1e-6, row.count())).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    quantile(&all, 0.5)
}

/// The time, milliseconds, below which this share (0-1) of the requests stayed; `sorted` are times and weights.
fn quantile(sorted: &[(f64, u64)], share: f64) -> Option<f64> {
    let count: u64 = sorted.iter().map(|(_, weight)| weight).sum();
    let rank = (count as f64 * share).ceil() as u64;
    let mut seen = 0;
    let reached = sorted.iter().find(|(_, weight)| {
        seen += weight;
        seen >= rank
    });
    reached.map(|(ms, _)| *ms)
}

fn times(rows: &[Request], from: i64, to: i64) -> Times {
    let within = rows.iter().filter(|row| (from..to).contains(&row.intended_at) && row.outcome != "unfinished");
    let mut all: Vec<(f64, u64)> = Vec::new();
    let (mut count, mut failed, mut sum) = (0, 0, 0.0);
    for row in within {
        let ms = (row.done_at - row.intended_at) as f64 * 1e-6;
        all.push((ms, row.count()));
        count += row.count();
        sum += ms * row.count() as f64;
        failed += if row.outcome == "ok" { 0 } else { row.count() };
    }
    if count == 0 {
        return Times::default();
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Times {
        count,
        mean_ms: sum / count as f64,
        p95_ms: quantile(&all, 0.95).unwrap_or(0.0),
        failed_ratio: failed as f64 / count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ms: i64, ms: i64, outcome: &str) -> Request {
        let intended_at = at_ms * 1_000_000;
        Request {
            operation: "item".to_owned(),
            phase: String::new(),
            intended_at,
            ready_at: Some(intended_at),
            sent_at: Some(intended_at),
            first_byte_at: None,
            done_at: intended_at + ms * 1_000_000,
            outcome: outcome.to_owned(),
            status: None,
            response_bytes: 0,
            connect_ns: 0,
            trace_id: None,
            weight: 2,
        }
    }

    #[test]
    fn both_sides_are_weighed() {
        let rows: Vec<Request> = (0..10)
            .map(|n| request(n * 100, if n == 9 { 100 } else { 10 }, if n == 0 { "timeout" } else { "ok" }))
            .collect();
        let times = times(&rows, 0, 1_000_000_000);
        assert_eq!((times.count, times.p95_ms), (20, 100.0));
        assert!((times.mean_ms - 19.0).abs() < 1e-9 && (times.failed_ratio - 0.1).abs() < 1e-9);
    }

    #[test]
    fn failures_are_felt_as_well_as_time() {
        let side = |mean_ms, failed_ratio| Times { count: 10, mean_ms, p95_ms: mean_ms, failed_ratio };
        let felt = |fault| Symptom { baseline: side(10.0, 0.0), fault }.is_felt();
        assert!(felt(side(15.0, 0.0)) && felt(side(9.0, 0.02)));
        assert!(!felt(side(14.9, 0.0)) && !felt(side(10.0, 0.01)));
    }
}
