//! The receiver's own counters for OpenTelemetry's protocol. Received metrics keep the names that
//! apps gave them.

metrics! {
    "otlp", "The receiver of OpenTelemetry's protocol", "otlp_";

    Counter SPANS: Count = "otlp_spans_total", "Spans taken in";
    Counter REJECTED_SPANS: Count = "otlp_rejected_spans_total", "Spans that could not be read";
    Counter REFUSED_SPANS: Count = "otlp_refused_spans_total", "Spans refused for lack of room";
    Counter DATA_POINTS: Count = "otlp_data_points_total", "Data points taken in";
    Counter REJECTED_DATA_POINTS: Count = "otlp_rejected_data_points_total", "Data points that could not be read";
    Counter REFUSED_DATA_POINTS: Count = "otlp_refused_data_points_total", "Data points refused for lack of room";
    Counter REFUSED_BODIES: Count = "otlp_refused_bodies_total", "Bodies refused, by `http_response_status_code`";
    Counter REFUSED_CONNECTIONS: Count = "otlp_refused_connections_total", "Connections closed because there were too many";
}
