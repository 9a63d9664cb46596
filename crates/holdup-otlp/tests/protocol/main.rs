//! The receiver over real sockets: what it takes, and each way it refuses, in the protocol's own words.

mod grpc;
mod http;
mod python;

use std::net::SocketAddr;
use std::time::Duration;

use holdup_otlp::{Bounds, Receiver};

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

/// The same as protobuf.
fn protobuf() -> Vec<u8> {
    let mut span = vec![0x0a, 16];
    span.extend([0x5b; 16]);
    span.extend([0x12, 8]);
    span.extend([0xc5; 8]);
    span.extend([6 << 3, 2]);
    for (field, time) in [(7_u8, 5_u64), (8, 9)] {
        span.push(field << 3 | 1);
        span.extend(time.to_le_bytes());
    }
    let wrap = |number: u8, inner: Vec<u8>| [vec![number << 3 | 2, inner.len() as u8], inner].concat();
    wrap(1, wrap(2, wrap(2, span)))
}

fn counter(receiver: &Receiver, name: &str) -> f64 {
    let batch = receiver.drain();
    batch.samples.iter().filter(|sample| sample.metric == name).map(|sample| sample.value).sum()
}
