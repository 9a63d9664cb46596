//! Bodies of traces, written by OpenTelemetry's own messages and by prost.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

/// When each span begins, nanoseconds since the Unix epoch, and how long it takes.
const START_NS: u64 = 1_700_000_000_000_000_000;
const DURATION_NS: u64 = 20_000_000;

/// Of every four spans: a server's, a checkout, a statement with values in it, a call.
const SPANS: [(&str, i32); 4] = [("GET /vacancy", 2), ("connection_pool.checkout", 1), ("SELECT shop", 3), ("GET", 3)];

/// A request with `count` spans of one service, which are those from `first` on.
pub fn traces(first: usize, count: usize) -> ExportTraceServiceRequest {
    let spans = (first..first + count).map(span).collect();
    let resource = Resource { attributes: vec![pair("service.name", "shop")], ..Resource::default() };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn span(n: usize) -> Span {
    let (name, kind) = SPANS[n % 4];
    Span {
        trace_id: (n as u128 / 4 + 1).to_be_bytes().to_vec(),
        span_id: (n as u64 + 1).to_be_bytes().to_vec(),
        parent_span_id: (n as u64 / 4 * 4 + 1).to_be_bytes().to_vec(),
        name: name.to_owned(),
        kind,
        start_time_unix_nano: START_NS,
        end_time_unix_nano: START_NS + DURATION_NS,
        attributes: attributes(n),
        status: Some(Status::default()),
        ..Span::default()
    }
}

fn attributes(n: usize) -> Vec<KeyValue> {
    let statement = format!("SELECT id, title, city, salary FROM vacancy WHERE id = {n} AND city = 'c{n}'");
    let pairs: &[(&str, &str)] = match n % 4 {
        0 => &[
            ("http.request.method", "GET"),
            ("http.route", "/vacancy"),
            ("url.path", "/vacancy"),
            ("server.address", "127.0.0.1"),
            ("user_agent.original", "holdup/0.1"),
        ],
        1 => &[("db.client.connection.pool.name", "main")],
        2 => &[
            ("db.system.name", "mariadb"),
            ("db.namespace", "shop"),
            ("db.operation.name", "SELECT"),
            ("db.query.text", &statement),
            ("server.address", "127.0.0.1"),
            ("server.port", "3306"),
        ],
        _ => &[("http.request.method", "GET"), ("server.address", "prices"), ("server.port", "80")],
    };
    pairs.iter().map(|(key, value)| pair(key, value)).collect()
}

fn pair(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}
