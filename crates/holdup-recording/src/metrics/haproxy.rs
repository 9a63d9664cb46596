//! Metrics of HAProxy, from its stats socket. `frontend`, `backend` and `server` are its own names.

metrics! {
    "haproxy", "HAProxy", "haproxy_";

    Gauge CONNECTIONS: Count = "haproxy_connections", "Connections of clients";
    Gauge CONNECTIONS_LIMIT: Count = "haproxy_connections_limit", "Most connections of clients (`maxconn` of the process)";
    Gauge RUN_QUEUE: Count = "haproxy_run_queue", "Tasks that wait for one of its threads";
    Gauge IDLE_RATIO: Ratio = "haproxy_idle_ratio", "Share of time for which its threads have nothing to do";
    Gauge FRONTEND_SESSIONS: Count = "haproxy_frontend_sessions", "Sessions of clients, by `frontend`";
    Gauge FRONTEND_SESSIONS_LIMIT: Count = "haproxy_frontend_sessions_limit", "Most sessions of clients, by `frontend`: more wait in the kernel's accept queue";
    Gauge QUEUED_REQUESTS: Count = "haproxy_queued_requests", "Requests that wait for a slot of a server, by `backend`; with `server` if only that one may take them";
    Gauge QUEUED_REQUESTS_MAX: Count = "haproxy_queued_requests_max", "Most of them since it started, by `backend` and `server`";
    Gauge QUEUE_TIME: Seconds = "haproxy_queue_time_seconds", "Mean wait in the queue of the last 1,024 requests, by `backend`";
    Gauge CONNECT_TIME: Seconds = "haproxy_connect_time_seconds", "Mean time to connect to a server of the last 1,024 requests, by `backend`";
    Gauge RESPONSE_TIME: Seconds = "haproxy_response_time_seconds", "Mean time from the sent request to the response's head of the last 1,024 requests, by `backend`";
    Gauge TOTAL_TIME: Seconds = "haproxy_total_time_seconds", "Mean time of the last 1,024 requests, the wait for a client's next request excluded, by `backend`";
    Counter REQUESTS: Count = "haproxy_requests_total", "Requests, or in TCP mode connections, by `backend`";
    Counter CONNECT_ERRORS: Count = "haproxy_connect_errors_total", "Requests that could not be sent to a server, by `backend`";
    Counter RESPONSE_ERRORS: Count = "haproxy_response_errors_total", "Requests whose response failed, by `backend`";
    Counter RETRIES: Count = "haproxy_retries_total", "Attempts to connect again, by `backend`";
    Counter REDISPATCHES: Count = "haproxy_redispatches_total", "Requests sent to another server than planned, by `backend`";
    Counter CLIENT_ABORTS: Count = "haproxy_client_aborts_total", "Requests that the client gave up, by `backend`";
    Gauge SERVER_UP: Boolean = "haproxy_server_up", "Whether a `server` takes requests, by `backend`";
    Gauge SERVER_SESSIONS: Count = "haproxy_server_sessions", "Requests that a `server` has, by `backend`";
    Gauge SERVER_RESPONSE_TIME: Seconds = "haproxy_server_response_time_seconds", "The response time of a `server`, as for its `backend`";
    Counter SERVER_REQUESTS: Count = "haproxy_server_requests_total", "Requests, or in TCP mode connections, that a `server` was given, by `backend`";
    Gauge SLOTS: Count = "haproxy_slots", "Requests that a `server` which is up may have at once (its `maxconn`), by `backend`";
    Gauge SLOTS_USED: Count = "haproxy_slots_used", "Requests that such a `server` has, by `backend`";
}
