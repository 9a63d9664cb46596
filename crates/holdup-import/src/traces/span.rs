//! One span of any source, written as OpenTelemetry's JSON has it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Spans of one body.
const SPANS: usize = 1_000;

/// The facts of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanFacts {
    pub trace_id: String,
    pub span_id: String,
    pub parent_id: String,
    pub service: String,
    pub name: String,
    /// 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: u8,
    pub start_ns: u64,
    pub end_ns: u64,
    pub is_error: bool,
    pub attributes: Vec<(String, Value)>,
}

/// The number of a kind by its name, in any case; internal if it is another.
pub fn kind(name: &str) -> u8 {
    let name = name.to_ascii_lowercase();
    let kinds = [("server", 2), ("client", 3), ("producer", 4), ("consumer", 5)];
    kinds.iter().find(|(known, _)| name.ends_with(known)).map_or(1, |(_, number)| *number)
}

/// Collects spans into bodies.
pub struct Body<'a> {
    put: &'a mut dyn FnMut(&[u8]),
    by_service: BTreeMap<String, Vec<Value>>,
    waiting: usize,
}

impl<'a> Body<'a> {
    pub fn new(put: &'a mut dyn FnMut(&[u8])) -> Self {
        Self { put, by_service: BTreeMap::new(), waiting: 0 }
    }

    /// Adds a span. Ids of half the length, as Zipkin and Jaeger may have them, are padded.
    pub fn add(&mut self, span: SpanFacts) {
        let attributes: Vec<Value> = span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        let mut out = json!({
            "traceId": padded(&span.trace_id, 32),
            "spanId": padded(&span.span_id, 16),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": span.start_ns.to_string(),
            "endTimeUnixNano": span.end_ns.to_string(),
            "attributes": attributes,
            "status": {"code": if span.is_error { 2 } else { 0 }},
        });
        if !span.parent_id.is_empty() {
            out["parentSpanId"] = padded(&span.parent_id, 16).into();
        }
        self.by_service.entry(span.service).or_default().push(out);
        self.waiting += 1;
        if self.waiting >= SPANS {
            self.flush();
        }
    }

    /// Passes a body on as it is.
    pub fn whole(&mut self, document: &Value) {
        (self.put)(document.to_string().as_bytes());
    }

    fn flush(&mut self) {
        self.waiting = 0;
        let services = std::mem::take(&mut self.by_service);
        let resources = services.into_iter().map(|(service, spans)| {
            json!({
                "resource": {"attributes": [attribute("service.name", &service.into())]},
                "scopeSpans": [{"spans": spans}],
            })
        });
        let resources: Vec<Value> = resources.collect();
        if !resources.is_empty() {
            self.whole(&json!({"resourceSpans": resources}));
        }
    }

    /// Passes the rest on.
    pub fn finish(mut self) {
        self.flush();
    }
}

/// An id of so many hex digits: a shorter one is padded, and of one in another form its hash is taken.
fn padded(id: &str, digits: usize) -> String {
    if !id.is_empty() && id.len() <= digits && id.bytes().all(|c| c.is_ascii_hexdigit()) {
        return format!("{id:0>digits$}");
    }
    if id.is_empty() {
        return String::new();
    }
    // FNV-1a, which stays the same from one version to the next.
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = |seed: u64| id.bytes().fold(seed, add);
    let text = format!("{:016x}{:016x}", hash(0xcbf2_9ce4_8422_2325), hash(0x8422_2325_cbf2_9ce4));
    text.get(..digits).unwrap_or(&text).to_owned()
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) if number.is_i64() => json!({ "intValue": number.to_string() }),
        Value::Number(number) => json!({ "doubleValue": number }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": key, "value": value })
}
