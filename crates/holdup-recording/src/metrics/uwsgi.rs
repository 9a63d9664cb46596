//! Metrics of uWSGI, from its stats server.

metrics! {
    "uwsgi", "uWSGI", "uwsgi_";

    Gauge LISTEN_QUEUE: Count = "uwsgi_listen_queue", "Connections waiting to be accepted";
    Gauge LISTEN_QUEUE_LIMIT: Count = "uwsgi_listen_queue_limit", "Most connections that may wait";
    Counter LISTEN_QUEUE_ERRORS: Count = "uwsgi_listen_queue_errors_total", "Times that the queue was full";
    Gauge WORKER_BUSY: Boolean = "uwsgi_worker_busy", "Whether a `worker` has a request";
    Gauge WORKER_CORES: Count = "uwsgi_worker_cores", "Requests that a `worker` can have at once";
    Gauge WORKER_BUSY_CORES: Count = "uwsgi_worker_busy_cores", "Requests that a `worker` has";
    Counter REQUESTS: Count = "uwsgi_requests_total", "Requests served, by `worker`";
    Counter EXCEPTIONS: Count = "uwsgi_exceptions_total", "Exceptions of the app, by `worker`";
    Counter HARAKIRI: Count = "uwsgi_harakiri_total", "Requests killed because they took too long, by `worker`";
    Counter RESPAWNS: Count = "uwsgi_respawns_total", "Times that a `worker` was started again";
    Counter RUNNING_TIME: Seconds = "uwsgi_running_time_seconds_total", "Time in requests, by `worker`";
    Gauge AVERAGE_RESPONSE: Seconds = "uwsgi_average_response_seconds", "Average response time as uWSGI computes it, by `worker`";
}
