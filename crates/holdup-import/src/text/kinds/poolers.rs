//! Pools of connections by their own consoles: PgBouncer's `SHOW POOLS`, `SHOW STATS`, `SHOW DATABASES`
//! and `SHOW CLIENTS`, and ProxySQL's servers. Columns are those that the collectors read.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, pgbouncer, proxysql};
use holdup_recording::secret::settings::is_secret_in_postgresql;

use super::{Columns, Context, Kind, Table};

const PGBOUNCER: &str = "pgbouncer://pasted";
const PROXYSQL: &str = "proxysql://pasted";

/// PgBouncer's console is a database of its own, whose clients ask for figures.
const CONSOLE: &str = "pgbouncer";

pub(super) const POOLS: Kind = Kind::table(
    "SHOW POOLS",
    |columns| columns.has(&["cl_active"]) && columns.has_any(&["sv_active", "cl_waiting"]),
    read_pools,
);

pub(super) const STATS: Kind = Kind::table(
    "SHOW STATS",
    |columns| columns.has_any(&["total_xact_count", "total_query_count"]),
    |table, context| {
        read(table, ("SHOW STATS", PGBOUNCER), &[("database", "database")], pgbouncer::STATS, context);
    },
);

pub(super) const DATABASES: Kind = Kind::table(
    "SHOW DATABASES",
    |columns| columns.has(&["pool_size", "current_connections"]),
    |table, context| {
        read(table, ("SHOW DATABASES", PGBOUNCER), &[("database", "name")], pgbouncer::DATABASES, context);
    },
);

pub(super) const SETTINGS: Kind = Kind::table(
    "SHOW CONFIG",
    |columns| columns.has(&["key", "value", "changeable"]),
    |table, context| {
        let at = context.instant_of("SHOW CONFIG");
        for (name, value) in table.rows().filter_map(|row| row.text(&["key"]).zip(row.text(&["value"]))) {
            if !is_secret_in_postgresql(name) {
                context.out.setting(at, PGBOUNCER, name, value);
            }
        }
    },
);

pub(super) const CLIENTS: Kind = Kind::table("SHOW CLIENTS", is_clients, read_clients);

pub(super) const SERVERS: Kind = Kind::table(
    "stats_mysql_connection_pool",
    |columns| columns.has(&["ConnUsed", "ConnFree"]),
    |table, context| {
        let labels = [("hostgroup", "hostgroup"), ("server", "srv_host")];
        read(table, ("stats_mysql_connection_pool", PROXYSQL), &labels, proxysql::SERVER, context);
    },
);

fn is_clients(columns: &Columns<'_>) -> bool {
    columns.has(&["type", "state", "database"]) && columns.has_any(&["connect_time", "request_time", "wait", "link"])
}

/// Each row's figures by the labels in other columns of it.
fn read(
    table: &Table,
    (kind, source): (&'static str, &str),
    labels: &[(&'static str, &str)],
    columns: &[(&str, Metric, f64)],
    context: &mut Context,
) {
    let at = context.instant_of(kind);
    for row in table.rows().filter(|row| row.text(&["database", "name"]) != Some(CONSOLE)) {
        let named = labels.iter().map(|(label, column)| {
            let value = row.text(&[column]).unwrap_or_default();
            let port = row.text(&["srv_port"]).filter(|_| *column == "srv_host");
            (*label, port.map_or_else(|| value.to_owned(), |port| format!("{value}:{port}")))
        });
        let labels = Labels::new(named);
        for (column, metric, unit) in columns {
            if let Some(value) = row.number(&[column]) {
                context.out.gauge(at, source, metric.name, labels.clone(), value * unit);
            }
        }
    }
}

const OF_POOL: [(&str, &str); 2] = [("database", "database"), ("user", "user")];

fn read_pools(table: &Table, context: &mut Context) {
    read(table, ("SHOW POOLS", PGBOUNCER), &OF_POOL, pgbouncer::POOLS, context);
    let at = context.now();
    for row in table.rows().filter(|row| row.text(&["database"]) != Some(CONSOLE)) {
        let labels = Labels::new(OF_POOL.map(|(label, column)| (label, row.text(&[column]).unwrap_or_default())));
        if let Some(seconds) = row.number(&["maxwait"]) {
            let longest = seconds + row.number(&["maxwait_us"]).unwrap_or(0.0) / 1e6;
            context.out.gauge(at, PGBOUNCER, pgbouncer::LONGEST_WAIT.name, labels, longest);
        }
    }
}

/// Clients by pool and by whether they wait. Versions before 1.18 list every client as active.
fn read_clients(table: &Table, context: &mut Context) {
    let at = context.instant_of("SHOW CLIENTS");
    let mut pools: BTreeMap<[String; 2], [f64; 3]> = BTreeMap::new();
    for row in table.rows().filter(|row| row.text(&["database"]) != Some(CONSOLE)) {
        let cell = |name: &str| row.text(&[name]).unwrap_or_default().to_owned();
        let [active, waiting, longest] = pools.entry([cell("database"), cell("user")]).or_default();
        match row.text(&["state"]) {
            Some("waiting") => {
                *waiting += 1.0;
                let waited = row.number(&["wait"]).map(|s| s + row.number(&["wait_us"]).unwrap_or(0.0) / 1e6);
                *longest = waited.unwrap_or(0.0).max(*longest);
            }
            Some("active" | "idle" | "used") => *active += 1.0,
            _ => {}
        }
    }
    for ([database, user], values) in pools {
        let labels = Labels::new([("database", database), ("user", user)]);
        let figures = [pgbouncer::ACTIVE_CLIENTS, pgbouncer::WAITING_CLIENTS, pgbouncer::LONGEST_WAIT];
        for (metric, value) in figures.into_iter().zip(values) {
            context.out.gauge(at, PGBOUNCER, metric.name, labels.clone(), value);
        }
    }
}
