//! `json:FILE`: JSON lines, one per second while the load runs (`"type": "second"`), and a final
//! summary (`"type": "summary"`).

use std::path::Path;

use hdrhistogram::Histogram;
use holdup_diagnose::Diagnosis;
use holdup_load::stats::Second;
use holdup_recording::clock;
use serde_json::{Map, Value, json};

use crate::figures::{
    QUANTILES, achieved, failed, failures_of_all, length_s, max_ms, mean_ms, offered, quantile_ms, response_of_all,
};

/// The line of one second.
pub fn second(second: &Second) -> String {
    let completed: u64 = second.operations.iter().map(|o| o.completed).sum();
    let failures = failures_of_all(second);
    let operations: Vec<Value> = second
        .operations
        .iter()
        .map(|o| {
            json!({
                "operation": o.name,
                "completed": o.completed,
                "failed": failed(o),
                "errors": o.failures,
                "response_ms": times(&o.latencies.response),
                "service_ms": times(&o.latencies.service),
                "send_lag_ms": times(&o.latencies.send_lag),
            })
        })
        .collect();
    let line = json!({
        "type": "second",
        "time": clock::rfc3339(second.started_at),
        "elapsed_s": second.from.as_secs_f64(),
        "length_s": length_s(second),
        "phase": second.phase,
        "offered_rate": offered(second),
        "achieved_rate": achieved(second),
        "in_flight": second.in_flight,
        "waiting": second.waiting,
        "completed": completed,
        "failed": failures.values().sum::<u64>(),
        "errors": failures,
        "response_ms": times(&response_of_all(second)),
        "operations": operations,
    });
    format!("{line}\n")
}

/// The last line: the verdict in short and the load's totals, in the form of `holdup diagnose
/// --json`.
pub fn summary(name: &str, recording: &Path, interrupted: bool, diagnosis: &Diagnosis) -> serde_json::Result<String> {
    let line = json!({
        "type": "summary",
        "name": name,
        "recording": recording.display().to_string(),
        "interrupted": interrupted,
        "verdict": serde_json::to_value(diagnosis.verdict)?,
        "culprit": diagnosis.culprit,
        "headline": diagnosis.headline,
        "objectives": serde_json::to_value(&diagnosis.objectives)?,
        "search": serde_json::to_value(&diagnosis.search)?,
        "load": serde_json::to_value(&diagnosis.load)?,
    });
    Ok(format!("{line}\n"))
}

/// Percentiles, mean and maximum; null if nothing ended.
fn times(histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    let mut map: Map<String, Value> =
        QUANTILES.iter().map(|(name, q)| ((*name).to_owned(), json!(quantile_ms(histogram, *q)))).collect();
    map.insert("mean".to_owned(), json!(mean_ms(histogram)));
    map.insert("max".to_owned(), json!(max_ms(histogram)));
    map.insert("count".to_owned(), json!(histogram.len()));
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests;

    #[test]
    fn a_second_is_one_line() {
        let text = second(&tests::second(3, &[("timeout", 2), ("http_status", 1)]));
        assert_eq!((text.matches('\n').count(), text.ends_with('\n')), (1, true));
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["type"], &line["time"]), (&json!("second"), &json!("2026-01-01T00:00:03.000Z")));
        assert_eq!((&line["completed"], &line["failed"]), (&json!(100), &json!(3)));
        assert_eq!(line["errors"], json!({"timeout": 2, "http_status": 1}));
        assert_eq!((&line["achieved_rate"], &line["response_ms"]["count"]), (&json!(100.0), &json!(100)));
        let order = &line["operations"][1];
        assert_eq!((&order["operation"], &order["response_ms"]), (&json!("order \"new\""), &Value::Null));
    }
}
