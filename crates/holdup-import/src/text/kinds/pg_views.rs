//! Selects from PostgreSQL's statistics views, in every form of `psql`: each numeric column becomes
//! the metric that the collector writes for it. A view is known by columns that only it has.
//! Figures whose unit a column's name does not show (`round`, `pg_size_pretty`) are left out.

use std::collections::BTreeMap;

use holdup_recording::metrics::Member;
use holdup_recording::{Labels, metrics};

use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set::{self, ResultSet};
use super::Kind;
use super::pg_units::{interval_s, position};
use super::postgresql::SOURCE;

pub(super) const KIND: Kind = Kind { name: "PostgreSQL statistics", recognises, read };

pub(super) const LOCKS: Kind =
    Kind { name: "pg_locks", recognises: |lines| has_all(&columns(lines), &["mode", "granted"]), read: read_locks };

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

pub(super) const REPLICATION: Kind = Kind {
    name: "pg_stat_replication",
    recognises: |lines| {
        let columns = columns(lines);
        let is_own = ["replay_lag", "write_lag", "flush_lag", "sent_lsn", "replay_lsn"];
        is_own.iter().any(|name| has_all(&columns, &[name]))
            && (has_all(&columns, &["application_name"]) || has_all(&columns, &["client_addr"]))
    },
    read: read_replication,
};

fn columns(lines: &[Line]) -> Vec<String> {
    result_set::header(lines).unwrap_or_default()
}

fn has_all(columns: &[String], names: &[&str]) -> bool {
    names.iter().all(|name| columns.iter().any(|column| column == name))
}

fn of(columns: &[String]) -> Option<&'static View> {
    // Statements have counters of the same names.
    let is_other = has_all(columns, &["query"]) || has_all(columns, &["queryid"]);
    VIEWS.iter().find(|view| {
        let has_any = view.any.is_empty() || view.any.iter().any(|name| has_all(columns, &[name]));
        has_all(columns, view.all) && has_any && !is_other
    })
}

fn recognises(lines: &[Line]) -> bool {
    of(&columns(lines)).is_some()
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
fn labels(view: &View, set: &ResultSet, row: &[Option<String>]) -> Option<Labels> {
    if view.labels.contains(&"relname") {
        let table = set.cell(row, &["relname"])?;
        let schema = set.cell(row, &["schemaname"]).unwrap_or("public");
        let labels = Labels::new([("table", format!("{schema}.{table}"))]);
        return Some(match set.cell(row, &["indexrelname"]).filter(|_| view.labels.contains(&"indexrelname")) {
            Some(index) => labels.with("index", index),
            None => labels,
        });
    }
    // The row of shared objects has no name.
    if view.labels.first() == Some(&"datname") && set.cell(row, &["datname"]).is_none() {
        return None;
    }
    let named = view.labels.iter().filter_map(|column| {
        let label = if *column == "datname" { "database" } else { column };
        Some((label, set.cell(row, &[column])?))
    });
    Some(named.fold(Labels::none(), |labels, (label, value)| labels.with(label, value)))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((set, view)) = result_set::read(lines).and_then(|set| Some((of(&set.columns)?, set))).map(|(v, s)| (s, v))
    else {
        return 1;
    };
    let at = context.instant_of(view.name);
    if view.labels.contains(&"relname") && !set.columns.iter().any(|column| column == "schemaname") {
        context.out.note("PostgreSQL: tables without a schemaname were taken for those of public");
    }
    let mut unnamed = Vec::new();
    for row in &set.rows {
        let Some(labels) = labels(view, &set, row) else { continue };
        for (column, cell) in set.columns.iter().zip(row) {
            let Some(value) = cell.as_deref().and_then(number) else { continue };
            match metric(view, column) {
                Some(metric) => context.out.gauge(at, SOURCE, metric.as_str(), labels.clone(), value),
                None if !metrics::postgresql::IDENTITIES.contains(&column.as_str())
                    && !view.labels.contains(&column.as_str()) =>
                {
                    unnamed.push(column.as_str());
                }
                None => {}
            }
        }
    }
    unnamed.sort_unstable();
    unnamed.dedup();
    if !unnamed.is_empty() {
        let names = unnamed.join(", ");
        context
            .out
            .note(format!("{}: columns whose meaning their name does not show were left out: {names}", view.name));
    }
    set.used
}

/// Locks by kind, mode and whether they are granted: counted, or as the select counted them.
fn read_locks(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("pg_locks");
    let mut locks: BTreeMap<[String; 3], f64> = BTreeMap::new();
    let counted = set.columns.iter().any(|column| column == "count");
    for row in &set.rows {
        let cell = |name: &str| set.cell(row, &[name]).unwrap_or_default().to_owned();
        let granted = match cell("granted").as_str() {
            "t" | "true" | "1" => "1",
            "f" | "false" | "0" => "0",
            _ => continue,
        };
        let count = if counted { set.cell(row, &["count"]).and_then(number).unwrap_or(0.0) } else { 1.0 };
        *locks.entry([cell("locktype"), cell("mode"), granted.to_owned()]).or_default() += count;
    }
    for ([kind, mode, granted], count) in locks {
        let labels = Labels::new([("kind", kind), ("mode", mode), ("granted", granted)]);
        context.out.gauge(at, SOURCE, metrics::postgresql::VIEWS.member("locks").as_str(), labels, count);
    }
    set.used
}

/// Lags of each replica: times as they are, bytes against the server's own position if the select
/// shows that.
fn read_replication(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("pg_stat_replication");
    for row in &set.rows {
        let names = ["application_name", "client_addr"].iter();
        let named = names.filter_map(|name| Some((*name, set.cell(row, &[name])?)));
        let labels = named.fold(Labels::none(), |labels, (name, value)| labels.with(name, value));
        let here = set.cell(row, &["pg_current_wal_lsn", "pg_current_xlog_location"]).and_then(position);
        for part in ["sent", "write", "flush", "replay"] {
            let seconds = set.cell(row, &[&format!("{part}_lag")]).and_then(interval_s);
            let there = set.cell(row, &[&format!("{part}_lsn")]).and_then(position);
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
    if !set.columns.iter().any(|column| column.starts_with("pg_current_")) {
        context.out.note(
            "pg_stat_replication: lags in bytes need the server's own position: select pg_current_wal_lsn() beside it",
        );
    }
    set.used
}
