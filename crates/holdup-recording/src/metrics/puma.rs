//! Metrics of Puma, from its control server.

metrics! {
    "puma", "Puma", "puma_";

    Gauge WORKERS: Count = "puma_workers", "Worker processes of a cluster";
    Gauge BOOTED_WORKERS: Count = "puma_booted_workers", "Of them, those that have started";
    Gauge OLD_WORKERS: Count = "puma_old_workers", "Workers of the version before a phased restart";
    Gauge LAST_CHECKIN_AGE: Seconds = "puma_last_checkin_age_seconds", "Time since a `worker` last reported";
    Gauge BACKLOG: Count = "puma_backlog", "Requests waiting for a thread, by `worker`";
    Gauge RUNNING: Count = "puma_running", "Threads, by `worker`";
    Gauge POOL_CAPACITY: Count = "puma_pool_capacity", "Requests that a `worker` could take on at once";
    Gauge BUSY_THREADS: Count = "puma_busy_threads", "Threads with a request, and requests waiting for one, by `worker`";
    Gauge MAX_THREADS: Count = "puma_max_threads", "Most threads, by `worker`";
    Counter REQUESTS: Count = "puma_requests_total", "Requests served, by `worker`";
}
