//! Metrics of holdup's load generator, written with the source `holdup`.

metrics! {
    "load", "The load generator (source `holdup`)", "holdup_load_";

    Counter CPU: Seconds = "holdup_load_cpu_seconds_total", "CPU time of a `loop`";
    Counter BUSY: Seconds = "holdup_load_busy_seconds_total", "Time in which a `loop` did not sleep";
    Counter RUN_QUEUE: Seconds = "holdup_load_run_queue_seconds_total", "Time in which a `loop` waited for a CPU";
    Gauge SEND_LAG_P99: Seconds = "holdup_load_send_lag_p99_seconds", "Delay of requests by the generator itself in the last second, 99th percentile, by `loop`";
    Counter REQUESTS_OFFERED: Count = "holdup_load_requests_offered_total", "Requests that were due, by `loop`";
    Counter REQUESTS_COMPLETED: Count = "holdup_load_requests_completed_total", "Requests that ended well, by `loop`";
    Counter REQUESTS_FAILED: Count = "holdup_load_requests_failed_total", "Requests that did not end well, by `loop`";
    Counter REQUESTS_CAPPED: Count = "holdup_load_requests_capped_total", "Requests that no connection was free for when they were due, by `loop`";
    Counter REQUESTS_RESENT: Count = "holdup_load_requests_resent_total", "Requests sent again because their connection had been closed, by `loop`";
    Gauge REQUESTS_IN_FLIGHT: Count = "holdup_load_requests_in_flight", "Requests in flight, by `loop`";
    Gauge REQUESTS_WAITING: Count = "holdup_load_requests_waiting", "Requests waiting for a connection, by `loop`";
    Gauge CONNECTIONS_MAX: Count = "holdup_load_connections_max", "Connections that a `loop` may have";
    Counter THROTTLED: Seconds = "holdup_load_throttled_seconds_total", "Time that the CPU quota held the generator back";
    Counter THROTTLED_PERIODS: Count = "holdup_load_throttled_periods_total", "Periods in which the quota ran out";
}
