//! Metrics of ProxySQL, from its admin interface. A pool is a `hostgroup`, and has connections to
//! one or more servers.

metrics! {
    "proxysql", "ProxySQL", "proxysql_";

    Gauge WAITING_CLIENTS: Count = "proxysql_waiting_clients", "Clients that have sent a statement and have no server connection yet, by `hostgroup`";
    Gauge LONGEST_WAIT: Seconds = "proxysql_longest_wait_seconds", "How long the statement that has waited longest has been with ProxySQL, by `hostgroup`";
    Gauge CLIENTS: Count = "proxysql_clients", "Connections of clients";
    Gauge BUSY_CLIENTS: Count = "proxysql_busy_clients", "Connections of clients that ProxySQL's worker threads serve; idle ones wait in other threads if ProxySQL runs with those";
    Counter CLIENTS_OPENED: Count = "proxysql_clients_opened_total", "Connections that clients have opened";
    Counter CLIENTS_ABORTED: Count = "proxysql_clients_aborted_total", "Connections of clients that failed or were not closed properly";
    Gauge TRANSACTIONS: Count = "proxysql_transactions", "Connections of clients that are in a transaction";
    Counter STATEMENTS: Count = "proxysql_statements_total", "Statements of clients";
    Counter SLOW_STATEMENTS: Count = "proxysql_slow_statements_total", "Statements that took longer than `mysql-long_query_time`";
    Counter POOL_HITS: Count = "proxysql_pool_hits_total", "Requests for a server connection that got one";
    Counter POOL_MISSES: Count = "proxysql_pool_misses_total", "Requests for a server connection that got none; a client that waits asks again and again";
    Counter POOL_TIMEOUTS: Count = "proxysql_pool_timeouts_total", "Clients that got an error because no server connection came within `mysql-connect_timeout_server_max`";
    Counter SERVER_CONNECTIONS_DELAYED: Count = "proxysql_server_connections_delayed_total", "Server connections that had to wait because a hostgroup opened too many within a second";
    Counter SERVERS_LAGGING: Count = "proxysql_servers_lagging_total", "Statements whose server was shunned for its lag while they ran";
    Counter SERVERS_OFFLINE: Count = "proxysql_servers_offline_total", "Statements whose server went offline while they ran";
    Counter BACKEND_TIME: Seconds = "proxysql_backend_time_seconds_total", "Time of ProxySQL's threads in calls to servers, if `mysql-stats_time_backend_query` is on";
    Counter RULES_TIME: Seconds = "proxysql_rules_time_seconds_total", "Time in the rules for statements, if `mysql-stats_time_query_processor` is on";
    Gauge WORKER_THREADS: Count = "proxysql_worker_threads", "Threads that serve clients";
    Gauge CONNECTIONS_USED: Count = "proxysql_connections_used", "Server connections that a client has, by `hostgroup` and `server`";
    Gauge CONNECTIONS_FREE: Count = "proxysql_connections_free", "Server connections without a client, by `hostgroup` and `server`";
    Gauge CONNECTIONS_LIMIT: Count = "proxysql_connections_limit", "Most server connections (`max_connections`) of servers that are online, by `hostgroup` and `server`";
    Counter CONNECTIONS_OPENED: Count = "proxysql_connections_opened_total", "Server connections opened, by `hostgroup` and `server`";
    Counter CONNECTION_ERRORS: Count = "proxysql_connection_errors_total", "Server connections that failed, by `hostgroup` and `server`";
    Counter SERVER_STATEMENTS: Count = "proxysql_server_statements_total", "Statements sent to servers, by `hostgroup` and `server`";
    Counter SENT_BYTES: Bytes = "proxysql_sent_bytes_total", "Bytes sent to servers, by `hostgroup` and `server`";
    Counter RECEIVED_BYTES: Bytes = "proxysql_received_bytes_total", "Bytes received from servers, by `hostgroup` and `server`";
    Gauge PING: Seconds = "proxysql_ping_seconds", "Round trip of the last ping by ProxySQL's monitor, by `hostgroup` and `server`";
    Gauge SERVER_ONLINE: Count = "proxysql_server_online", "1 while ProxySQL sends statements to the server, by `hostgroup`, `server` and `status`";
    Counter ERRORS: Count = "proxysql_errors_total", "Errors that servers returned, by `hostgroup` and `code` (since 2.0.3)";
}

/// Columns of `stats_mysql_connection_pool`, with the factor from their unit.
pub const SERVER: &[(&str, super::Metric, f64)] = &[
    ("ConnUsed", CONNECTIONS_USED, 1.0),
    ("ConnFree", CONNECTIONS_FREE, 1.0),
    ("ConnOK", CONNECTIONS_OPENED, 1.0),
    ("ConnERR", CONNECTION_ERRORS, 1.0),
    ("Queries", SERVER_STATEMENTS, 1.0),
    ("Bytes_data_sent", SENT_BYTES, 1.0),
    ("Bytes_data_recv", RECEIVED_BYTES, 1.0),
];
