//! `csv:FILE`: a row per second and operation, in the form of RFC 4180, with its line ends.

use std::fmt::Write as _;

use holdup_load::stats::{OperationSecond, Second};
use holdup_recording::clock;

use crate::figures::{QUANTILES, failed, length_s, max_ms, mean_ms, offered, quantile_ms};

/// The columns before and after the percentiles of response time.
const BEFORE: [&str; 10] = [
    "time",
    "elapsed_s",
    "length_s",
    "phase",
    "offered_rate",
    "in_flight",
    "waiting",
    "operation",
    "completed",
    "failed",
];
const AFTER: [&str; 6] =
    ["response_mean_ms", "response_max_ms", "service_p50_ms", "service_p99_ms", "send_lag_p99_ms", "errors"];

/// Line end (RFC 4180, section 2).
const END: &str = "\r\n";

/// The header line.
pub fn header() -> String {
    let percentiles = QUANTILES.map(|(name, _)| format!("response_{name}_ms"));
    let columns = BEFORE.into_iter().chain(percentiles.iter().map(String::as_str)).chain(AFTER);
    columns.collect::<Vec<_>>().join(",") + END
}

/// One line per operation.
pub fn rows(second: &Second) -> String {
    second.operations.iter().map(|operation| row(second, operation)).collect()
}

fn row(second: &Second, operation: &OperationSecond) -> String {
    let mut line = format!(
        "{},{:.3},{:.3},{},{},{},{},{},{},{}",
        clock::rfc3339(second.started_at),
        second.from.as_secs_f64(),
        length_s(second),
        field(&second.phase),
        offered(second),
        second.in_flight,
        second.waiting,
        field(&operation.name),
        operation.completed,
        failed(operation)
    );
    let times = &operation.latencies;
    let response = QUANTILES.map(|(_, quantile)| quantile_ms(&times.response, quantile));
    let others = [
        mean_ms(&times.response),
        max_ms(&times.response),
        quantile_ms(&times.service, 0.5),
        quantile_ms(&times.service, 0.99),
        quantile_ms(&times.send_lag, 0.99),
    ];
    for value in response.into_iter().chain(others) {
        line.push(',');
        // Without requests the field stays empty, because a time of zero would be wrong.
        let _ = value.map_or(Ok(()), |value| write!(line, "{value}"));
    }
    let errors: Vec<String> = operation.failures.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
    line + "," + &field(&errors.join(" ")) + END
}

/// Quotes a field if needed (RFC 4180, section 2).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::second;

    #[test]
    fn a_row_an_operation_with_as_many_fields_as_the_header() {
        let text = rows(&second(3, &[("timeout", 2), ("http_status", 1)]));
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0]
                .starts_with("2026-01-01T00:00:03.000Z,3.000,1.000,\"110/s, \"\"first\"\"\",110,3,1,search,100,0,10."),
            "{}",
            lines[0]
        );
        // Nothing ended in time: no times, and the failures by kind.
        let tail = ",\"order \"\"new\"\"\",0,3,,,,,,,,,,,http_status=1 timeout=2";
        assert!(lines[1].ends_with(tail), "{}", lines[1]);
        let columns = header().trim_end().split(',').count();
        assert_eq!(lines[1].replace("\"110/s, \"\"first\"\"\"", "x").split(',').count(), columns);
        assert_eq!(header().lines().count(), 1);
    }
}
