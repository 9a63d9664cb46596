//! A shop that asks two services at once, from a file of traces: the slower answer is what its requests
//! wait for, and a faster one of the other gives nothing back.

use serde_json::{Value, json};

use crate::program::{finish, holdup};

/// 2026-11-26 10:00:00 UTC, nanoseconds.
const START_NS: u64 = 1_795_687_200_000_000_000;
const MS: u64 = 1_000_000;

/// Twenty requests a second for ten seconds: stock answers after 80 ms, prices after 50 ms, and what is
/// written for the auditors takes as long as it likes.
fn traces() -> String {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let spans = (1..=200u64).flat_map(|number| {
        let span = |id: u64, name: &str, kind: u8, from_ms: u64, took_ms: u64, attributes: Value| {
            let at = START_NS + (number * 50 + from_ms) * MS;
            json!({
                "traceId": format!("{number:032x}"), "spanId": format!("{:016x}", number * 8 + id),
                "parentSpanId": if id == 0 { String::new() } else { format!("{:016x}", number * 8) },
                "name": name, "kind": kind, "startTimeUnixNano": at.to_string(),
                "endTimeUnixNano": (at + took_ms * MS).to_string(), "attributes": attributes,
            })
        };
        let call = |host: &str| json!([attribute("http.request.method", "GET"), attribute("server.address", host)]);
        [
            span(0, "GET /orders", 2, 0, 100, json!([attribute("http.request.method", "GET")])),
            span(1, "GET", 3, 10, 80, call("stock.example")),
            span(2, "GET", 3, 10, 50, call("price.example")),
            span(3, "GET", 3, 95, 300, call("audit.example")),
        ]
    });
    let spans: Vec<Value> = spans.collect();
    let resource = json!({"attributes": [attribute("service.name", "shop")]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}).to_string()
}

#[test]
fn only_the_slower_of_two_calls_at_once_is_worth_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("traces.json"), traces()).unwrap();
    let done = finish(holdup(["import", "traces.json", "-o", "r"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let brief = finish(holdup(["diagnose", "r"]).current_dir(dir.path()), 60).stdout;
    let brief = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "A fix gives back: GET /orders (200 traced): 40.0 ms faster in stock.example saves 30.0 ms of the mean \
                and 30.0 ms of p99; 25.0 ms faster in price.example saves nothing";
    assert!(brief.contains(line), "{brief}");
    let json = finish(holdup(["diagnose", "r", "--json"]).current_dir(dir.path()), 60).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let path = &json["critical_path"][0];
    assert_eq!((&path["requests"], &path["not_awaited"]), (&json!(200), &json!(200)), "{path:#}");
    let figures = |what: &str| {
        let part = path["parts"].as_array().unwrap().iter().find(|part| part["what"] == what);
        part.map(|part| (part["path_ms"].as_f64(), part["saves_ms"].as_f64(), part["saves_p99_ms"].as_f64()))
    };
    assert_eq!(figures("stock.example"), Some((Some(80.0), Some(30.0), Some(30.0))), "{path:#}");
    assert_eq!(figures("price.example"), Some((Some(0.0), Some(0.0), Some(0.0))), "{path:#}");
    // The ledger has the path, too: the calls at once do not add up to more than the request.
    let row = &json["ledger"][0];
    assert_eq!((&row["band"], &row["response_ms"], &row["residual_ms"]), (&json!("all"), &json!(100.0), &json!(0.0)));
    let parts = json!([{"part": "downstream", "ms": 80.0, "error_ms": 0.0}, {"part": "app_other", "ms": 20.0, "error_ms": 0.0}]);
    assert_eq!(row["parts"], parts, "{row:#}");
}
