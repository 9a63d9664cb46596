//! Points in JSON and in protobuf, and the samples they become.

use super::*;
use crate::protobuf::{put_bytes, put_number};

fn all(encoding: Encoding, body: &[u8]) -> (Vec<Sample>, Vec<&'static str>, bool) {
    let (mut found, mut rejected, mut is_delta) = (Vec::new(), Vec::new(), false);
    let mut known = Known::default();
    each_point(encoding, body, &mut |labels, metric, point| {
        is_delta |= metric.is_delta;
        rejected.extend(samples("otlp", &mut known, labels, metric, point, &mut found).err());
    })
    .unwrap();
    (found, rejected, is_delta)
}

fn metrics(metrics: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metrics}]}}],"resource":{{"attributes":[
        {{"key":"service.name","value":{{"stringValue":"shop"}}}},{{"key":"host.name","value":{{"stringValue":"h"}}}}]}}}}]}}"#
    )
}

fn shown(samples: &[Sample]) -> Vec<String> {
    samples.iter().map(|s| format!("{}{} {}", s.metric, s.labels, s.value)).collect()
}

#[test]
fn a_histogram_is_what_prometheus_would_have() {
    let body = metrics(
        r#"{"histogram":{"dataPoints":[{"attributes":[{"key":"db.system.name","value":{"stringValue":"mariadb"}}],
        "timeUnixNano":"1700000000000000000","count":"6","sum":1.5,"bucketCounts":["1","2","3"],"explicitBounds":[0.005,1]}],
        "aggregationTemporality":2},"name":"db.client.operation.duration","unit":"s"}"#,
    );
    let (samples, rejected, is_delta) = all(Encoding::Json, body.as_bytes());
    assert!(rejected.is_empty() && !is_delta);
    let with = |le: &str| format!("{{\"db_system_name\":\"mariadb\",\"le\":\"{le}\",\"service_name\":\"shop\"}}");
    let plain = "{\"db_system_name\":\"mariadb\",\"service_name\":\"shop\"}";
    assert_eq!(
        shown(&samples),
        [
            format!("db_client_operation_duration_seconds_bucket{} 1", with("0.005")),
            format!("db_client_operation_duration_seconds_bucket{} 3", with("1")),
            format!("db_client_operation_duration_seconds_bucket{} 6", with("+Inf")),
            format!("db_client_operation_duration_seconds_sum{plain} 1.5"),
            format!("db_client_operation_duration_seconds_count{plain} 6"),
        ]
    );
    assert!(samples.iter().all(|s| s.observed_at == 1_700_000_000_000_000_000 && s.source == "otlp"));
}

#[test]
fn milliseconds_under_an_old_name_are_seconds_under_the_new() {
    let body = metrics(
        r#"{"name":"http.server.duration","unit":"ms","histogram":{"aggregationTemporality":2,"dataPoints":[
            {"timeUnixNano":5,"count":3,"sum":250,"bucketCounts":[1,2],"explicitBounds":[25]}]}},
        {"name":"process.cpu.time","unit":"s","sum":{"isMonotonic":true,"aggregationTemporality":2,"dataPoints":[
            {"timeUnixNano":5,"asDouble":1.5,"attributes":[{"key":"cpu.mode","value":{"stringValue":"user"}}]}]}}"#,
    );
    let (samples, _, _) = all(Encoding::Json, body.as_bytes());
    let of_shop = "{\"service_name\":\"shop\"}";
    assert_eq!(
        shown(&samples),
        [
            "http_server_request_duration_seconds_bucket{\"le\":\"0.025\",\"service_name\":\"shop\"} 1".to_owned(),
            "http_server_request_duration_seconds_bucket{\"le\":\"+Inf\",\"service_name\":\"shop\"} 3".to_owned(),
            format!("http_server_request_duration_seconds_sum{of_shop} 0.25"),
            format!("http_server_request_duration_seconds_count{of_shop} 3"),
            "process_cpu_seconds_total{\"cpu_mode\":\"user\",\"service_name\":\"shop\"} 1.5".to_owned(),
        ]
    );
}

#[test]
fn gauges_sums_and_summaries() {
    let body = metrics(
        r#"{"name":"db.client.connection.count","unit":"{connection}","sum":{"aggregationTemporality":2,"dataPoints":[
            {"timeUnixNano":5,"asInt":"7"},{"timeUnixNano":5,"flags":1},{"asInt":1}]}},
        {"name":"x.errors","sum":{"isMonotonic":true,"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints":[{"timeUnixNano":5,"asDouble":2.5}]}},
        {"name":"rpc","unit":"ms","summary":{"dataPoints":[{"timeUnixNano":5,"count":2,"sum":8,"quantileValues":[{"quantile":0.5,"value":4}]}]}},
        {"name":"e","exponentialHistogram":{"dataPoints":[{"timeUnixNano":5,"count":2,"sum":8,"scale":3,"positive":{"offset":1,"bucketCounts":["1"]}}]}},
        {"name":"odd","histogram":{"dataPoints":[{"timeUnixNano":5,"bucketCounts":[1,2],"explicitBounds":[1,2]}]}},
        {"name":"nothing"}"#,
    );
    let (samples, rejected, is_delta) = all(Encoding::Json, body.as_bytes());
    let of_shop = "{\"service_name\":\"shop\"}";
    assert_eq!(
        shown(&samples),
        [
            format!("db_client_connection_count{of_shop} 7"),
            format!("x_errors_total{of_shop} 2.5"),
            "rpc_milliseconds{\"quantile\":\"0.5\",\"service_name\":\"shop\"} 4".to_owned(),
            format!("rpc_milliseconds_sum{of_shop} 8"),
            format!("rpc_milliseconds_count{of_shop} 2"),
            format!("e_sum{of_shop} 8"),
            format!("e_count{of_shop} 2"),
        ]
    );
    assert_eq!(rejected.len(), 2, "one without a time, one whose bounds do not fit: {rejected:?}");
    assert!(is_delta);
}

#[test]
fn protobuf_tells_the_same() {
    let fixed = |out: &mut Vec<u8>, number: u8, bits: u64| {
        out.push(number << 3 | 1);
        out.extend(bits.to_le_bytes());
    };
    let mut point = Vec::new();
    fixed(&mut point, 3, 5);
    fixed(&mut point, 4, 6);
    fixed(&mut point, 5, 1.5_f64.to_bits());
    let packed: Vec<u8> = [1_u64, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    put_bytes(&mut point, 6, &packed);
    // Not packed, which is allowed too.
    fixed(&mut point, 7, 0.005_f64.to_bits());
    fixed(&mut point, 7, 1_f64.to_bits());
    let mut data = Vec::new();
    put_bytes(&mut data, 1, &point);
    put_number(&mut data, 2, 1);
    let mut metric = Vec::new();
    put_bytes(&mut metric, 9, &data);
    put_bytes(&mut metric, 1, b"d");
    put_bytes(&mut metric, 3, b"s");
    let mut gauge = Vec::new();
    let mut point = Vec::new();
    fixed(&mut point, 3, 5);
    fixed(&mut point, 6, (-3_i64) as u64);
    put_bytes(&mut gauge, 1, &point);
    let mut second = Vec::new();
    put_bytes(&mut second, 1, b"g");
    put_bytes(&mut second, 5, &gauge);
    let (mut scope, mut of_resource, mut body) = (Vec::new(), Vec::new(), Vec::new());
    put_bytes(&mut scope, 2, &metric);
    put_bytes(&mut scope, 2, &second);
    put_bytes(&mut of_resource, 2, &scope);
    put_bytes(&mut body, 1, &of_resource);
    let (samples, rejected, is_delta) = all(Encoding::Protobuf, &body);
    assert!(rejected.is_empty() && is_delta);
    assert_eq!(
        shown(&samples),
        [
            "d_seconds_bucket{\"le\":\"0.005\"} 1",
            "d_seconds_bucket{\"le\":\"1\"} 3",
            "d_seconds_bucket{\"le\":\"+Inf\"} 6",
            "d_seconds_sum{} 1.5",
            "d_seconds_count{} 6",
            "g{} -3"
        ]
    );
}

#[test]
fn too_many_buckets_or_attributes_are_rejected() {
    let numbers = vec!["1"; 5_000].join(",");
    let attributes = vec![r#"{"key":"a","value":{"intValue":1}}"#; 100].join(",");
    for point in [
        format!(r#"{{"timeUnixNano":5,"bucketCounts":[{numbers}],"explicitBounds":[]}}"#),
        format!(r#"{{"timeUnixNano":5,"attributes":[{attributes}]}}"#),
    ] {
        let body = metrics(&format!(r#"{{"name":"h","histogram":{{"dataPoints":[{point}]}}}}"#));
        let (samples, rejected, _) = all(Encoding::Json, body.as_bytes());
        assert_eq!((samples.len(), rejected.len()), (0, 1));
    }
}

#[test]
fn increments_add_up_series_by_series() {
    let sample = |labels: &str, value| Sample {
        metric: "x_total".to_owned(),
        labels: Labels::from(labels),
        value,
        ..Sample::default()
    };
    let mut totals = Totals::default();
    let mut add = |labels, value| {
        let mut sample = sample(labels, value);
        assert!(totals.add(&mut sample));
        sample.value
    };
    assert_eq!((add("{\"a\":\"1\"}", 2.0), add("{\"a\":\"2\"}", 5.0), add("{\"a\":\"1\"}", 3.0)), (2.0, 5.0, 5.0));
}
