//! Bodies of OpenTelemetry's protocol. The first byte chooses signal, encoding and packing, the rest is the body: it is taken or
//! refused, what comes out is bounded by what went in and by the bounds, and a body twice is twice the same.
#![no_main]

use std::time::Duration;

use holdup_otlp::{Bounds, Encoding, Intake, Signal};
use libfuzzer_sys::fuzz_target;

const ROWS_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    let signal = if choice & 1 == 0 { Signal::Traces } else { Signal::Metrics };
    let encoding = if choice & 2 == 0 { Encoding::Json } else { Encoding::Protobuf };
    let bounds = Bounds {
        body_bytes_max: 1 << 20,
        rows_bytes_max: ROWS_BYTES_MAX,
        queue_bytes_max: 4 * ROWS_BYTES_MAX,
        patience: Duration::from_secs(1),
        ..Bounds::default()
    };
    let intake = Intake::new("otlp", bounds);
    let taken = intake.take(signal, encoding, choice & 4 != 0, body);
    let again = intake.take(signal, encoding, choice & 4 != 0, body);
    let batch = intake.drain();
    match (&taken, &again) {
        (Ok(first), Ok(second)) if signal == Signal::Traces => {
            assert_eq!(first, second);
            assert_eq!(batch.spans.len() as u64, first.items + second.items);
        }
        (Ok(_), _) => {}
        // Refused for what it is, it is refused again.
        (Err(_), again) => assert!(again.is_err() && batch.spans.is_empty()),
    }
    let bytes: usize = batch.spans.iter().map(|span| span.name.len() + span.trace_id.len()).sum();
    assert!(bytes <= 2 * ROWS_BYTES_MAX);
    assert!(batch.spans.iter().all(|span| span.duration_ns >= 0));
    // What went wrong is said in the protocol's own words.
    let _ = taken.map(|taken| taken.body(signal, encoding));
});
