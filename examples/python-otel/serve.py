"""The same app with OpenTelemetry: stock packages, configured; then served by waitress.

Where to send spans and under which name is said by the usual variables: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME.
"""

import os
import signal
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor
from opentelemetry.instrumentation.pymysql import PyMySQLInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

# A comment of the trace id and nothing else: the shorter, the sooner it is seen.
COMMENT = {
    "enable_commenter": True,
    "commenter_options": {
        name: False
        for name in ("db_driver", "dbapi_level", "dbapi_threadsafety", "driver_paramstyle", "libpq_version", "mysql_client_version")
    },
}

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
PyMySQLInstrumentor().instrument(**COMMENT)
# psycopg2-binary goes under another name than the package that the instrumentation asks for.
Psycopg2Instrumentor().instrument(skip_dep_check=True, **COMMENT)

from app import app  # noqa: E402  (after the drivers are instrumented)

# enable_commenter=False: without it Flask would add route and controller to every comment.
FlaskInstrumentor().instrument_app(app, enable_commenter=False, excluded_urls="healthz")


def stop(*_):
    provider.shutdown()  # sends what is left
    os._exit(0)


if __name__ == "__main__":
    import waitress

    signal.signal(signal.SIGTERM, stop)
    waitress.serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=8)
