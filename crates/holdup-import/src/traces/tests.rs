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
fn a_named_end_goes_before_a_column_that_is_called_duration() {
    // A duration in microseconds, as many stores have it under this plain name.
    let text = "trace_id,span_id,start,until,Duration\nab12,1,1793693350250000,1793693350662000,412000\n";
    let lengths = |columns: Option<&str>, text: &str| {
        let found = spans(&bodies(TraceKind::Csv, text, columns).unwrap());
        found.iter().map(|span| span.split(' ').rev().nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(Some("end=until"), text), ["412"]);
    assert_eq!(lengths(Some("duration=Duration"), text), ["412000"], "in milliseconds, as nothing says otherwise");
    // With both, the ends show the unit, whatever the column's name says.
    for (duration, name) in [("412000", "Duration"), ("0.412", "duration_ms"), ("412000000", "elapsed")] {
        let both = text.replace("until", "end").replace("Duration", name).replace("412000\n", &format!("{duration}\n"));
        assert_eq!(lengths(None, &both), ["412"], "{name}");
    }
    // An end in whole seconds shows none.
    let coarse =
        "trace_id,span_id,start,end,duration_ms\nab12,1,1793693350,1793693350,412\nab12,2,1793693350,1793693351,7\n";
    assert_eq!(lengths(None, coarse), ["412", "7"]);
}

#[test]
fn columns_of_any_set_become_spans_and_their_attributes() {
    let text = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,db_system,http_status_code,tags\n\
        x-1,a,root,cart-5f6585d649-fnmft,Get,1793693350250000000,1793693350662000000,,503,\"{\"\"peer.service\"\":\"\"stock\"\"}\"\n\
        x-1,b,a,cart-5f6585d649-fnmft,Query,1793693350260000000,1793693350660000000,redis,,\n";
    let all = bodies(TraceKind::Csv, text, None).unwrap();
    let found = &all[0]["resourceSpans"][0];
    assert_eq!(found["resource"]["attributes"][0]["value"]["stringValue"], "cart");
    let [root, query] = found["scopeSpans"][0]["spans"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let has = |span: &Value, key: &str, value: &str| {
        let attributes = span["attributes"].as_array().unwrap();
        attributes.iter().any(|one| one["key"] == key && one["value"]["stringValue"] == value)
    };
    assert!(has(root, "http.status.code", "503") && has(root, "peer.service", "stock"), "{root}");
    assert!(has(query, "db.system", "redis") && query["parentSpanId"] == "000000000000000a", "{query}");
    assert_eq!((root["kind"].as_u64(), query["kind"].as_u64()), (Some(2), Some(1)));
    // An id in another form has a hash, the same in both rows.
    assert_eq!(root["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(root["traceId"], query["traceId"]);
    let mut lacking = Vec::new();
    let read = read(TraceKind::Csv, text.as_bytes(), "t.csv", None, &mut |_| lacking.push(()));
    assert!(read.unwrap().iter().any(|lack| lack.starts_with("kind (")));
}

#[test]
fn series_of_pods_and_services_become_samples_with_labels() {
    let text = "timestamp,cmdb_id,kpi_name,value\n1793693350,cart-0,Container CPU %,12.5\n1793693351,cart-0,Container CPU %,n/a\n";
    assert_eq!(TraceKind::detect(text), Some(TraceKind::Series));
    let mut samples = Vec::new();
    let gaps = series::read(text.as_bytes(), "m.csv", "import:m.csv", &mut |sample| samples.push(sample)).unwrap();
    let [one] = samples.as_slice() else { panic!("{samples:?}") };
    assert_eq!((one.metric.as_str(), one.value, gaps), ("container_cpu", 12.5, 1));
    assert_eq!((one.labels.get("cmdb_id"), one.observed_at), (Some("cart-0"), 1_793_693_350_000_000_000));
    assert!(series::read("a,b\n".as_bytes(), "m.csv", "x", &mut |_| {}).is_err());
}

#[test]
fn a_status_says_failure_in_words_and_in_codes() {
    for (column, status, is_error) in [
        ("status", "ERROR", true),
        ("status_code", "STATUS_CODE_OK", false),
        ("status_code", "2", true),
        ("status_code", "503", true),
        ("status_code", "404", false),
        ("success", "false", true),
        ("error", "", false),
        ("error", "timeout", true),
        ("isSuccess", "true", false),
    ] {
        let text = format!("trace_id,span_id,start,duration,{column}\nab12,1,1793693350,412,{status}\n");
        let found = spans(&bodies(TraceKind::Csv, &text, None).unwrap());
        assert_eq!(found[0].ends_with(" 2"), is_error, "{column} {status}: {found:?}");
    }
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
