//! Jaeger's JSON: an answer of its API or a download of its UI, `{"data": [TRACE, …]}`, or a trace.

use serde_json::Value;

use super::span::{Body, SpanFacts, kind};

/// # Errors
/// What is missing.
pub fn read(document: &Value, body: &mut Body<'_>) -> Result<(), String> {
    let traces = match document.get("data").and_then(Value::as_array) {
        Some(all) => all.iter().collect(),
        None => vec![document],
    };
    for trace in traces {
        let spans = trace.get("spans").and_then(Value::as_array).ok_or("it has no spans")?;
        for one in spans {
            body.add(span(one, trace)?);
        }
    }
    Ok(())
}

fn span(one: &Value, trace: &Value) -> Result<SpanFacts, String> {
    let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
    let micros = |key: &str| one.get(key).and_then(Value::as_u64).ok_or_else(|| format!("a span has no {key}"));
    let start_ns = micros("startTime")?.saturating_mul(1_000);
    let process = match one.get("process") {
        Some(process) => Some(process),
        None => trace.get("processes").and_then(|all| all.get(text("processID"))),
    };
    let service = process.and_then(|p| p.get("serviceName")).and_then(Value::as_str).unwrap_or_default();
    let mut facts = SpanFacts {
        trace_id: text("traceID").to_owned(),
        span_id: text("spanID").to_owned(),
        parent_id: parent(one).to_owned(),
        service: service.to_owned(),
        name: text("operationName").to_owned(),
        kind: 1,
        start_ns,
        end_ns: start_ns.saturating_add(micros("duration")?.saturating_mul(1_000)),
        ..SpanFacts::default()
    };
    for tag in one.get("tags").and_then(Value::as_array).into_iter().flatten() {
        let (Some(key), Some(value)) = (tag.get("key").and_then(Value::as_str), tag.get("value")) else { continue };
        match key {
            "span.kind" => facts.kind = kind(value.as_str().unwrap_or_default()),
            "error" => facts.is_error = value.as_bool().unwrap_or(value == "true"),
            "otel.status_code" => facts.is_error |= value == "ERROR",
            _ => facts.attributes.push((key.to_owned(), value.clone())),
        }
    }
    let logs = one.get("logs").and_then(Value::as_array).into_iter().flatten();
    let fields = logs.flat_map(|log| log.get("fields").and_then(Value::as_array).into_iter().flatten());
    for field in fields.filter(|field| field.get("key").is_some_and(|key| key == "event")) {
        facts.is_error |= field.get("value").is_some_and(|event| event == "exception" || event == "error");
    }
    Ok(facts)
}

fn parent(span: &Value) -> &str {
    let references = span.get("references").and_then(Value::as_array).into_iter().flatten();
    let mut parents = references.filter(|r| r.get("refType").is_none_or(|kind| kind == "CHILD_OF"));
    let by_reference = parents.next().and_then(|r| r.get("spanID"));
    by_reference.or_else(|| span.get("parentSpanID")).and_then(Value::as_str).unwrap_or_default()
}
