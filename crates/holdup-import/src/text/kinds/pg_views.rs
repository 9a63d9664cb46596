//! Selects from PostgreSQL's statistics views, in every form of `psql`: each numeric column becomes
//! the metric that the collector writes for it. A view is known by columns that only it has.
//! Figures whose unit a column's name does not show (`round`, `pg_size_pretty`) are left out.

use std::collections::BTreeSet;

use holdup_recording::metrics::Member;
use holdup_recording::{Labels, metrics};

use super::pg_units::{interval_s, position};
use super::postgresql::SOURCE;
use super::{Columns, Context, Kind, Row, Table, clock, number};

pub(super) const KIND: Kind = Kind::table("PostgreSQL statistics", |columns| view_of(columns).is_some(), read);

/// A view: its part of metrics' names, columns that it always has, columns of which it has one, and
/// columns that are labels.
struct View {
    name: &'static str,
    all: &'static [&'static str],
    any: &'static [&'static str],
    labels: &'static [&'static str],
}

const fn view(
    name: &'static str,
    all: &'static [&'static str],
    any: &'static [&'static str],
    labels: &'static [&'static str],
) -> View {
    View { name, all, any, labels }
}

const PROGRESS: &[&str] = &["pid", "datname", "phase", "command"];

/// The first that fits is taken.
const VIEWS: [View; 15] = [
    view("stat_io", &["backend_type", "object", "context"], &[], &["backend_type", "object", "context"]),
    view("stat_slru", &["name"], &["blks_zeroed"], &["name"]),
    view("stat_database_conflicts", &["datname"], &["confl_lock", "confl_snapshot"], &["datname"]),
    view(
        "stat_database",
        &["datname"],
        &[
            "xact_commit",
            "xact_rollback",
            "blks_hit",
            "blks_read",
            "tup_returned",
            "tup_fetched",
            "temp_bytes",
            "temp_files",
            "deadlocks",
            "numbackends",
            "blk_read_time",
        ],
        &["datname"],
    ),
    view("stat_checkpointer", &[], &["num_timed", "num_requested", "restartpoints_timed"], &[]),
    view(
        "stat_bgwriter",
        &[],
        &[
            "buffers_clean",
            "maxwritten_clean",
            "checkpoints_timed",
            "checkpoints_req",
            "buffers_checkpoint",
            "buffers_backend",
        ],
        &[],
    ),
    view("stat_wal", &["wal_records"], &["wal_buffers_full"], &[]),
    view("stat_archiver", &[], &["archived_count"], &[]),
    view("stat_indexes", &["indexrelname"], &["idx_scan", "idx_tup_read", "idx_tup_fetch"], INDEX),
    view(
        "stat_tables",
        &["relname"],
        &[
            "n_live_tup",
            "n_dead_tup",
            "seq_scan",
            "seq_tup_read",
            "n_tup_upd",
            "n_tup_ins",
            "n_tup_del",
            "last_autovacuum",
            "n_mod_since_analyze",
        ],
        TABLE,
    ),
    view("statio_tables", &["relname"], &["heap_blks_read", "heap_blks_hit", "idx_blks_read"], TABLE),
    view("progress_vacuum", &["phase"], &["heap_blks_total", "heap_blks_scanned", "heap_blks_vacuumed"], PROGRESS),
    view("progress_create_index", &["phase"], &["blocks_done", "tuples_done", "lockers_done"], PROGRESS),
    view("progress_basebackup", &["phase"], &["backup_streamed", "backup_total"], &["pid", "phase"]),
    view("progress_copy", &["bytes_processed"], &["tuples_processed"], PROGRESS),
];

/// A table's name is made of its schema's and its own.
const TABLE: &[&str] = &["schemaname", "relname"];
const INDEX: &[&str] = &["schemaname", "relname", "indexrelname"];

pub(super) const REPLICATION: Kind = Kind::table(
    "pg_stat_replication",
    |columns| {
        columns.has_any(&["replay_lag", "write_lag", "flush_lag", "sent_lsn", "replay_lsn"])
            && columns.has_any(&["application_name", "client_addr"])
    },
    read_replication,
);

fn view_of(columns: &Columns<'_>) -> Option<&'static View> {
    // Statements have counters of the same names; progress is often shown with its session's statement.
    let is_other = columns.has_any(&["query", "queryid"]) && !columns.has(&["phase"]);
    let fits = |view: &&View| columns.has(view.all) && (view.any.is_empty() || columns.has_any(view.any));
    VIEWS.iter().filter(|_| !is_other).find(fits)
}

/// The metric of a column, as the collector names it.
fn metric(view: &View, column: &str) -> Option<Member> {
    let is_plain = column.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    // Names that a function gave say nothing of the unit.
    let is_function = ["round", "sum", "avg", "max", "min", "count", "coalesce", "ratio", "pct", "percent"]
        .iter()
        .any(|name| column == *name || column.ends_with(&format!("_{name}")));
    let is_other =
        metrics::postgresql::IDENTITIES.contains(&column) || view.labels.contains(&column) || !is_plain || is_function;
    (!is_other).then(|| metrics::postgresql::VIEWS.member(format_args!("{}_{column}", view.name)))
}

/// The labels of a row; none if it belongs to nothing that has a name.
fn labels(view: &View, row: &Row<'_, '_>) -> Option<Labels> {
    if view.labels.contains(&"relname") {
        let table = row.text(&["relname"])?;
        let schema = row.text(&["schemaname"]).unwrap_or("public");
        let labels = Labels::new([("table", format!("{schema}.{table}"))]);
        return Some(match row.text(&["indexrelname"]).filter(|_| view.labels.contains(&"indexrelname")) {
            Some(index) => labels.with("index", index),
            None => labels,
        });
    }
    // The row of shared objects has no name.
    if view.labels.first() == Some(&"datname") && row.text(&["datname"]).is_none() {
        return None;
    }
    let named = view.labels.iter().filter_map(|column| {
        let label = if *column == "datname" { "database" } else { column };
        Some((label, row.text(&[column])?))
    });
    Some(named.fold(Labels::none(), |labels, (label, value)| labels.with(label, value)))
}

fn read(table: &Table, context: &mut Context) {
    let Some(view) = view_of(&table.columns) else { return };
    let at = context.instant_of(view.name);
    if view.labels.contains(&"relname") && !table.columns.has(&["schemaname"]) {
        context.out.note("PostgreSQL: tables without a schemaname were taken for those of public");
    }
    let mut unnamed = BTreeSet::new();
    let newest = table.rows().filter_map(|row| vacuumed(&row)).max();
    for row in table.rows() {
        let Some(labels) = labels(view, &row) else { continue };
        if let Some((newest, own)) = newest.zip(vacuumed(&row)) {
            let age_s = newest.saturating_sub(own) as f64 / 1e9;
            context.out.gauge(at, SOURCE, metrics::postgresql::TABLE_VACUUMED_AGE.name, labels.clone(), age_s);
        }
        for (column, cell) in row.cells() {
            let Some(value) = cell.and_then(number) else { continue };
            match metric(view, column) {
                Some(metric) => context.out.gauge(at, SOURCE, metric.as_str(), labels.clone(), value),
                None if !metrics::postgresql::IDENTITIES.contains(&column) && !view.labels.contains(&column) => {
                    unnamed.insert(column);
                }
                None => {}
            }
        }
    }
    if !unnamed.is_empty() {
        let names = unnamed.into_iter().collect::<Vec<_>>().join(", ");
        context
            .out
            .note(format!("{}: columns whose meaning their name does not show were left out: {names}", view.name));
    }
}

/// When a table was vacuumed last.
fn vacuumed(row: &Row<'_, '_>) -> Option<i64> {
    let times = ["last_autovacuum", "last_vacuum"].iter().filter_map(|name| clock::leading(row.text(&[name])?).0);
    times.max()
}

/// Lags of each replica: times as they are, bytes against the server's own position if the select
/// shows that.
fn read_replication(table: &Table, context: &mut Context) {
    let at = context.instant_of("pg_stat_replication");
    for row in table.rows() {
        let names = ["application_name", "client_addr"].iter();
        let named = names.filter_map(|name| Some((*name, row.text(&[name])?)));
        let labels = named.fold(Labels::none(), |labels, (name, value)| labels.with(name, value));
        let here = row.text(&["pg_current_wal_lsn", "pg_current_xlog_location"]).and_then(position);
        for part in ["sent", "write", "flush", "replay"] {
            let seconds = row.text(&[&format!("{part}_lag")]).and_then(interval_s);
            let there = row.text(&[&format!("{part}_lsn")]).and_then(position);
            let bytes = here.zip(there).map(|(here, there)| here - there);
            for (unit, value) in [("seconds", seconds), ("bytes", bytes)] {
                if let Some(value) = value {
                    let name = format!("stat_replication_{part}_lag_{unit}");
                    let metric = metrics::postgresql::VIEWS.member(name);
                    context.out.gauge(at, SOURCE, metric.as_str(), labels.clone(), value);
                }
            }
        }
    }
    if !table.columns.names.iter().any(|column| column.starts_with("pg_current_")) {
        context.out.note(
            "pg_stat_replication: lags in bytes need the server's own position: select pg_current_wal_lsn() beside it",
        );
    }
}
