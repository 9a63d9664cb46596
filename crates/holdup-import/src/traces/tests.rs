//! Files of each kind, cut anywhere, and the spans that come out.

use super::*;

fn bodies(kind: TraceKind, text: &str, columns: Option<&str>) -> Result<Vec<Value>, ImportError> {
    let columns = columns.map(|map| Columns::parse(map).unwrap());
    let mut all = Vec::new();
    let mut put = |body: &[u8]| all.push(serde_json::from_slice(body).unwrap());
    read(kind, text.as_bytes(), "t.json", columns.as_ref(), &mut put)?;
    Ok(all)
}

/// The spans of all bodies: service, trace, span, parent, name, kind, start and length in ms.
fn spans(all: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for resource in all.iter().flat_map(|body| body["resourceSpans"].as_array().unwrap()) {
        let service = &resource["resource"]["attributes"][0]["value"]["stringValue"];
        for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
            let ns = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
            let (start, end) = (ns("startTimeUnixNano"), ns("endTimeUnixNano"));
            let text = |key: &str| span[key].as_str().unwrap_or("-").trim_start_matches('0').to_owned();
            found.push(format!(
                "{} {} {} {} {} {} {} {} {}",
                service.as_str().unwrap(),
                text("traceId"),
                text("spanId"),
                text("parentSpanId"),
                text("name"),
                span["kind"],
                start / 1_000_000,
                (end - start) / 1_000_000,
                span["status"]["code"],
            ));
        }
    }
    found
}

const JAEGER: &str = r#"{"data":[{"traceID":"ab12","spans":[
 {"traceID":"ab12","spanID":"1","operationName":"GET /cart","references":[],"startTime":1793693350250000,"duration":412000,"tags":[{"key":"span.kind","type":"string","value":"server"}],"processID":"p1"},
 {"traceID":"ab12","spanID":"2","operationName":"query","references":[{"refType":"CHILD_OF","traceID":"ab12","spanID":"1"}],"startTime":1793693350260000,"duration":400000,"tags":[{"key":"span.kind","value":"client"},{"key":"db.system","value":"mysql"},{"key":"error","type":"bool","value":true}],"processID":"p1"}],
 "processes":{"p1":{"serviceName":"shop"}}}]}"#;

const ZIPKIN: &str = r#"[{"traceId":"ab12","id":"1","name":"get /cart","kind":"SERVER","timestamp":1793693350250000,"duration":412000,"localEndpoint":{"serviceName":"shop"}},
 {"traceId":"ab12","id":"2","parentId":"1","name":"get","kind":"CLIENT","timestamp":1793693350260000,"duration":400000,"localEndpoint":{"serviceName":"shop"},"remoteEndpoint":{"serviceName":"stock","port":80},"tags":{"http.method":"GET","error":"timeout"}}]"#;

const CSV: &str = "trace_id,span_id,parent_id,service,name,kind,start_time,duration_ms,status\n\
    ab12,1,,shop,GET /cart,server,2026-11-03T08:09:10.250Z,412,ok\n\
    ab12,2,1,shop,query,client,2026-11-03T08:09:10.260Z,400,error\n";

const OTLP: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[{"traceId":"0000000000000000000000000000ab12","spanId":"0000000000000001","name":"GET /cart","kind":2,"startTimeUnixNano":"1793693350250000000","endTimeUnixNano":"1793693350662000000","status":{"code":0}}]}]}]}"#;

const ROOT: &str = "shop ab12 1 - GET /cart 2 1793693350250 412 0";

#[test]
fn each_kind() {
    let found = spans(&bodies(TraceKind::Jaeger, JAEGER, None).unwrap());
    assert_eq!(found, [ROOT, "shop ab12 2 1 query 3 1793693350260 400 2"]);
    let found = spans(&bodies(TraceKind::Zipkin, ZIPKIN, None).unwrap());
    assert_eq!(found, [&ROOT.replace("GET", "get"), "shop ab12 2 1 get 3 1793693350260 400 2"]);
    let found = spans(&bodies(TraceKind::Csv, CSV, None).unwrap());
    assert_eq!(found, [ROOT, "shop ab12 2 1 query 3 1793693350260 400 2"]);
    let lines = format!("{OTLP}\n{{\"resourceMetrics\":[]}}\n{OTLP}\n");
    assert_eq!(spans(&bodies(TraceKind::Otlp, &lines, None).unwrap()), [ROOT, ROOT]);
    assert_eq!(spans(&bodies(TraceKind::Otlp, &format!("[{OTLP},{OTLP}]"), None).unwrap()), [ROOT, ROOT]);
    let tempo = OTLP.replace("resourceSpans", "batches");
    assert_eq!(spans(&bodies(TraceKind::Otlp, &tempo, None).unwrap()), [ROOT]);
}

#[test]
fn kinds_by_their_beginnings() {
    for (text, kind) in [
        (OTLP, Some(TraceKind::Otlp)),
        (JAEGER, Some(TraceKind::Jaeger)),
        (ZIPKIN, Some(TraceKind::Zipkin)),
        (CSV, Some(TraceKind::Csv)),
        ("", None),
        ("{}", None),
        ("a,b,c\n1,2,3\n", None),
        (r#"{"MetricDataResults":[]}"#, None),
        (r#"{"time":"x","traceId":"y","status":200}"#, None),
    ] {
        assert_eq!(TraceKind::detect(text), kind, "{text:.40}");
    }
}

#[test]
fn columns_by_a_map() {
    let text = CSV.replace("trace_id", "t").replace("duration_ms", "took_us").replace(",412,", ",412000,");
    let map = "trace=t,duration=took_us";
    assert_eq!(spans(&bodies(TraceKind::Csv, &text, Some(map)).unwrap())[0], ROOT);
    let ends = CSV.replace("duration_ms", "end_time").replace(",412,", ",2026-11-03T08:09:10.662Z,");
    let ends = ends.replace(",400,", ",2026-11-03T08:09:10.660Z,");
    assert_eq!(spans(&bodies(TraceKind::Csv, &ends, None).unwrap())[0], ROOT);
    for map in ["x=y", "trace", "trace=a,x=b"] {
        assert!(Columns::parse(map).is_err(), "{map}");
    }
    let why = bodies(TraceKind::Csv, CSV, Some("trace=missing")).unwrap_err().to_string();
    assert!(why.contains("t.json:1") && why.contains("missing"), "{why}");
    let why = bodies(TraceKind::Csv, &CSV.replace("412", "-1"), None).unwrap_err().to_string();
    assert!(why.contains("t.json:2") && why.contains("negative"), "{why}");
}

#[test]
fn files_cut_at_any_byte() {
    for (kind, text) in [(TraceKind::Jaeger, JAEGER), (TraceKind::Zipkin, ZIPKIN), (TraceKind::Otlp, OTLP)] {
        for end in 1..text.len() {
            assert!(bodies(kind, &text[..end], None).is_err(), "{end} of {}", kind.words());
        }
    }
    for end in 0..CSV.len() {
        let _ = bodies(TraceKind::Csv, &CSV[..end], None);
    }
}
