//! Spans as an `ExportTraceServiceRequest` in OTLP's JSON.

use serde_json::{Value, json};

use super::{Activity, Span};

/// The body for a batch.
pub fn body(spans: &[Span]) -> String {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let service = json!({"attributes": [attribute("service.name", "holdup-service")]});
    let scope = json!({"scope": {"name": "holdup-service"}, "spans": spans});
    json!({"resourceSpans": [{"resource": service, "scopeSpans": [scope]}]}).to_string()
}

fn span(span: &Span) -> Value {
    // Kinds by number: 1 internal, 2 server, 3 client. Status 2 is an error.
    let (name, kind, attributes) = match &span.activity {
        Activity::Request(route, status) => (
            format!("GET {route}"),
            2,
            vec![
                attribute("http.request.method", "GET"),
                attribute("http.route", route),
                number("http.response.status_code", *status),
            ],
        ),
        Activity::Checkout => {
            ("connection_pool.checkout".to_owned(), 1, vec![attribute("db.client.connection.pool.name", "main")])
        }
        Activity::Statement(system, peer, sql) => {
            let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
            let mut attributes = vec![
                attribute("db.system.name", system),
                attribute("db.query.text", sql),
                attribute("db.operation.name", &word.to_ascii_uppercase()),
            ];
            if let Some((host, port)) = peer {
                attributes.extend([attribute("server.address", host), number("server.port", *port)]);
            }
            (word.to_ascii_uppercase(), 3, attributes)
        }
        Activity::Downstream => (
            "GET".to_owned(),
            3,
            vec![attribute("http.request.method", "GET"), attribute("server.address", "neighbour")],
        ),
    };
    let mut value = json!({
        "traceId": format!("{:032x}", span.trace_id),
        "spanId": format!("{:016x}", span.id),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes,
        "status": if span.is_error { json!({"code": 2}) } else { json!({}) },
    });
    if span.parent_id != 0 {
        value["parentSpanId"] = format!("{:016x}", span.parent_id).into();
    }
    value
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u16) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
