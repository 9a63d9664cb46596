//! Turns one parsed span into a row: the resource for which it waits, the peer, and the statement.
//! Pure, and the only place that decides this; the span's encoding is parsed elsewhere.

use std::borrow::Cow;

use holdup_recording::rows;

use crate::attributes::{Attributes, Topic, Value};
use crate::bounds::{DIGEST_TEXT_BYTES_MAX, STATEMENT_BYTES_MAX, TEXT_BYTES_MAX, cut};
use crate::span_names;
use crate::statement::Reading;

/// The flags that say whether the parent's process is known, and whether it is another one
/// (`opentelemetry/proto/trace/v1/trace.proto`, `SpanFlags`).
const PARENT_IS_REMOTE: u64 = 0x300;

/// Kinds of spans by OTLP number.
pub const KINDS: [&str; 6] = ["internal", "internal", "server", "client", "producer", "consumer"];
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
const PRODUCER: u64 = 4;
const CONSUMER: u64 = 5;

/// Statuses by OTLP number.
pub const STATUSES: [&str; 3] = ["unset", "ok", "error"];

/// Systems that are caches.
const CACHES: [&str; 4] = ["redis", "memcached", "valkey", "keydb"];

/// A parsed span. Missing ids and ids of a wrong length are none.
#[derive(Clone, Debug, Default)]
pub struct ParsedSpan<'a> {
    /// Id of its trace.
    pub trace_id: Option<[u8; 16]>,
    /// Its own id.
    pub span_id: Option<[u8; 8]>,
    /// Id of its parent span.
    pub parent_id: Option<[u8; 8]>,
    /// Entries of systems on the way (W3C `tracestate`).
    pub trace_state: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its kind's number.
    pub kind: u64,
    /// Its flags.
    pub flags: u64,
    /// When it began, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its status' number.
    pub status: u64,
    /// Whether an exception was recorded in it.
    pub has_exception: bool,
    /// Its attributes.
    pub attributes: Attributes<'a>,
}

impl ParsedSpan<'_> {
    /// Whether it has no parent in its own process.
    fn is_local_root(&self) -> bool {
        self.parent_id.is_none() || self.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE
    }
}

/// The row of a span of `service` that was sent to `source`.
///
/// # Errors
/// Why it is rejected.
pub fn row(source: &str, service: &str, span: &ParsedSpan<'_>) -> Result<rows::Span, &'static str> {
    let (Some(trace_id), Some(span_id)) = (span.trace_id, span.span_id) else {
        return Err("a span lacks a trace id of 16 bytes or a span id of 8");
    };
    let started_at = i64::try_from(span.start_ns).unwrap_or_default();
    if started_at == 0 || span.end_ns < span.start_ns {
        return Err("a span has no start time, or ends before it");
    }
    let resource = resource(span);
    let system = span.attributes.text(Topic::DatabaseSystem);
    let reading = Reading::for_system(system.as_deref());
    let statement = span.attributes.text(Topic::Statement).filter(|_| resource == "database");
    let digest_text = statement.and_then(|statement| reading.without_values(cut(&statement, STATEMENT_BYTES_MAX)));
    let host = span.attributes.text(Topic::Peer).filter(|_| resource != "request");
    let system = match resource {
        "database" | "cache" | "pool" => system,
        "queue" => span.attributes.text(Topic::Messaging),
        "http" | "other" => host.clone(),
        _ => None,
    };
    Ok(rows::Span {
        started_at,
        duration_ns: i64::try_from(span.end_ns - span.start_ns).unwrap_or(i64::MAX),
        source: source.to_owned(),
        service: cut(service, TEXT_BYTES_MAX).to_owned(),
        trace_id: hex(&trace_id),
        span_id: Some(hex(&span_id)),
        parent_id: span.parent_id.map(|id| hex(&id)),
        name: span_names::name(resource, reading, &span.name),
        kind: KINDS.get(span.kind as usize).copied().unwrap_or("internal").to_owned(),
        resource: resource.to_owned(),
        system: system.map(|system| cut(&system, TEXT_BYTES_MAX).to_owned()),
        peer: host.map(|host| peer(&host, span.attributes.text(Topic::PeerPort).as_deref())),
        digest: digest_text.as_deref().map(holdup_sql::digest_of_text),
        digest_text: digest_text.map(|text| cut(&text, DIGEST_TEXT_BYTES_MAX).to_owned()),
        status: status(span).to_owned(),
        calls: 1,
    })
}

/// Its status. Where it says nothing, an answer for which the server is to blame, an error or an exception do.
fn status(span: &ParsedSpan<'_>) -> &'static str {
    /// gRPC's UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS.
    const GRPC: [f64; 7] = [2.0, 4.0, 8.0, 12.0, 13.0, 14.0, 15.0];
    let code = |of| span.attributes.get(of).and_then(Value::number);
    let is_denied = |text: &str| ["false", "0", "null", "none"].contains(&text.to_ascii_lowercase().as_str());
    // The client's own mistakes (4xx) have a type of error, too.
    let is_http = code(Topic::HttpStatus).map(|code| code >= 500.0);
    let is_error = || span.attributes.text(Topic::Error).is_some_and(|text| !is_denied(&text)) || span.has_exception;
    let has_failed =
        || is_http.unwrap_or_else(is_error) || code(Topic::GrpcStatus).is_some_and(|code| GRPC.contains(&code));
    match STATUSES.get(span.status as usize).copied().unwrap_or("unset") {
        "unset" if has_failed() => "error",
        status => status,
    }
}

/// The resource that it waits for, or `request`.
fn resource(span: &ParsedSpan<'_>) -> &'static str {
    let has = |what| span.attributes.has(what);
    let is_messaging = has(Topic::Messaging) || matches!(span.kind, PRODUCER | CONSUMER);
    if span.kind == SERVER {
        return if has(Topic::Messaging) { "queue" } else { "request" };
    }
    if span.kind == CONSUMER && span.is_local_root() {
        // Work triggered by a message; receiving one is a wait for it.
        let is_receive = span.attributes.text(Topic::Operation).as_deref() == Some("receive");
        return if is_receive { "queue" } else { "request" };
    }
    if has(Topic::DatabaseSystem) || has(Topic::Statement) || has(Topic::Pool) {
        let system = span.attributes.text(Topic::DatabaseSystem).unwrap_or_default();
        if !has(Topic::Statement) && (has(Topic::Pool) || says_checkout(&span.name, true)) {
            return "pool";
        }
        return if CACHES.iter().any(|cache| cache.eq_ignore_ascii_case(&system)) { "cache" } else { "database" };
    }
    if is_messaging {
        return "queue";
    }
    let is_http = has(Topic::Http) || has(Topic::HttpAddress);
    if span.kind == CLIENT && (is_http || has(Topic::Rpc)) {
        return "http";
    }
    // A missing kind is sent as `internal`, or as 0.
    let asks = has(Topic::HttpAddress) || (has(Topic::Http) && has(Topic::Peer));
    if matches!(span.kind, 0 | INTERNAL) && asks && !has(Topic::HttpServer) {
        return "http";
    }
    if says_checkout(&span.name, false) { "pool" } else { "other" }
}

/// Whether a span of this name waits for a pool's connection. Packages have no common name for it:
/// holdup's examples use `connection_pool.checkout`, JDBC `…DataSource.getConnection`, node
/// `pg-pool.connect`, Go `sql.connector.connect`, SQLAlchemy and node `connect` and `pg.connect`
/// (those only with attributes of a database: `is_database`).
fn says_checkout(name: &str, is_database: bool) -> bool {
    let name = name.to_ascii_lowercase();
    let plain = [
        ".getconnection",
        "connection_pool.checkout",
        "pool.checkout",
        "pool.acquire",
        "pool.connect",
        "sql.connector.connect",
    ];
    let beside = ["connect", "pg.connect", "acquire", "checkout", "acquire connection"];
    plain.iter().any(|end| name.ends_with(end)) || (is_database && beside.contains(&name.as_str()))
}

fn peer(host: &str, port: Option<&str>) -> String {
    let host = cut(host, TEXT_BYTES_MAX);
    match port {
        Some(port) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", cut(port, 5)),
        Some(port) => format!("{host}:{}", cut(port, 5)),
        None => host.to_owned(),
    }
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
