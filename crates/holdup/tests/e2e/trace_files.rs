//! Traces at rest, as a person exports them: the same three requests of a shop as OTLP JSON, Jaeger's and Zipkin's
//! JSON, and CSV with names of its own. Each file must give the same spans and the same response times.

use serde_json::{Value, json};

use crate::program::{finish, holdup};

/// 2026-11-26 10:11:12 UTC, microseconds.
const START_US: u64 = 1_795_687_872_000_000;

/// One request: number, start, response time, time in the database, all in microseconds.
fn requests() -> impl Iterator<Item = (u64, u64, u64, u64)> {
    [(100_000, 60_000), (200_000, 150_000), (300_000, 10_000)]
        .into_iter()
        .zip(1..)
        .map(|((response, database), number)| (number, START_US + number * 1_000_000, response, database))
}

fn otlp() -> String {
    let spans: Vec<Value> = requests()
        .flat_map(|(number, start, response, database)| {
            let one = |id: u64, parent: Value, name: &str, kind: u8, us: u64, attributes: Value| {
                json!({
                    "traceId": format!("{number:032x}"), "spanId": format!("{id:016x}"), "parentSpanId": parent,
                    "name": name, "kind": kind, "startTimeUnixNano": (start * 1000).to_string(),
                    "endTimeUnixNano": ((start + us) * 1000).to_string(), "attributes": attributes,
                })
            };
            let system = json!([{"key": "db.system", "value": {"stringValue": "mysql"}}]);
            [
                one(number * 2, json!(""), "GET /orders", 2, response, json!([])),
                one(number * 2 + 1, json!(format!("{:016x}", number * 2)), "SELECT shop.orders", 3, database, system),
            ]
        })
        .collect();
    let service = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]});
    json!({"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": spans}]}]}).to_string()
}

fn jaeger() -> String {
    let spans: Vec<Value> = requests()
        .flat_map(|(number, start, response, database)| {
            let trace = format!("{number:032x}");
            let tags = |kind: &str| json!([{"key": "span.kind", "type": "string", "value": kind}, {"key": "db.system", "value": "mysql"}]);
            let parent = json!([{"refType": "CHILD_OF", "traceID": trace, "spanID": format!("{:016x}", number * 2)}]);
            [
                json!({
                    "traceID": trace, "spanID": format!("{:016x}", number * 2), "operationName": "GET /orders",
                    "references": [], "startTime": start, "duration": response, "processID": "p1",
                    "tags": [{"key": "span.kind", "type": "string", "value": "server"}],
                }),
                json!({
                    "traceID": trace, "spanID": format!("{:016x}", number * 2 + 1), "operationName": "SELECT shop.orders",
                    "references": parent, "startTime": start, "duration": database, "processID": "p1",
                    "tags": tags("client"),
                }),
            ]
        })
        .collect();
    json!({"data": [{"traceID": "1", "spans": spans, "processes": {"p1": {"serviceName": "shop"}}}]}).to_string()
}

fn zipkin() -> String {
    let spans: Vec<Value> = requests()
        .flat_map(|(number, start, response, database)| {
            let trace = format!("{number:016x}");
            let endpoint = json!({"serviceName": "shop"});
            [
                json!({
                    "traceId": trace, "id": format!("{:016x}", number * 2), "name": "get /orders", "kind": "SERVER",
                    "timestamp": start, "duration": response, "localEndpoint": endpoint,
                }),
                json!({
                    "traceId": trace, "id": format!("{:016x}", number * 2 + 1), "parentId": format!("{:016x}", number * 2),
                    "name": "select", "kind": "CLIENT", "timestamp": start, "duration": database,
                    "localEndpoint": endpoint, "tags": {"db.system": "mysql"},
                }),
            ]
        })
        .collect();
    Value::Array(spans).to_string()
}

fn csv() -> String {
    let mut text = "request,part,inside,app,what,role,began_us,took_ms,store\n".to_owned();
    for (number, start, response, database) in requests() {
        let (own, ms) = (number * 2, |us: u64| us as f64 / 1e3);
        text += &format!("{number:032x},{own:016x},,shop,GET /orders,server,{start},{},\n", ms(response));
        text += &format!(
            "{number:032x},{:016x},{own:016x},shop,SELECT shop.orders,client,{start},{},mysql\n",
            own + 1,
            ms(database)
        );
    }
    text
}

const COLUMNS: &str = "trace=request,span=part,parent=inside,service=app,name=what,kind=role,start=began_us,duration=took_ms,system=store";

#[test]
fn traces_of_four_formats_give_the_same_response_times() {
    for (name, text, words, columns) in [
        ("otlp.json", otlp(), "OTLP JSON", None),
        ("jaeger.json", jaeger(), "Jaeger JSON", None),
        ("zipkin.json", zipkin(), "Zipkin JSON", None),
        ("spans.csv", csv(), "CSV of spans", Some(COLUMNS)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), text).unwrap();
        let columns = columns.into_iter().flat_map(|map| ["--columns", map]);
        let arguments = ["import", name, "-o", "r", "--json"].into_iter().chain(columns);
        let done = finish(holdup(arguments).current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
        let found: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((&found["formats"][0], &found["service"]), (&json!(words), &json!("shop")), "{name}: {found}");
        assert_eq!((&found["spans"], &found["rejected"]), (&json!(6), &json!(0)), "{name}: {found}");
        let mean_us = found["response_mean_ms"].as_f64().map(|ms| (ms * 1e3).round());
        assert_eq!((&found["requests"], mean_us), (&json!(3), Some(200_000.0)), "{name}: {found}");
        assert_eq!(found["from"], "2026-11-26T10:11:13.000Z", "{name}: {found}");
        assert!(dir.path().join("r/spans.parquet").exists(), "{name}");
        let judged = finish(holdup(["diagnose", "r"]).current_dir(dir.path()), 60);
        assert_eq!(judged.code(), Some(0), "{name}: {}{}", judged.stdout, judged.stderr);
    }
}

#[test]
fn a_map_that_names_another_column_says_which() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("spans.csv"), csv()).unwrap();
    let map = COLUMNS.replace("start=began_us", "start=began");
    let done = finish(holdup(["import", "spans.csv", "-o", "r", "--columns", &map]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("began") && !dir.path().join("r").exists(), "{}", done.stderr);
}
