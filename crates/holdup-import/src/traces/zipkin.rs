//! Zipkin's JSON, version 2: an array of spans.

use serde_json::Value;

use super::span::{SpanFacts, kind};

/// # Errors
/// What is missing.
pub fn span(one: &Value) -> Result<SpanFacts, String> {
    let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
    let start_ns = one.get("timestamp").and_then(Value::as_u64).ok_or("a span has no timestamp")?.saturating_mul(1_000);
    let duration_ns = one.get("duration").and_then(Value::as_u64).unwrap_or(0).saturating_mul(1_000);
    let of = |end: &str, key: &str| one.get(end).and_then(|e| e.get(key)).cloned();
    let mut attributes = Vec::new();
    let mut is_error = false;
    for (key, value) in one.get("tags").and_then(Value::as_object).into_iter().flatten() {
        is_error |= key == "error";
        attributes.push((key.clone(), value.clone()));
    }
    if let Some(name) = of("remoteEndpoint", "serviceName").or_else(|| of("remoteEndpoint", "ipv4")) {
        attributes.push(("peer.service".to_owned(), name));
    }
    if let Some(port) = of("remoteEndpoint", "port") {
        attributes.push(("net.peer.port".to_owned(), port));
    }
    let service = of("localEndpoint", "serviceName");
    Ok(SpanFacts {
        trace_id: text("traceId").to_owned(),
        span_id: text("id").to_owned(),
        parent_id: text("parentId").to_owned(),
        service: service.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
        name: text("name").to_owned(),
        kind: kind(text("kind")),
        start_ns,
        end_ns: start_ns.saturating_add(duration_ns),
        is_error,
        attributes,
    })
}
