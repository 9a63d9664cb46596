//! One body in both encodings, and what is malformed.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span};
use prost::Message as _;

use super::*;
use crate::attributes::Topic;

/// A field of a later version of the protocol.
#[derive(Clone, PartialEq, prost::Message)]
struct Later {
    #[prost(uint64, tag = "99")]
    field: u64,
}

/// A message that is the first field of another.
#[derive(Clone, PartialEq, prost::Message)]
struct Field {
    #[prost(bytes = "vec", tag = "1")]
    bytes: Vec<u8>,
}

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text_attribute(key: &str, value: &str) -> KeyValue {
    attribute(key, Any::StringValue(value.to_owned()))
}

/// The same as [`JSON`], as OpenTelemetry's own messages have it.
fn request() -> ExportTraceServiceRequest {
    let tags = ArrayValue { values: vec![AnyValue { value: Some(Any::StringValue("a".to_owned())) }] };
    let span = Span {
        trace_id: vec![0xab; 16],
        span_id: vec![1; 8],
        trace_state: "ot=th:8".to_owned(),
        parent_span_id: vec![2; 8],
        flags: 257,
        name: "SELECT shop".to_owned(),
        kind: 3,
        start_time_unix_nano: 1_700_000_000_000_000_001,
        end_time_unix_nano: 1_700_000_000_000_000_009,
        attributes: vec![
            text_attribute("db.system", "mysql"),
            attribute("server.port", Any::IntValue(3306)),
            attribute("tags", Any::ArrayValue(tags)),
        ],
        events: vec![span::Event { name: "e".to_owned(), ..span::Event::default() }],
        status: Some(Status { message: "why".to_owned(), code: 2 }),
        ..Span::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(Resource { attributes: vec![text_attribute("service.name", "shop")], ..Resource::default() }),
        scope_spans: vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn protobuf() -> Vec<u8> {
    request().encode_to_vec()
}

/// The same with an unknown field, and with the resource behind the spans, which is allowed: encoded messages that are
/// joined are one message.
fn in_another_order() -> Vec<u8> {
    let whole = &request().resource_spans[0];
    let resource = ResourceSpans { scope_spans: Vec::new(), ..whole.clone() };
    let spans = ResourceSpans { resource: None, ..whole.clone() };
    let of_resource = [spans.encode_to_vec(), Later { field: 7 }.encode_to_vec(), resource.encode_to_vec()].concat();
    Field { bytes: of_resource }.encode_to_vec()
}

const JSON: &str = r#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"x"},"spans":[{
    "traceId":"ABABABABABABABABABABABABABABABAB","spanId":"0101010101010101","parentSpanId":"0202020202020202",
    "traceState":"ot=th:8","name":"SELECT shop","kind":3,
    "startTimeUnixNano":"1700000000000000001","endTimeUnixNano":1700000000000000009,"flags":257,
    "attributes":[{"key":"db.system","value":{"stringValue":"mysql"}},{"key":"server.port","value":{"intValue":"3306"}},
        {"key":"tags","value":{"arrayValue":{"values":[{"stringValue":"a"}]}}}],
    "events":[{"name":"e"}],"links":null,"status":{"code":2,"message":"why"},"unknown":[1,{"a":2}]}]}],
    "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}}],"more":1}"#;

#[test]
fn both_encodings_tell_the_same() {
    for (encoding, body) in [
        (Encoding::Protobuf, protobuf()),
        (Encoding::Protobuf, in_another_order()),
        (Encoding::Json, JSON.as_bytes().to_vec()),
        (Encoding::Json, serde_json::to_vec(&request()).unwrap()),
    ] {
        let mut count = 0;
        each_span(encoding, &body, &mut |service, told| {
            count += 1;
            assert_eq!((service, &*told.name, &*told.trace_state), ("shop", "SELECT shop", "ot=th:8"));
            assert_eq!((told.trace_id, told.span_id, told.parent_id), (Some([0xab; 16]), Some([1; 8]), Some([2; 8])));
            assert_eq!((told.kind, told.status, told.flags), (3, 2, 257));
            assert_eq!((told.start_ns, told.end_ns), (1_700_000_000_000_000_001, 1_700_000_000_000_000_009));
            assert_eq!(told.attributes.text(Topic::DatabaseSystem).as_deref(), Some("mysql"));
            assert_eq!(told.attributes.text(Topic::PeerPort).as_deref(), Some("3306"));
        })
        .unwrap();
        assert_eq!(count, 1, "{encoding:?}");
    }
}

#[test]
fn a_body_cut_anywhere_is_malformed() {
    let whole = protobuf();
    for length in 1..whole.len() {
        assert!(each_span(Encoding::Protobuf, &whole[..length], &mut |_, _| {}).is_err(), "{length}");
    }
    for length in 0..JSON.len() {
        assert!(each_span(Encoding::Json, &JSON.as_bytes()[..length], &mut |_, _| {}).is_err(), "{length}");
    }
    for bad in [
        "[]",
        "{\"resourceSpans\":{}}",
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"kind\":\"X\"}]}]}]}",
        "{} {}",
    ] {
        assert!(each_span(Encoding::Json, bad.as_bytes(), &mut |_, _| {}).is_err(), "{bad}");
    }
    assert!(each_span(Encoding::Json, b"{\"a\":\"\xff\"}", &mut |_, _| {}).is_err());
}

#[test]
fn ids_of_another_length_are_none() {
    let body = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"ab","spanId":"zz01010101010101"},
        {"traceId":"00000000000000000000000000000000","spanId":"0000000000000000"},{}]}]}]}"#;
    let mut count = 0;
    each_span(Encoding::Json, body.as_bytes(), &mut |_, told| {
        count += 1;
        assert_eq!((told.trace_id, told.span_id), (None, None));
    })
    .unwrap();
    assert_eq!(count, 3);
}
