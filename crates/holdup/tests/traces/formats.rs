//! Spans of the system as files of each format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::run::{Failure, Kind, SpanFacts};
use super::system::System;

/// The run's start, microseconds since the epoch.
pub const START_US: i64 = 1_793_693_350_000_000;

/// The formats in turn; the file's name, and its content.
pub fn file(number: u64, system: &System, spans: &[SpanFacts]) -> (&'static str, String) {
    match number % 5 {
        0 => ("traces.json", otlp(system, spans)),
        1 => ("jaeger.json", jaeger(system, spans)),
        2 => ("zipkin.json", zipkin(system, spans)),
        3 => ("spans.csv", csv(system, spans)),
        _ => ("pods.csv", plain_csv(system, spans)),
    }
}

fn otlp(system: &System, spans: &[SpanFacts]) -> String {
    let mut text = String::new();
    for part in spans.chunks(200) {
        text += r#"{"resourceSpans":["#;
        for (i, span) in part.iter().enumerate() {
            let mut attributes = Vec::new();
            let mut put = |key: &str, value: &str| {
                attributes.push(format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#))
            };
            put("rpc.system", "grpc");
            match span.kind {
                Kind::Database => put("db.system", "postgresql"),
                Kind::Client => put("server.address", span.peer.map_or("", |peer| &system.names[peer])),
                Kind::Server => {}
            }
            if span.failed == Some(Failure::Code) {
                put("rpc.grpc.status_code", "13");
            }
            let events =
                if span.failed == Some(Failure::Exception) { r#","events":[{"name":"exception"}]"# } else { "" };
            let code = if span.failed == Some(Failure::Status) { 2 } else { 0 };
            let kind = if span.kind == Kind::Server { 2 } else { 3 };
            let parent =
                if span.parent == 0 { String::new() } else { format!(r#""parentSpanId":"{:016x}","#, span.parent) };
            let _ = write!(
                text,
                r#"{}{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{}"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"{:016x}",{parent}"name":"{}","kind":{kind},"startTimeUnixNano":"{}000","endTimeUnixNano":"{}000","attributes":[{}],"status":{{"code":{code}}}{events}}}]}}]}}"#,
                if i == 0 { "" } else { "," },
                system.names[span.service],
                span.trace,
                span.id,
                span.name,
                START_US + span.from_us,
                START_US + span.to_us,
                attributes.join(","),
            );
        }
        text += "]}\n";
    }
    text
}

fn jaeger(system: &System, spans: &[SpanFacts]) -> String {
    let mut traces = Vec::new();
    for (trace, spans) in by_trace(spans) {
        let mut all = Vec::new();
        for span in spans {
            let mut tags = vec![format!(
                r#"{{"key":"span.kind","value":"{}"}}"#,
                if span.kind == Kind::Server { "server" } else { "client" }
            )];
            tags.push(r#"{"key":"http.method","value":"GET"}"#.to_owned());
            if span.kind == Kind::Database {
                tags.push(r#"{"key":"db.system","value":"mysql"}"#.to_owned());
            }
            match span.failed {
                Some(Failure::Status) => tags.push(r#"{"key":"error","type":"bool","value":true}"#.to_owned()),
                Some(Failure::Code) => tags.push(r#"{"key":"http.status_code","value":500}"#.to_owned()),
                _ => {}
            }
            let logs = match span.failed {
                Some(Failure::Exception) => r#"[{"fields":[{"key":"event","value":"exception"}]}]"#,
                _ => "[]",
            };
            let parent = if span.parent == 0 {
                String::new()
            } else {
                format!(r#"{{"refType":"CHILD_OF","spanID":"{:x}"}}"#, span.parent)
            };
            all.push(format!(
                r#"{{"traceID":"{trace:x}","spanID":"{:x}","operationName":"{}","references":[{parent}],"startTime":{},"duration":{},"tags":[{}],"logs":{logs},"processID":"p{}"}}"#,
                span.id, span.name, START_US + span.from_us, span.to_us - span.from_us, tags.join(","), span.service
            ));
        }
        let processes: Vec<String> =
            system.names.iter().enumerate().map(|(i, name)| format!(r#""p{i}":{{"serviceName":"{name}"}}"#)).collect();
        traces.push(format!(
            r#"{{"traceID":"{trace:x}","spans":[{}],"processes":{{{}}}}}"#,
            all.join(","),
            processes.join(",")
        ));
    }
    format!(r#"{{"data":[{}]}}"#, traces.join(",\n"))
}

fn zipkin(system: &System, spans: &[SpanFacts]) -> String {
    let one = |span: &SpanFacts| {
        let parent = if span.parent == 0 { String::new() } else { format!(r#""parentId":"{:x}","#, span.parent) };
        let mut tags = vec![r#""http.method":"GET""#.to_owned()];
        match span.failed {
            Some(Failure::Status) => tags.push(r#""error":"it failed""#.to_owned()),
            Some(Failure::Exception) => tags.push(r#""exception.type":"IllegalState""#.to_owned()),
            Some(Failure::Code) => tags.push(r#""http.status_code":"503""#.to_owned()),
            None => {}
        }
        if span.kind == Kind::Database {
            tags.push(r#""db.system":"postgresql""#.to_owned());
        }
        let peer = span
            .peer
            .map_or(String::new(), |peer| format!(r#","remoteEndpoint":{{"serviceName":"{}"}}"#, system.names[peer]));
        format!(
            r#"{{"traceId":"{:x}","id":"{:x}",{parent}"name":"{}","kind":"{}","timestamp":{},"duration":{},"localEndpoint":{{"serviceName":"{}"}}{peer},"tags":{{{}}}}}"#,
            span.trace,
            span.id,
            span.name,
            if span.kind == Kind::Server { "SERVER" } else { "CLIENT" },
            START_US + span.from_us,
            span.to_us - span.from_us,
            system.names[span.service],
            tags.join(",")
        )
    };
    format!("[{}]", spans.iter().map(one).collect::<Vec<_>>().join(",\n"))
}

fn csv(system: &System, spans: &[SpanFacts]) -> String {
    let mut text = "trace_id,span_id,parent_id,service,name,kind,start_time,duration_us,status,http_status_code,db_system,http_method\n".to_owned();
    for span in spans {
        let parent = if span.parent == 0 { String::new() } else { format!("{:x}", span.parent) };
        let status = if matches!(span.failed, Some(Failure::Status | Failure::Exception)) { "error" } else { "" };
        let code = if span.failed == Some(Failure::Code) { "500" } else { "" };
        let database = if span.kind == Kind::Database { "mysql" } else { "" };
        let method = if span.kind == Kind::Database { "" } else { "GET" };
        let kind = if span.kind == Kind::Server { "server" } else { "client" };
        let _ = writeln!(
            text,
            "{:x},{:x},{parent},{},{},{kind},{},{},{status},{code},{database},{method}",
            span.trace,
            span.id,
            system.names[span.service],
            span.name,
            START_US + span.from_us,
            span.to_us - span.from_us
        );
    }
    text
}

/// As a store of traces by pods has them: no kinds and no attributes.
fn plain_csv(system: &System, spans: &[SpanFacts]) -> String {
    let mut text =
        "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,Duration,StatusCode\n"
            .to_owned();
    for span in spans {
        let parent = if span.parent == 0 { "root".to_owned() } else { format!("{:016x}", span.parent) };
        let _ = writeln!(
            text,
            "{:032x},{:016x},{parent},{}-5f6585d649-fnm4t,{},{}000,{}000,{},{}",
            span.trace,
            span.id,
            system.names[span.service],
            span.name,
            START_US + span.from_us,
            START_US + span.to_us,
            span.to_us - span.from_us,
            if span.failed.is_some() { 2 } else { 0 }
        );
    }
    text
}

/// By trace, the spans of it.
fn by_trace(spans: &[SpanFacts]) -> BTreeMap<u64, Vec<&SpanFacts>> {
    let mut all: BTreeMap<u64, Vec<&SpanFacts>> = BTreeMap::new();
    for span in spans {
        all.entry(span.trace).or_default().push(span);
    }
    all
}
