//! Bounds, refusals and counters, without a network.

use std::io::Write;

use super::*;

fn body(spans: usize) -> Vec<u8> {
    let span = |n: usize| {
        let id = n + 1;
        format!(
            r#"{{"traceId":"{id:032x}","spanId":"{id:016x}","name":"x","kind":2,"startTimeUnixNano":"5","endTimeUnixNano":"9"}}"#
        )
    };
    let spans: Vec<String> = (0..spans).map(span).collect();
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(",")).into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn counter(batch: &Batch, name: &str) -> f64 {
    batch.samples.iter().find(|sample| sample.metric == name).map(|sample| sample.value).unwrap()
}

#[test]
fn accepted_items_are_drained_once() {
    let intake = Intake::new("otlp", Bounds::default());
    assert_eq!(intake.take(Signal::Traces, Encoding::Json, true, &gzip(&body(3))).map(|taken| taken.items), Ok(3));
    let batch = intake.drain();
    assert_eq!((batch.spans.len(), counter(&batch, "otlp_spans_total")), (3, 3.0));
    let batch = intake.drain();
    assert_eq!((batch.spans.len(), counter(&batch, "otlp_spans_total")), (0, 3.0));
}

#[test]
fn a_bomb_stops_at_the_bound() {
    let intake = Intake::new("otlp", Bounds { body_bytes_max: 1 << 20, ..Bounds::default() });
    // A gibibyte of blanks in a mebibyte: would it be unpacked, it would take a second and more.
    let member = gzip(&vec![b' '; 16 << 20]);
    let bomb = member.repeat(64);
    let refused = intake.take(Signal::Traces, Encoding::Json, true, &bomb);
    assert_eq!(refused, Err(Refusal::TooLargeUnpacked));
    let cut = gzip(&body(3));
    let cut = cut.get(..cut.len() - 9).unwrap_or_default();
    assert_eq!(intake.take(Signal::Traces, Encoding::Json, true, b"no gzip"), Err(Refusal::NotGzip));
    assert_eq!(intake.take(Signal::Traces, Encoding::Json, true, cut), Err(Refusal::NotGzip));
}

#[test]
fn without_room_a_body_is_refused_whole_and_taken_later() {
    let intake = Intake::new("otlp", Bounds { queue_bytes_max: 100_000, ..Bounds::default() });
    let body = body(100);
    let mut taken = 0;
    while intake.take(Signal::Traces, Encoding::Json, false, &body).is_ok() {
        taken += 100;
        assert!(taken < 1_000, "the limit does not apply");
    }
    let batch = intake.drain();
    assert_eq!(batch.spans.len(), taken);
    assert_eq!(counter(&batch, "otlp_refused_spans_total"), 100.0);
    assert!(intake.take(Signal::Traces, Encoding::Json, false, &body).is_ok());
}

#[test]
fn rows_of_one_body_are_bounded_and_the_rest_is_rejected() {
    let intake = Intake::new("otlp", Bounds { rows_bytes_max: 50_000, ..Bounds::default() });
    let taken = intake.take(Signal::Traces, Encoding::Json, false, &body(1_000)).unwrap();
    assert_eq!(taken.items + taken.rejected, 1_000);
    assert!((50..500).contains(&taken.items), "{taken:?}");
    let answer = taken.body(Signal::Traces, Encoding::Json);
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], taken.rejected.to_string());
}

#[test]
fn spans_that_are_none_are_rejected_and_the_others_taken() {
    let intake = Intake::new("otlp", Bounds::default());
    let body = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"},
        {"traceId":"5bd66ef5095369c7b0d1f8f4bd33716a","spanId":"c532cb4098ac3dd2","startTimeUnixNano":5,"endTimeUnixNano":6}]}]}]}"#;
    let taken = intake.take(Signal::Traces, Encoding::Json, false, body.as_bytes()).unwrap();
    assert_eq!((taken.items, taken.rejected), (1, 1));
    assert_eq!(taken.body(Signal::Traces, Encoding::Protobuf)[..5], [0x0a, taken.why.len() as u8 + 4, 8, 1, 0x12]);
    assert_eq!(BodyResult::default().body(Signal::Traces, Encoding::Json), b"{}");
    assert!(BodyResult::default().body(Signal::Traces, Encoding::Protobuf).is_empty());
}

#[test]
fn increments_of_a_refused_body_are_not_counted() {
    let intake = Intake::new("otlp", Bounds { queue_bytes_max: 1_000, ..Bounds::default() });
    let body = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"x","sum":{"isMonotonic":true,"aggregationTemporality":1,
        "dataPoints":[{"timeUnixNano":5,"asInt":1}]}}]}]}]}"#;
    let take = || intake.take(Signal::Metrics, Encoding::Json, false, body);
    let mut taken = 0.0;
    while take().is_ok() {
        taken += 1.0;
    }
    let last = |batch: &Batch| batch.samples.iter().rev().find(|s| s.metric == "x_total").map(|s| s.value);
    assert_eq!(last(&intake.drain()), Some(taken));
    take().unwrap();
    assert_eq!(last(&intake.drain()), Some(taken + 1.0));
}
