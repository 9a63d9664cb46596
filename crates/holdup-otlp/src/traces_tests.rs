//! One body in both encodings, and what is malformed.

use super::*;
use crate::attributes::Asked;
use crate::protobuf::{put_bytes, put_number};

fn text_attribute(key: &str, value: &str) -> Vec<u8> {
    let (mut any, mut pair) = (Vec::new(), Vec::new());
    put_bytes(&mut any, 1, value.as_bytes());
    put_bytes(&mut pair, 1, key.as_bytes());
    put_bytes(&mut pair, 2, &any);
    pair
}

fn protobuf() -> Vec<u8> {
    let mut span = Vec::new();
    put_bytes(&mut span, 1, &[0xab; 16]);
    put_bytes(&mut span, 2, &[1; 8]);
    put_bytes(&mut span, 3, b"ot=th:8");
    put_bytes(&mut span, 4, &[2; 8]);
    put_bytes(&mut span, 5, b"SELECT shop");
    put_number(&mut span, 6, 3);
    for (number, time) in [(7_u8, 1_700_000_000_000_000_001_u64), (8, 1_700_000_000_000_000_009)] {
        span.push(number << 3 | 1);
        span.extend(time.to_le_bytes());
    }
    put_bytes(&mut span, 9, &text_attribute("db.system", "mysql"));
    let (mut port, mut pair) = (Vec::new(), Vec::new());
    put_number(&mut port, 3, 3306);
    put_bytes(&mut pair, 1, b"server.port");
    put_bytes(&mut pair, 2, &port);
    put_bytes(&mut span, 9, &pair);
    let mut status = Vec::new();
    put_bytes(&mut status, 2, b"why");
    put_number(&mut status, 3, 2);
    put_bytes(&mut span, 15, &status);
    span.extend([0x85, 1]);
    span.extend(257_u32.to_le_bytes());
    put_number(&mut span, 99, 7);
    let (mut scope, mut of_resource, mut resource, mut body) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    put_bytes(&mut scope, 2, &span);
    // Behind the spans, which is allowed.
    put_bytes(&mut of_resource, 2, &scope);
    put_bytes(&mut resource, 1, &text_attribute("service.name", "shop"));
    put_bytes(&mut of_resource, 1, &resource);
    put_bytes(&mut body, 1, &of_resource);
    body
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
    for (encoding, body) in [(Encoding::Protobuf, protobuf()), (Encoding::Json, JSON.as_bytes().to_vec())] {
        let mut count = 0;
        each_span(encoding, &body, &mut |service, told| {
            count += 1;
            assert_eq!((service, &*told.name, &*told.trace_state), ("shop", "SELECT shop", "ot=th:8"));
            assert_eq!((told.trace_id, told.span_id, told.parent_id), (Some([0xab; 16]), Some([1; 8]), Some([2; 8])));
            assert_eq!((told.kind, told.status, told.flags), (3, 2, 257));
            assert_eq!((told.start_ns, told.end_ns), (1_700_000_000_000_000_001, 1_700_000_000_000_000_009));
            assert_eq!(told.attributes.text(Asked::DatabaseSystem).as_deref(), Some("mysql"));
            assert_eq!(told.attributes.text(Asked::PeerPort).as_deref(), Some("3306"));
        })
        .unwrap();
        assert_eq!(count, 1, "{encoding:?}");
    }
}

#[test]
fn what_is_cut_anywhere_is_malformed() {
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
