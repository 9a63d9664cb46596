//! Points in JSON and in protobuf, and the samples they become.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as Sent, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, number_data_point,
};
use prost::Message as _;

use super::*;

fn all(encoding: Encoding, body: &[u8]) -> (Vec<Sample>, Vec<&'static str>, bool) {
    let (mut found, mut rejected, mut is_delta) = (Vec::new(), Vec::new(), false);
    let mut known = MetricNames::default();
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

/// A histogram of increments, and a gauge.
fn request() -> ExportMetricsServiceRequest {
    let point = HistogramDataPoint {
        time_unix_nano: 5,
        count: 6,
        sum: Some(1.5),
        bucket_counts: vec![1, 2, 3],
        explicit_bounds: vec![0.005, 1.0],
        ..HistogramDataPoint::default()
    };
    let aggregation_temporality = AggregationTemporality::Delta as i32;
    let histogram = Histogram { data_points: vec![point], aggregation_temporality };
    let value = Some(number_data_point::Value::AsInt(-3));
    let gauge = Gauge { data_points: vec![NumberDataPoint { time_unix_nano: 5, value, ..NumberDataPoint::default() }] };
    let metric = |name: &str, unit: &str, data| Sent {
        name: name.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Sent::default()
    };
    let metrics = vec![metric("d", "s", Data::Histogram(histogram)), metric("g", "", Data::Gauge(gauge))];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }],
    }
}

#[test]
fn bodies_of_generated_messages_are_read() {
    let bodies =
        [(Encoding::Protobuf, request().encode_to_vec()), (Encoding::Json, serde_json::to_vec(&request()).unwrap())];
    for (encoding, body) in bodies {
        let (samples, rejected, is_delta) = all(encoding, &body);
        assert!(rejected.is_empty() && is_delta, "{encoding:?}");
        assert_eq!(
            shown(&samples),
            [
                "d_seconds_bucket{\"le\":\"0.005\"} 1",
                "d_seconds_bucket{\"le\":\"1\"} 3",
                "d_seconds_bucket{\"le\":\"+Inf\"} 6",
                "d_seconds_sum{} 1.5",
                "d_seconds_count{} 6",
                "g{} -3"
            ],
            "{encoding:?}"
        );
    }
}

/// Repeated numbers may come alone as well as packed, and a metric's data before its name.
#[test]
fn numbers_that_are_not_packed_are_read() {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Numbers {
        #[prost(fixed64, repeated, packed = "false", tag = "6")]
        counts: Vec<u64>,
        #[prost(double, repeated, packed = "false", tag = "7")]
        bounds: Vec<f64>,
    }
    let point = HistogramDataPoint { time_unix_nano: 5, count: 6, ..HistogramDataPoint::default() };
    let numbers = Numbers { counts: vec![1, 2, 3], bounds: vec![0.005, 1.0] };
    let wrapped = |field: u8, inner: Vec<u8>| [vec![field << 3 | 2, inner.len() as u8], inner].concat();
    let data = wrapped(9, wrapped(1, [point.encode_to_vec(), numbers.encode_to_vec()].concat()));
    let name = Sent { name: "h".to_owned(), ..Sent::default() }.encode_to_vec();
    let body = wrapped(1, wrapped(2, wrapped(2, [data, name].concat())));
    let (samples, rejected, _) = all(Encoding::Protobuf, &body);
    assert!(rejected.is_empty());
    assert_eq!(
        shown(&samples),
        ["h_bucket{\"le\":\"0.005\"} 1", "h_bucket{\"le\":\"1\"} 3", "h_bucket{\"le\":\"+Inf\"} 6", "h_count{} 6"]
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
