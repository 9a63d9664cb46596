//! The receiver over real sockets: what it takes, and each way it refuses, in the protocol's own words.

mod grpc;
mod http;
mod python;

use std::net::SocketAddr;
use std::time::Duration;

use holdup_otlp::{Bounds, Receiver};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

/// A receiver with these bounds, on a free port.
fn receiver(bounds: Bounds) -> (Receiver, SocketAddr) {
    let receiver = Receiver::start("otlp", &[SocketAddr::from(([127, 0, 0, 1], 0))], bounds).expect("a free port");
    let address = receiver.addresses()[0];
    (receiver, address)
}

/// Bounds that a test can reach.
fn small() -> Bounds {
    Bounds { body_bytes_max: 10_000, patience: Duration::from_millis(300), ..Bounds::default() }
}

/// One span as JSON.
const JSON: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5bd66ef5095369c7b0d1f8f4bd33716a",
    "spanId":"c532cb4098ac3dd2","kind":2,"startTimeUnixNano":"5","endTimeUnixNano":"9"}]}]}]}"#;

/// A span like it as protobuf.
fn protobuf() -> Vec<u8> {
    let span = Span {
        trace_id: vec![0x5b; 16],
        span_id: vec![0xc5; 8],
        kind: 2,
        start_time_unix_nano: 5,
        end_time_unix_nano: 9,
        ..Span::default()
    };
    request(span).encode_to_vec()
}

/// A request with one span.
fn request(span: Span) -> ExportTraceServiceRequest {
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

fn counter(receiver: &Receiver, name: &str) -> f64 {
    let batch = receiver.drain();
    batch.samples.iter().filter(|sample| sample.metric == name).map(|sample| sample.value).sum()
}
