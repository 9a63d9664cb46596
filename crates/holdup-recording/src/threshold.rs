//! An objective as data: the metric, the requests, the limit and the window; and its form in the
//! manifest, which readers of format 1.1 and below, who knew fewer metrics, do not misjudge.
//! [`crate::objective`] decides whether it was met.

use serde::{Deserialize, Serialize};

/// Metrics that readers of format 1.1 and below know. They take any other for the longest response
/// time.
const KNOWN_OF_OLD: [&str; 8] = ["p50", "p90", "p95", "p99", "p999", "max", "mean", "errors"];

/// An objective on response time, on the share of errors or on the achieved rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredThreshold", into = "StoredThreshold")]
pub struct Threshold {
    /// As the user wrote it.
    pub text: String,
    /// `p50`, `p99`, `p99.9` or any other percentile, `max`, `mean` (response time, ms), `errors` (ratio) or `rate`
    /// (successes per second). `p999` is `p99.9`.
    pub metric: String,
    /// The limit: milliseconds; a ratio 0-1 for `errors`; successes per second for `rate`. The
    /// value must stay below it, a rate above it.
    pub below: f64,
    /// The operation it covers; empty for all together.
    pub operation: Option<String>,
    /// Whether `operation` is the name of a group and ends with `/`: it covers all operations that
    /// begin with it.
    pub is_group: bool,
    /// It must hold in every window of this length, nanoseconds (whole seconds); empty for the run
    /// as a whole.
    pub window_ns: Option<i64>,
    /// Whether missing it ends the run.
    pub abort: bool,
    /// … but windows that begin earlier than this after the start, nanoseconds, do not end it.
    pub abort_after_ns: i64,
}

impl Threshold {
    /// Whether it covers `operation`.
    pub fn covers(&self, operation: &str) -> bool {
        match &self.operation {
            None => true,
            Some(group) if self.is_group => operation.starts_with(group.as_str()),
            Some(name) => name == operation,
        }
    }
}

/// A threshold in the manifest's form.
#[derive(Clone, Serialize, Deserialize)]
struct StoredThreshold {
    text: String,
    metric: String,
    below: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    /// The limit, if `below` must be out of reach, because old readers would apply it to another
    /// metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    #[serde(default, skip_serializing_if = "is_false")]
    is_group: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "is_false")]
    abort: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    abort_after_ns: i64,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

impl From<Threshold> for StoredThreshold {
    fn from(threshold: Threshold) -> Self {
        let Threshold { text, metric, below, operation, is_group, window_ns, abort, abort_after_ns } = threshold;
        let (below, limit) =
            if KNOWN_OF_OLD.contains(&metric.as_str()) { (below, None) } else { (f64::MAX, Some(below)) };
        Self { text, metric, below, operation, limit, is_group, window_ns, abort, abort_after_ns }
    }
}

impl From<StoredThreshold> for Threshold {
    fn from(stored: StoredThreshold) -> Self {
        let StoredThreshold { text, metric, below, operation, limit, is_group, window_ns, abort, abort_after_ns } =
            stored;
        let below = limit.unwrap_or(below);
        Self { text, metric, below, operation, is_group, window_ns, abort, abort_after_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_old_manifests_are_read() {
        let old = r#"{"text": "a p99 < 500ms", "metric": "p99", "below": 500.0, "operation": "a"}"#;
        let threshold: Threshold = serde_json::from_str(old).unwrap();
        let expected = Threshold {
            text: "a p99 < 500ms".to_owned(),
            metric: "p99".to_owned(),
            below: 500.0,
            operation: Some("a".to_owned()),
            ..Threshold::default()
        };
        assert_eq!(threshold, expected);
        // Metrics that old readers know keep their old form.
        let written: serde_json::Value = serde_json::to_value(&threshold).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(old).unwrap());
    }

    #[test]
    fn old_readers_cannot_misjudge_new_thresholds() {
        let new = Threshold {
            text: "checkout/ rate > 50 for 30s".to_owned(),
            metric: "rate".to_owned(),
            below: 50.0,
            operation: Some("checkout/".to_owned()),
            is_group: true,
            window_ns: Some(30_000_000_000),
            abort: true,
            abort_after_ns: 5_000_000_000,
        };
        let json = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["below"], f64::MAX);
        assert_eq!(serde_json::from_str::<Threshold>(&json).unwrap(), new);
    }

    #[test]
    fn a_group_is_what_begins_with_its_name() {
        let group = Threshold { operation: Some("shop/".to_owned()), is_group: true, ..Threshold::default() };
        assert!(group.covers("shop/pay") && !group.covers("shopping") && !group.covers("shop"));
        // A path may end with a slash and is a group of its own only if it was meant so.
        let path = Threshold { operation: Some("/".to_owned()), ..Threshold::default() };
        assert!(path.covers("/") && !path.covers("/search") && Threshold::default().covers("any"));
    }
}
