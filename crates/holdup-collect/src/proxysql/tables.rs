//! ProxySQL's tables as rows: which statement reads each, and which column is which metric. Columns
//! are found by name, because versions differ; one that a version lacks is left out.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, proxysql as metric};
use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use crate::reading::Out;
use crate::table::{NamedRow, Rows};

/// ProxySQL's own figures.
pub(super) const FIGURES: &str = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global";

/// The servers of each hostgroup, those with the most connections in use first.
pub(super) const POOL: &str = "SELECT * FROM stats_mysql_connection_pool ORDER BY ConnUsed DESC LIMIT 500";

/// A client that connects and has no server connection waits for one. One that has it already waits
/// for the server. 2.0.0 writes an empty text where later versions write NULL.
pub(super) const WAITING: &str = "SELECT hostgroup, COUNT(*) AS clients, MAX(time_ms) AS longest_ms FROM stats_mysql_processlist \
     WHERE command = 'Connect' AND COALESCE(srv_host, '') = '' GROUP BY hostgroup ORDER BY clients DESC LIMIT 500";

/// The size of each server's pool. Only accounts of `admin-admin_credentials` have this table.
pub(super) const LIMITS: &str =
    "SELECT hostgroup_id, hostname, port, status, max_connections FROM runtime_mysql_servers LIMIT 500";

/// Errors by number; their texts are left where they are.
pub(super) const ERRORS: &str = "SELECT hostgroup, errno, SUM(count_star) AS errors FROM stats_mysql_errors GROUP BY hostgroup, errno \
     ORDER BY errors DESC LIMIT 500";

/// Statements with their literals replaced, those with the most time first.
pub(super) const DIGESTS: &str = "SELECT schemaname, substr(digest_text, 1, 8192) AS digest_text, SUM(count_star) AS calls, \
     SUM(sum_time) AS total_us FROM stats_mysql_query_digest GROUP BY schemaname, digest_text ORDER BY total_us DESC LIMIT 500";

/// Settings that bound pools and waits. Others may hold passwords and addresses.
pub(super) const SETTINGS: &str = "SELECT variable_name, variable_value FROM runtime_global_variables WHERE variable_name IN \
     ('mysql-max_connections', 'mysql-threads', 'mysql-multiplexing', 'mysql-free_connections_pct', 'mysql-interfaces', \
     'mysql-connect_timeout_server', 'mysql-connect_timeout_server_max', 'mysql-connection_max_age_ms', \
     'mysql-connection_delay_multiplex_ms', 'mysql-auto_increment_delay_multiplex', 'mysql-default_query_timeout', \
     'mysql-max_transaction_time', 'mysql-long_query_time', 'mysql-throttle_connections_per_sec_to_hostgroup', \
     'mysql-stats_time_backend_query', 'mysql-stats_time_query_processor', 'admin-version')";

/// Names in `stats_mysql_global`, with the factor from their unit.
const GLOBAL: &[(&str, Metric, f64)] = &[
    ("Client_Connections_connected", metric::CLIENTS, 1.0),
    ("Client_Connections_non_idle", metric::BUSY_CLIENTS, 1.0),
    ("Client_Connections_created", metric::CLIENTS_OPENED, 1.0),
    ("Client_Connections_aborted", metric::CLIENTS_ABORTED, 1.0),
    ("Server_Connections_delayed", metric::SERVER_CONNECTIONS_DELAYED, 1.0),
    ("Active_Transactions", metric::TRANSACTIONS, 1.0),
    ("Questions", metric::STATEMENTS, 1.0),
    ("Slow_queries", metric::SLOW_STATEMENTS, 1.0),
    ("ConnPool_get_conn_success", metric::POOL_HITS, 1.0),
    ("ConnPool_get_conn_failure", metric::POOL_MISSES, 1.0),
    ("max_connect_timeouts", metric::POOL_TIMEOUTS, 1.0),
    ("backend_lagging_during_query", metric::SERVERS_LAGGING, 1.0),
    ("backend_offline_during_query", metric::SERVERS_OFFLINE, 1.0),
    ("Backend_query_time_nsec", metric::BACKEND_TIME, 1e-9),
    ("Query_Processor_time_nsec", metric::RULES_TIME, 1e-9),
    ("MySQL_Thread_Workers", metric::WORKER_THREADS, 1.0),
];

/// A server of a hostgroup; the host and port have these columns.
fn server(row: NamedRow<'_>, [hostgroup, host, port]: [&str; 3]) -> Labels {
    let server = format!("{}:{}", row.name(host), row.name(port));
    Labels::new([("hostgroup", row.name(hostgroup)), ("server", server)])
}

pub(super) fn put_figures(rows: &Rows, out: &mut Out<'_>) {
    for row in &rows.rows {
        let known = GLOBAL.iter().find(|(name, ..)| row.text(0).is_some_and(|own| own.eq_ignore_ascii_case(name)));
        if let Some(((_, metric, unit), value)) = known.zip(row.float(1)) {
            out.put_plain(metric, value * unit);
        }
    }
}

/// Puts the servers' rows, and returns their hostgroups.
pub(super) fn put_pool(rows: &Rows, out: &mut Out<'_>) -> BTreeSet<String> {
    for row in rows.named() {
        let labels = server(row, ["hostgroup", "srv_host", "srv_port"]);
        row.put(out, &labels, metric::SERVER);
        // Without a monitor it is 0.
        let ping_us = row.number("Latency_us").filter(|us| *us > 0.0);
        out.put_known(&labels, [(metric::PING, ping_us.map(|us| us / 1e6))]);
        if let Some(status) = row.text("status") {
            let is_online = f64::from(u8::from(status == "ONLINE"));
            out.put(metric::SERVER_ONLINE, labels.with("status", status.to_owned()), is_online);
        }
    }
    rows.named().map(|row| row.name("hostgroup")).collect()
}

/// Puts the queue of each of `hostgroups`, and of others that have one.
pub(super) fn put_waiting(rows: &Rows, hostgroups: &BTreeSet<String>, out: &mut Out<'_>) {
    let mut queues: BTreeMap<String, (f64, f64)> = hostgroups.iter().map(|name| (name.clone(), (0.0, 0.0))).collect();
    for row in rows.named() {
        let figure = |column| row.number(column).unwrap_or(0.0);
        queues.insert(row.name("hostgroup"), (figure("clients"), figure("longest_ms") / 1e3));
    }
    for (hostgroup, (clients, longest_s)) in queues {
        let labels = Labels::new([("hostgroup", hostgroup)]);
        out.put(metric::WAITING_CLIENTS, labels.clone(), clients);
        out.put(metric::LONGEST_WAIT, labels, longest_s);
    }
}

pub(super) fn put_limits(rows: &Rows, out: &mut Out<'_>) {
    // The others take no statements, so that their connections are not there to be had.
    for row in rows.named().filter(|row| row.text("status") == Some("ONLINE")) {
        let labels = server(row, ["hostgroup_id", "hostname", "port"]);
        row.put(out, &labels, &[("max_connections", metric::CONNECTIONS_LIMIT, 1.0)]);
    }
}

pub(super) fn put_errors(rows: &Rows, out: &mut Out<'_>) {
    for row in rows.named() {
        let labels = Labels::new([("hostgroup", row.name("hostgroup")), ("code", row.name("errno"))]);
        row.put(out, &labels, &[("errors", metric::ERRORS, 1.0)]);
    }
}

/// The counters by statement. They are ProxySQL's, with the wait for a connection in them, so their
/// kind differs from that of a server's: rules must not add the two up.
pub(super) fn put_digests(rows: &Rows, out: &mut Out<'_>) {
    let mut totals: BTreeMap<(String, String), Statement> = BTreeMap::new();
    for row in rows.named() {
        let Some(text) = row.text("digest_text") else { continue };
        let text = digest_text(text, Dialect::MySql);
        let (schema, digest) = (row.name("schemaname"), digest_of_text(&text));
        let number = |column| row.number(column).unwrap_or(0.0) as i64;
        let total = totals.entry((schema.clone(), digest.clone())).or_insert_with(|| Statement {
            observed_at: out.at(),
            source: out.source().to_owned(),
            kind: "proxied_total".to_owned(),
            digest,
            digest_text: text,
            database: Some(schema),
            ..Statement::default()
        });
        total.calls = total.calls.saturating_add(number("calls"));
        total.duration_ns = total.duration_ns.saturating_add(number("total_us").saturating_mul(1_000));
    }
    out.batch.statements.extend(totals.into_values());
}

/// Names and values of the settings.
pub(super) fn settings(rows: &Rows) -> impl Iterator<Item = (String, String)> + '_ {
    rows.rows.iter().filter_map(|row| {
        let name = match row.text(0)? {
            "admin-version" => "proxysql_version",
            name => name,
        };
        Some((name.to_owned(), row.text(1)?.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use holdup_recording::Batch;

    use super::*;
    use crate::table::Row;

    fn rows(columns: &str, values: &[&str]) -> Rows {
        let row = |line: &&str| Row(line.split('|').map(|word| (word != "-").then(|| word.to_owned())).collect());
        Rows {
            columns: columns.split(' ').map(str::to_owned).collect(),
            rows: values.iter().map(row).collect(),
            ..Rows::default()
        }
    }

    fn put(put: impl FnOnce(&mut Out<'_>)) -> Batch {
        let mut batch = Batch::default();
        put(&mut Out::new(&mut batch, "proxysql://x"));
        batch
    }

    fn value(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Option<f64> {
        batch.samples.iter().find(|s| s.metric == metric.name && s.labels.contains(labels)).map(|s| s.value)
    }

    #[test]
    fn columns_that_a_version_lacks_are_no_zeros() {
        let old = rows("hostgroup srv_host srv_port status ConnUsed ConnFree", &["1|db|3306|ONLINE|7|1"]);
        let batch = put(|out| assert_eq!(put_pool(&old, out), BTreeSet::from(["1".to_owned()])));
        let server = [("hostgroup", "1"), ("server", "db:3306")];
        assert_eq!(value(&batch, metric::CONNECTIONS_USED, &server), Some(7.0));
        assert_eq!(value(&batch, metric::SERVER_ONLINE, &server), Some(1.0));
        assert_eq!(value(&batch, metric::SERVER_STATEMENTS, &server), None);
        assert_eq!(value(&batch, metric::PING, &server), None);
        let shunned = rows("hostgroup srv_host srv_port status Latency_us", &["1|db|3306|SHUNNED|450"]);
        let batch = put(|out| drop(put_pool(&shunned, out)));
        assert_eq!(value(&batch, metric::SERVER_ONLINE, &[("status", "SHUNNED")]), Some(0.0));
        assert_eq!(value(&batch, metric::PING, &server), Some(0.000_45));
    }

    #[test]
    fn figures_have_units_and_others_are_left_out() {
        let global = ["Questions|12", "Backend_query_time_nsec|2500000000", "mysql_session_internal_bytes|9", "X|-"];
        let batch = put(|out| put_figures(&rows("Variable_Name Variable_Value", &global), out));
        assert_eq!(value(&batch, metric::STATEMENTS, &[]), Some(12.0));
        assert_eq!(value(&batch, metric::BACKEND_TIME, &[]), Some(2.5));
        assert_eq!(batch.samples.len(), 2);
    }

    #[test]
    fn a_hostgroup_without_a_queue_is_a_zero() {
        let hostgroups = BTreeSet::from(["1".to_owned(), "2".to_owned()]);
        let waiting = rows("hostgroup clients longest_ms", &["2|5|1500", "9|1|20"]);
        let batch = put(|out| put_waiting(&waiting, &hostgroups, out));
        let clients = |hostgroup| value(&batch, metric::WAITING_CLIENTS, &[("hostgroup", hostgroup)]);
        assert_eq!((clients("1"), clients("2"), clients("9")), (Some(0.0), Some(5.0), Some(1.0)));
        assert_eq!(value(&batch, metric::LONGEST_WAIT, &[("hostgroup", "2")]), Some(1.5));
    }

    #[test]
    fn limits_of_servers_that_are_online() {
        let servers = ["1|db|3306|ONLINE|200", "1|spare|3306|OFFLINE_SOFT|100"];
        let batch = put(|out| put_limits(&rows("hostgroup_id hostname port status max_connections", &servers), out));
        assert_eq!(batch.samples.len(), 1);
        assert_eq!(value(&batch, metric::CONNECTIONS_LIMIT, &[("server", "db:3306")]), Some(200.0));
    }

    #[test]
    fn statements_lose_the_literals_that_proxysql_kept() {
        let digests =
            ["shop|SELECT x FROM t WHERE a=? AND b='canary'|3|4000", "shop|SELECT x FROM t WHERE a=? AND b=?|1|500"];
        let batch = put(|out| put_digests(&rows("schemaname digest_text calls total_us", &digests), out));
        let [one] = batch.statements.as_slice() else { panic!("{:?}", batch.statements) };
        assert_eq!((one.kind.as_str(), one.calls, one.duration_ns), ("proxied_total", 4, 4_500_000));
        assert!(!one.digest_text.contains("canary"), "{}", one.digest_text);
    }
}
