//! The charts of each layer, in the order in which a request meets what they show.

use holdup_recording::metrics;

use super::{Chart, Plot};

/// What the generator did, and what came back.
pub(super) fn load_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        Chart { id: "rate", title: "Offered and achieved rate", unit: "requests/s", log: false, series: plot.rates() },
        Chart {
            id: "response",
            title: "Response time from the intended start",
            unit: "ms",
            log: true,
            series: plot.latency(),
        },
        Chart {
            id: "generator",
            title: "Requests in flight and waiting in the generator",
            unit: "requests",
            log: false,
            series: plot.gauges(&[
                ("in flight", metrics::load::REQUESTS_IN_FLIGHT.name, &[]),
                ("waiting for a connection", metrics::load::REQUESTS_WAITING.name, &[]),
            ]),
        },
        Chart {
            id: "generator_time",
            title: "The generator's own time",
            unit: "ratio",
            log: false,
            series: plot.own_time(),
        },
    ]
}

/// The app server and its process.
pub(super) fn service_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        Chart {
            id: "accept_queue",
            title: "Connections waiting to be accepted",
            unit: "connections",
            log: false,
            series: plot.accept_queue(),
        },
        Chart {
            id: "refused",
            title: "Connections refused by a full accept queue",
            unit: "connections/s",
            log: false,
            series: plot.refused(),
        },
        Chart { id: "workers", title: "The app server's workers", unit: "workers", log: false, series: plot.workers() },
        Chart {
            id: "neighbours",
            title: "Open calls to downstream services, by port",
            unit: "connections",
            log: false,
            series: plot.downstream_calls(),
        },
        Chart { id: "probes", title: "Liveness probes", unit: "ms", log: false, series: plot.probes() },
        Chart {
            id: "throttling",
            title: "Periods throttled by a CPU quota",
            unit: "ratio",
            log: false,
            series: plot.throttling(),
        },
        Chart { id: "service_cpu", title: "CPUs used", unit: "CPUs", log: false, series: plot.cpus_used() },
        Chart { id: "memory", title: "Memory used", unit: "bytes", log: false, series: plot.memory() },
    ]
}

/// The app's own account of its waits.
pub(super) fn app_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        Chart {
            id: "pool",
            title: "The app's connection pool",
            unit: "connections",
            log: false,
            series: plot.gauges(&[
                ("used", metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &[("db_client_connection_state", "used")]),
                ("used", metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &[("state", "used")]),
                ("allowed", metrics::app::DB_CLIENT_CONNECTION_MAX.name, &[]),
                ("requests waiting", metrics::app::DB_CLIENT_CONNECTION_PENDING_REQUESTS.name, &[]),
            ]),
        },
        Chart {
            id: "app",
            title: "The app's own timing: mean time of its parts",
            unit: "ms",
            log: true,
            series: plot.means(&[
                ("HTTP request", metrics::app::HTTP_SERVER_REQUEST_DURATION.name),
                ("wait for a connection", metrics::app::DB_CLIENT_CONNECTION_WAIT_TIME.name),
                ("database call", metrics::app::DB_CLIENT_OPERATION_DURATION.name),
                ("downstream call", metrics::app::HTTP_CLIENT_REQUEST_DURATION.name),
            ]),
        },
    ]
}

/// The database.
pub(super) fn database_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        Chart {
            id: "thread_pool",
            title: "The database's thread pool",
            unit: "statements",
            log: false,
            series: plot.gauges(&[
                ("queued", metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, &[]),
                ("running", metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS.name, &[]),
            ]),
        },
        Chart {
            id: "sessions",
            title: "Database sessions by true state",
            unit: "sessions",
            log: false,
            series: plot.sessions(),
        },
        Chart {
            id: "statements",
            title: "The server's own timing of statements, median",
            unit: "ms",
            log: true,
            series: plot.statements(),
        },
        Chart {
            id: "plans",
            title: "Executions with a recorded plan, by statement and plan shape",
            unit: "ms",
            log: true,
            series: plot.plans(),
        },
        Chart { id: "dead_rows", title: "Dead rows, by table", unit: "rows", log: false, series: plot.dead_rows() },
    ]
}

/// The host.
pub(super) fn host_charts(plot: &Plot<'_>) -> Vec<Chart> {
    vec![
        Chart { id: "cpu", title: "CPU time by mode, all CPUs", unit: "ratio", log: false, series: plot.cpu() },
        Chart {
            id: "disk",
            title: "Disk: share of time busy",
            unit: "ratio",
            log: false,
            series: plot.rate_by_label(metrics::host::DISK_IO_TIME.name, "device"),
        },
        Chart {
            id: "disk_bytes",
            title: "Disk: bytes read and written",
            unit: "bytes/s",
            log: false,
            series: plot.rate_by_label(metrics::host::DISK_IO_BYTES.name, "device"),
        },
        Chart {
            id: "load_average",
            title: "Load average and runnable threads",
            unit: "threads",
            log: false,
            series: plot.gauges(&[
                ("load average, 1 min", metrics::host::LOAD_AVERAGE_1M.name, &[]),
                ("runnable", metrics::host::PROCESSES_RUNNABLE.name, &[]),
            ]),
        },
    ]
}
