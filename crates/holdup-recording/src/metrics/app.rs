//! Metrics that apps and their libraries report under their own names: OpenTelemetry's conventions,
//! HikariCP, Prometheus' client libraries. holdup records any; these are the ones that rules read.

metrics! {
    "app", "What apps report (`otlp`, `prometheus:`)", "";

    Histogram HTTP_SERVER_REQUEST_DURATION: Seconds = "http_server_request_duration_seconds", "Requests that the app served";
    Histogram HTTP_CLIENT_REQUEST_DURATION: Seconds = "http_client_request_duration_seconds", "Requests that the app sent to others";
    Histogram DB_CLIENT_OPERATION_DURATION: Seconds = "db_client_operation_duration_seconds", "Calls of the app to a database";
    Histogram DB_CLIENT_CONNECTION_WAIT_TIME: Seconds = "db_client_connection_wait_time_seconds", "Waits for a connection of the pool";
    Histogram DB_CLIENT_CONNECTION_USE_TIME: Seconds = "db_client_connection_use_time_seconds", "Time for which a connection of the pool was held";
    Histogram DB_CLIENT_CONNECTION_CREATE_TIME: Seconds = "db_client_connection_create_time_seconds", "Opening a connection for the pool";
    Gauge DB_CLIENT_CONNECTION_COUNT: Count = "db_client_connection_count", "Connections of the pool, by `db_client_connection_state`";
    Gauge DB_CLIENT_CONNECTION_MAX: Count = "db_client_connection_max", "Most connections of the pool";
    Gauge DB_CLIENT_CONNECTION_PENDING_REQUESTS: Count = "db_client_connection_pending_requests", "Requests waiting for a connection of the pool";
    Histogram HIKARICP_CONNECTIONS_ACQUIRE: Seconds = "hikaricp_connections_acquire_seconds", "Waits for a connection of HikariCP";
    Histogram HIKARICP_CONNECTIONS_USAGE: Seconds = "hikaricp_connections_usage_seconds", "Time for which a connection of HikariCP was held";
    Histogram HIKARICP_CONNECTIONS_CREATION: Seconds = "hikaricp_connections_creation_seconds", "Opening a connection for HikariCP";
    Gauge HIKARICP_CONNECTIONS_ACTIVE: Count = "hikaricp_connections_active", "Connections of HikariCP in use";
    Gauge HIKARICP_CONNECTIONS_MAX: Count = "hikaricp_connections_max", "Most connections of HikariCP";
    Gauge HIKARICP_CONNECTIONS_PENDING: Count = "hikaricp_connections_pending", "Threads waiting for a connection of HikariCP";
    Counter PROCESS_CPU: Seconds = "process_cpu_seconds_total", "CPU time of the app, by Prometheus' client library";
    Gauge PROCESS_RESIDENT_MEMORY_BYTES: Bytes = "process_resident_memory_bytes", "Resident memory of the app, by Prometheus' client library";

    @family REPORTED: "as the app says" = "", "Any other name, as it comes; of OpenTelemetry's with `_` for `.`, and the unit and `_total` at the end as Prometheus writes them";
}
