//! What libraries call the metrics of their pools.

use holdup_recording::metrics;

use holdup_signals::app::timing;

/// Label for a connection's state: OpenTelemetry's attribute, and its name before it was stable.
const STATE_LABELS: [&str; 2] = ["db_client_connection_state", "state"];

/// Names of a pool's metrics.
pub struct Names {
    /// Histogram of waits, seconds.
    pub wait: &'static str,
    /// Histogram of uses, seconds.
    pub held: &'static str,
    /// Gauge of requests that wait.
    pub pending: &'static str,
    /// Gauge of connections in use, and the labels that may say so.
    pub used: (&'static str, &'static [&'static str]),
    /// Gauge of the most connections.
    pub max: &'static str,
}

/// OpenTelemetry's, and those of HikariCP.
pub const NAMES: [Names; 2] = [
    Names {
        wait: timing::POOL_WAIT,
        held: timing::POOL_USE,
        pending: metrics::app::DB_CLIENT_CONNECTION_PENDING_REQUESTS.name,
        used: (metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &STATE_LABELS),
        max: metrics::app::DB_CLIENT_CONNECTION_MAX.name,
    },
    // Micrometer's, which HikariCP uses.
    Names {
        wait: metrics::app::HIKARICP_CONNECTIONS_ACQUIRE.name,
        held: metrics::app::HIKARICP_CONNECTIONS_USAGE.name,
        pending: metrics::app::HIKARICP_CONNECTIONS_PENDING.name,
        used: (metrics::app::HIKARICP_CONNECTIONS_ACTIVE.name, &[]),
        max: metrics::app::HIKARICP_CONNECTIONS_MAX.name,
    },
];
