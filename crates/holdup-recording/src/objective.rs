//! Objectives: [`parse`] reads them from text and [`Evaluation`] checks them against the load,
//! second by second. The generator does so while it runs and the diagnosis afterwards, so both
//! agree.
//!
//! An objective without a window covers the run as a whole. With one (`for 30s`) it covers every
//! window of that length, sliding by a second, after the warm-up. Requests belong to the second in
//! which they ended. This module has no clock and no file, and does not know why an objective was
//! missed.

mod evaluation;
mod parse;
mod sum;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use self::evaluation::{Evaluation, Extent};
pub use self::parse::parse;

/// The quantity that an objective limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A percentile of response time, as a share 0-1: the smallest value that this share of
    /// requests does not exceed (nearest rank).
    Quantile(f64),
    /// The longest response time.
    Max,
    /// The mean response time.
    Mean,
    /// The share of failed requests among those that ended.
    Errors,
    /// Successes per second.
    Rate,
}

impl Metric {
    /// Parses `p50`, `p99.9` and any other percentile (`p999` is `p99.9`), `max`, `mean`, `errors`,
    /// `rate`.
    ///
    /// # Errors
    /// If it is another word; the message lists them.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "max" => return Ok(Metric::Max),
            "mean" => return Ok(Metric::Mean),
            "errors" => return Ok(Metric::Errors),
            "rate" => return Ok(Metric::Rate),
            _ => {}
        }
        let digits = name.strip_prefix('p').filter(|d| d.starts_with(|c: char| c.is_ascii_digit()));
        // Parsed as hundredths, because 99.9 / 100 is not the number nearest to 0.999.
        let Some(percent) = digits.and_then(|d| Some((d, format!("{d}e-2").parse::<f64>().ok()?))) else {
            return Err(format!(
                "unknown metric \"{name}\"; known: p50, p99, p99.9 or any other percentile, max, mean, errors, rate"
            ));
        };
        match percent {
            ("999", _) => Ok(Metric::Quantile(0.999)),
            ("9999", _) => Ok(Metric::Quantile(0.9999)),
            (_, share) if share > 0.0 && share < 1.0 => Ok(Metric::Quantile(share)),
            ("100", _) => Err("p100 is the longest response time: use max".to_owned()),
            (digits, _) if digits.len() > 4 && digits.starts_with("99") && !digits.contains('.') => {
                Err(format!("{name}: write it with a point, e.g. p99.99"))
            }
            _ => Err(format!("{name}: a percentile lies between p0 and p100")),
        }
    }

    /// The unit of its values and limits.
    pub fn unit(self) -> Unit {
        match self {
            Metric::Errors => Unit::Ratio,
            Metric::Rate => Unit::PerSecond,
            _ => Unit::Ms,
        }
    }

    /// Whether it concerns response time.
    pub fn is_latency(self) -> bool {
        self.unit() == Unit::Ms
    }

    /// Whether `value` misses `limit`. An errors objective is missed only by at least one error.
    pub fn misses(self, value: f64, limit: f64) -> bool {
        match self {
            Metric::Rate => value <= limit,
            Metric::Errors => value > 0.0 && value >= limit,
            _ => value >= limit,
        }
    }

    /// Whether `value` is worse than `other`.
    fn is_worse(self, value: f64, other: f64) -> bool {
        if self == Metric::Rate { value < other } else { value > other }
    }
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// A share, 0-1.
    Ratio,
    /// Per second.
    PerSecond,
}

/// The requests of one operation that ended in one second.
#[derive(Clone, Copy, Debug)]
pub struct OperationOutcomes<'a> {
    /// Its name.
    pub operation: &'a str,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Response times in nanoseconds with their counts, of requests that succeeded or timed out.
    pub times: &'a [(u64, u64)],
}

/// The values of `histogram` with their counts, in the form of [`OperationOutcomes::times`].
pub fn times(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
}

/// Whether an objective was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was met.
    Met,
    /// It was missed at least once.
    Missed,
    /// It could not be judged.
    NotJudged,
}

/// A window of the load, nanoseconds from its start, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Start.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
}

/// The result of an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The objective in the user's words.
    pub text: String,
    /// Whether it was met.
    pub state: State,
    /// Its value over the whole run, or in the worst window; empty if it was not judged.
    #[serde(default)]
    pub value: Option<f64>,
    /// The limit: the value must stay below it, a rate above it.
    pub limit: f64,
    /// The unit of both.
    pub unit: Unit,
    /// The first window in which it was missed.
    #[serde(default)]
    pub first_window: Option<Stretch>,
    /// The window with the worst value.
    #[serde(default)]
    pub worst_window: Option<Stretch>,
    /// Windows that could be judged.
    #[serde(default)]
    pub windows: u64,
    /// Windows in which it was missed.
    #[serde(default)]
    pub windows_missed: u64,
    /// The excluded start of the load, nanoseconds.
    #[serde(default)]
    pub left_out_ns: i64,
    /// Why it was not judged.
    #[serde(default)]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests;
