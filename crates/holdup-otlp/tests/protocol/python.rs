//! What the stock Python packages send, over both of their transports. They are in target/py, where `cargo xtask setup` puts them.

use std::path::Path;
use std::process::Command;

use holdup_otlp::Bounds;

use super::receiver;

const SCRIPT: &str = r#"
import sys
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

transport, endpoint = sys.argv[1:]
if transport == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    spans, metrics = OTLPSpanExporter(endpoint, insecure=True), OTLPMetricExporter(endpoint, insecure=True)
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    spans = OTLPSpanExporter(endpoint + "/v1/traces", compression=Compression.Gzip)
    metrics = OTLPMetricExporter(endpoint + "/v1/metrics", compression=Compression.Gzip)
resource = Resource.create({"service.name": "shop"})
provider = TracerProvider(resource=resource)
provider.add_span_processor(BatchSpanProcessor(spans))
tracer = provider.get_tracer("test")
with tracer.start_as_current_span("GET /vacancy", kind=SpanKind.SERVER):
    attributes = {"db.system": "mysql", "db.statement": "SELECT a FROM t WHERE id = 42", "net.peer.name": "db1", "net.peer.port": 3306}
    with tracer.start_as_current_span("SELECT shop", kind=SpanKind.CLIENT, attributes=attributes):
        pass
meters = MeterProvider([PeriodicExportingMetricReader(metrics)], resource=resource)
duration = meters.get_meter("test").create_histogram("db.client.operation.duration", unit="s")
duration.record(0.02, {"db.system.name": "mysql"})
assert provider.force_flush() and meters.force_flush()
provider.shutdown()
meters.shutdown()
"#;

#[test]
fn the_stock_exporters_are_understood() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/py/bin/python");
    let has_packages = Command::new(&python).args(["-c", "import opentelemetry.exporter.otlp"]).output();
    if !has_packages.is_ok_and(|output| output.status.success()) {
        let why = "target/py has no opentelemetry-exporter-otlp; run: cargo xtask setup";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("skipped: {why}");
        return;
    }
    for transport in ["http", "grpc"] {
        let (receiver, address) = receiver(Bounds::default());
        let output = Command::new(&python)
            .args(["-c", SCRIPT, transport, &format!("http://{address}")])
            .env("no_proxy", "*")
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("rror"), "{transport}: {said}");
        let batch = receiver.drain();
        let of = |resource: &str| batch.spans.iter().find(|span| span.resource == resource).expect("a span");
        let (request, statement) = (of("request"), of("database"));
        assert_eq!((batch.spans.len(), statement.parent_id.as_ref()), (2, request.span_id.as_ref()), "{transport}");
        assert_eq!((request.service.as_str(), &request.trace_id), ("shop", &statement.trace_id));
        assert_eq!((statement.system.as_deref(), statement.peer.as_deref()), (Some("mysql"), Some("db1:3306")));
        assert!(statement.digest_text.as_deref().is_some_and(|text| text.ends_with("= ?")), "{statement:?}");
        let sum = batch.samples.iter().find(|sample| sample.metric == "db_client_operation_duration_seconds_sum");
        let sum = sum.expect("a metric");
        assert_eq!(
            (sum.value, sum.labels.get("db_system_name"), sum.labels.get("service_name")),
            (0.02, Some("mysql"), Some("shop"))
        );
    }
}
