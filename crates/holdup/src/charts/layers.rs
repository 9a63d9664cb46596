//! The charts of each layer, in the order in which a request meets what they show.

use holdup_recording::metrics;

use super::{Chart, Plot, chart, log_chart};

/// What the generator did, and what came back.
pub(super) fn load_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        chart("rate", "Offered and achieved rate", "requests/s", plot.rates()),
        log_chart("response", "Response time from the intended start", "ms", plot.latency()),
        chart(
            "generator",
            "Requests in flight and waiting in the generator",
            "requests",
            plot.gauges(&[
                ("in flight", metrics::load::REQUESTS_IN_FLIGHT.name, &[]),
                ("waiting for a connection", metrics::load::REQUESTS_WAITING.name, &[]),
            ]),
        ),
        chart("generator_time", "The generator's own time", "ratio", plot.own_time()),
    ]
}

/// The app server and its process.
pub(super) fn service_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        chart("accept_queue", "Connections waiting to be accepted", "connections", plot.accept_queue()),
        chart("refused", "Connections refused by a full accept queue", "connections/s", plot.refused()),
        chart("workers", "The app server's workers", "workers", plot.workers()),
        chart("neighbours", "Open calls to downstream services, by port", "connections", plot.downstream_calls()),
        chart("probes", "Liveness probes", "ms", plot.probes()),
        chart("throttling", "Periods throttled by a CPU quota", "ratio", plot.throttling()),
        chart("service_cpu", "CPUs used", "CPUs", plot.cpus_used()),
        chart("memory", "Memory used", "bytes", plot.memory()),
    ]
}

/// The app's own account of its waits.
pub(super) fn app_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        chart(
            "pool",
            "The app's connection pool",
            "connections",
            plot.gauges(&[
                ("used", metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &[("db_client_connection_state", "used")]),
                ("used", metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &[("state", "used")]),
                ("allowed", metrics::app::DB_CLIENT_CONNECTION_MAX.name, &[]),
                ("requests waiting", metrics::app::DB_CLIENT_CONNECTION_PENDING_REQUESTS.name, &[]),
            ]),
        ),
        log_chart(
            "app",
            "The app's own timing: mean time of its parts",
            "ms",
            plot.means(&[
                ("HTTP request", metrics::app::HTTP_SERVER_REQUEST_DURATION.name),
                ("wait for a connection", metrics::app::DB_CLIENT_CONNECTION_WAIT_TIME.name),
                ("database call", metrics::app::DB_CLIENT_OPERATION_DURATION.name),
                ("downstream call", metrics::app::HTTP_CLIENT_REQUEST_DURATION.name),
            ]),
        ),
    ]
}

/// The database.
pub(super) fn database_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        chart(
            "thread_pool",
            "The database's thread pool",
            "statements",
            plot.gauges(&[
                ("queued", metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, &[]),
                ("running", metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS.name, &[]),
            ]),
        ),
        chart("sessions", "Database sessions by true state", "sessions", plot.sessions()),
        log_chart("statements", "The server's own timing of statements, median", "ms", plot.statements()),
        log_chart("plans", "Executions with a recorded plan, by statement and plan shape", "ms", plot.plans()),
        chart("dead_rows", "Dead rows, by table", "rows", plot.dead_rows()),
    ]
}

/// The host.
pub(super) fn host_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        chart("cpu", "CPU time by mode, all CPUs", "ratio", plot.cpu()),
        chart(
            "disk",
            "Disk: share of time busy",
            "ratio",
            plot.rate_by_label(metrics::host::DISK_IO_TIME.name, "device"),
        ),
        chart(
            "disk_bytes",
            "Disk: bytes read and written",
            "bytes/s",
            plot.rate_by_label(metrics::host::DISK_IO_BYTES.name, "device"),
        ),
        chart(
            "load_average",
            "Load average and runnable threads",
            "threads",
            plot.gauges(&[
                ("load average, 1 min", metrics::host::LOAD_AVERAGE_1M.name, &[]),
                ("runnable", metrics::host::PROCESSES_RUNNABLE.name, &[]),
            ]),
        ),
    ]
}
