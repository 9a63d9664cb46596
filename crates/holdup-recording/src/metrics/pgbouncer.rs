//! Metrics of PgBouncer, from its admin console. A pool is a pair of `database` and `user`.

metrics! {
    "pgbouncer", "PgBouncer", "pgbouncer_";

    Gauge ACTIVE_CLIENTS: Count = "pgbouncer_active_clients", "Clients linked to a server connection, and idle ones, by `database` and `user`";
    Gauge WAITING_CLIENTS: Count = "pgbouncer_waiting_clients", "Clients that have sent a statement and wait for a server connection, by `database` and `user`";
    Gauge LONGEST_WAIT: Seconds = "pgbouncer_longest_wait_seconds", "How long the first client in the queue has waited, by `database` and `user`";
    Gauge ACTIVE_SERVERS: Count = "pgbouncer_active_servers", "Server connections linked to a client, by `database` and `user`";
    Gauge IDLE_SERVERS: Count = "pgbouncer_idle_servers", "Server connections ready for a client, by `database` and `user`";
    Gauge USED_SERVERS: Count = "pgbouncer_used_servers", "Server connections to be checked before their next use, by `database` and `user`";
    Gauge LOGIN_SERVERS: Count = "pgbouncer_login_servers", "Server connections that are logging in, by `database` and `user`";
    Counter TRANSACTIONS: Count = "pgbouncer_transactions_total", "Transactions, by `database`";
    Counter QUERIES: Count = "pgbouncer_queries_total", "Statements, by `database`";
    Counter SERVER_ASSIGNMENTS: Count = "pgbouncer_server_assignments_total", "Times that a client was given a server connection, by `database` (PgBouncer 1.23)";
    Counter WAIT_TIME: Seconds = "pgbouncer_wait_time_seconds_total", "Time that clients waited for a server connection, counted when they get one, by `database`";
    Counter TRANSACTION_TIME: Seconds = "pgbouncer_transaction_time_seconds_total", "Time in transactions, the wait for a server connection included, by `database`";
    Counter QUERY_TIME: Seconds = "pgbouncer_query_time_seconds_total", "Time in statements, the wait for a server connection included, by `database`";
    Counter RECEIVED_BYTES: Bytes = "pgbouncer_received_bytes_total", "Bytes received from clients, by `database`";
    Counter SENT_BYTES: Bytes = "pgbouncer_sent_bytes_total", "Bytes sent to clients, by `database`";
    Gauge POOL_SIZE: Count = "pgbouncer_pool_size", "Most server connections of each pool, by `database`";
    Gauge DATABASE_CONNECTIONS: Count = "pgbouncer_database_connections", "Server connections of all pools, by `database`";
}

/// Columns of `SHOW POOLS`, with the factor from their unit.
pub const POOLS: &[(&str, super::Metric, f64)] = &[
    ("cl_active", ACTIVE_CLIENTS, 1.0),
    ("cl_waiting", WAITING_CLIENTS, 1.0),
    ("sv_active", ACTIVE_SERVERS, 1.0),
    ("sv_idle", IDLE_SERVERS, 1.0),
    ("sv_used", USED_SERVERS, 1.0),
    ("sv_login", LOGIN_SERVERS, 1.0),
];

/// Columns of `SHOW STATS`, with the factor from their unit.
pub const STATS: &[(&str, super::Metric, f64)] = &[
    ("total_xact_count", TRANSACTIONS, 1.0),
    ("total_query_count", QUERIES, 1.0),
    ("total_server_assignment_count", SERVER_ASSIGNMENTS, 1.0),
    ("total_received", RECEIVED_BYTES, 1.0),
    ("total_sent", SENT_BYTES, 1.0),
    ("total_wait_time", WAIT_TIME, 1e-6),
    ("total_xact_time", TRANSACTION_TIME, 1e-6),
    ("total_query_time", QUERY_TIME, 1e-6),
];

/// Columns of `SHOW DATABASES`, with the factor from their unit.
pub const DATABASES: &[(&str, super::Metric, f64)] =
    &[("pool_size", POOL_SIZE, 1.0), ("current_connections", DATABASE_CONNECTIONS, 1.0)];
