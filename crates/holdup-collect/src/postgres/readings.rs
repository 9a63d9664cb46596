//! What to read from which version, in one table: first and last major version, metric name, label
//! columns, source, cadence and the required right. Columns vary with versions and are taken as
//! they are: every numeric column becomes a sample `postgresql_NAME_COLUMN`. Tables, indexes,
//! sessions and statements have their own modules, because only a part of them is read.

use holdup_recording::metrics::{self, Member};

/// How often a reading is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cadence {
    /// With every sample.
    Sample,
    /// At most once in ten seconds, and less often if it is costly.
    Slow,
}

/// The right that a reading requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// Any account may.
    Anyone,
    /// `pg_read_all_stats`, which is part of `pg_monitor`.
    Statistics,
    /// `pg_monitor` itself.
    Monitor,
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Reading {
    /// First major version with this reading.
    pub(super) since: i64,
    /// The last major version.
    pub(super) until: i64,
    /// Its part of the metric names.
    pub(super) name: &'static str,
    /// Columns used as labels.
    pub(super) labels: &'static [&'static str],
    /// The text after FROM.
    pub(super) from: &'static str,
    pub(super) cadence: Cadence,
    pub(super) needs: Right,
}

/// The oldest and the newest version that the table covers.
pub(super) const OLDEST: i64 = 10;
pub(super) const NEWEST: i64 = 18;

/// Stands for a version that does not exist yet.
const ON: i64 = i64::MAX;

/// The position in the server's WAL: written, or received and replayed.
macro_rules! position {
    () => {
        "CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) ELSE pg_current_wal_lsn() END"
    };
}

/// A progress view, with the table's name (in the connected database only: other databases have
/// other catalogs), the owner of a TOAST table, and the kind of worker. A TOAST table's name
/// contains the id of its table.
macro_rules! progress {
    ($view:literal) => {
        concat!(
            "(SELECT holdup_p.*, holdup_n.nspname || '.' || holdup_c.relname AS \"table\", \
             holdup_m.nspname || '.' || holdup_o.relname AS toast_of, \
             (SELECT CASE backend_type WHEN 'autovacuum worker' THEN 'autovacuum' ELSE 'session' END \
             FROM pg_stat_get_activity(holdup_p.pid)) AS worker FROM ",
            $view,
            " AS holdup_p LEFT JOIN pg_class AS holdup_c ON holdup_c.oid = holdup_p.relid AND holdup_p.datname = current_database() \
             LEFT JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_c.relnamespace \
             LEFT JOIN pg_class AS holdup_o ON holdup_c.relkind = 't' \
             AND holdup_o.oid = substring(holdup_c.relname FROM '^pg_toast_([0-9]+)$')::oid \
             LEFT JOIN pg_namespace AS holdup_m ON holdup_m.oid = holdup_o.relnamespace) AS holdup_r"
        )
    };
}

const REPLICATION: &str = concat!(
    "(SELECT application_name, client_addr, \
     (SELECT slot_name FROM pg_replication_slots WHERE active_pid = pg_stat_replication.pid LIMIT 1) AS slot, extract(epoch FROM write_lag) AS write_lag_seconds, \
     extract(epoch FROM flush_lag) AS flush_lag_seconds, extract(epoch FROM replay_lag) AS replay_lag_seconds, \
     pg_wal_lsn_diff(here, sent_lsn) AS sent_lag_bytes, pg_wal_lsn_diff(here, write_lsn) AS write_lag_bytes, \
     pg_wal_lsn_diff(here, flush_lsn) AS flush_lag_bytes, pg_wal_lsn_diff(here, replay_lsn) AS replay_lag_bytes \
     FROM pg_stat_replication, (SELECT ",
    position!(),
    " AS here) AS holdup_h) AS holdup_r"
);

/// A replica's own view: bytes received and not yet replayed, and the age of the last replayed
/// transaction.
const REPLICA: &str = "(SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) AS replay_lag_bytes, \
     extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS replayed_age_seconds \
     WHERE pg_is_in_recovery()) AS holdup_r";

/// Replication slots: what each keeps, and of that what its reader has not confirmed. Physical slots have no
/// plugin and confirm nothing.
macro_rules! slots {
    ($more:literal) => {
        concat!(
            "(SELECT slot_name AS slot, CASE WHEN active THEN '1' ELSE '0' END AS active, plugin, database, \
             pg_wal_lsn_diff(here, restart_lsn) AS retained_bytes, \
             pg_wal_lsn_diff(here, confirmed_flush_lsn) AS unconfirmed_bytes",
            $more,
            " FROM pg_replication_slots, (SELECT ",
            position!(),
            " AS here) AS holdup_h) AS holdup_r"
        )
    };
}

const SLOTS: &str = slots!("");

/// From 13 on the server says whether it still has a slot's log, and how much may be written before it
/// removes that.
const SLOTS_WITH_STATE: &str = slots!(", wal_status, safe_wal_size");

/// From 17 on it says since when a slot has no reader.
const SLOTS_WITH_TIME: &str =
    slots!(", wal_status, safe_wal_size, extract(epoch FROM clock_timestamp() - inactive_since) AS inactive_seconds");

/// WAL position and transaction ids of all servers since 10; only 14 added a view of WAL
/// statistics.
const LOG_AND_IDS: &str = concat!(
    "(SELECT pg_wal_lsn_diff(",
    position!(),
    ", '0/0') AS wal_position_bytes, txid_snapshot_xmax(txid_current_snapshot()) AS next_transaction_id) AS holdup_r"
);

/// The largest number of connections without superuser rights.
const CONNECTIONS: &str = "(SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
     - coalesce(current_setting('reserved_connections', true)::int, 0) AS connections_max) AS holdup_r";

/// Replication slots and prepared transactions whose snapshots keep dead rows from being removed.
/// Sessions are counted elsewhere.
const HOLDERS: &str = "(SELECT 'slot' AS holder, slot_name::text AS name, greatest(age(xmin), age(catalog_xmin)) AS age_transactions \
     FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL \
     UNION ALL SELECT 'prepared', gid, age(transaction) FROM pg_prepared_xacts) AS holdup_r";

const AGES: &str = "(SELECT datname, age(datfrozenxid) AS frozen_age_transactions, mxid_age(datminmxid) AS multixact_age \
     FROM pg_database) AS holdup_r";

const LOCKS: &str = "(SELECT locktype AS kind, mode, CASE WHEN granted THEN '1' ELSE '0' END AS granted, count(*) AS locks \
     FROM pg_locks GROUP BY 1, 2, 3) AS holdup_r";

const LOG_FILES: &str = "(SELECT count(*) AS wal_files, sum(size) AS wal_files_bytes FROM pg_ls_waldir()) AS holdup_r";

const TEMPORARY_FILES: &str = "(SELECT count(*) AS temporary_files, coalesce(sum(size), 0) AS temporary_files_bytes \
     FROM pg_ls_tmpdir()) AS holdup_r";

const IO: &str = "pg_stat_io WHERE reads > 0 OR writes > 0 OR extends > 0 OR fsyncs > 0 OR hits > 0";

const OF_SLOT: &[&str] = &["slot", "active", "wal_status", "plugin", "database"];

const OF_PROGRESS: &[&str] = &["pid", "datname", "table", "toast_of", "phase", "command", "worker"];

macro_rules! readings {
    ($(($since:expr, $until:expr, $name:expr, $labels:expr, $from:expr, $cadence:ident, $needs:ident),)*) => {
        /// Sources: the manual's chapter on statistics and the release notes of 10 to 18, and
        /// servers of 13, 15 and 18.
        pub(super) const READINGS: &[Reading] = &[$(Reading {
            since: $since, until: $until, name: $name, labels: $labels, from: $from, cadence: Cadence::$cadence, needs: Right::$needs,
        }),*];
    };
}

#[rustfmt::skip]
readings![
    (10, ON, "stat_database",         &["datname"],   "pg_stat_database WHERE datname IS NOT NULL",          Sample, Anyone),
    // Checkpoints are counted here until 16, and separately from 17 on.
    (10, ON, "stat_bgwriter",         &[],            "pg_stat_bgwriter",                                    Sample, Anyone),
    (17, ON, "stat_checkpointer",     &[],            "pg_stat_checkpointer",                                Sample, Anyone),
    (14, ON, "stat_wal",              &[],            "pg_stat_wal",                                         Sample, Anyone),
    (10, ON, "stat_archiver",         &[],            "pg_stat_archiver",                                    Sample, Anyone),
    (13, ON, "stat_slru",             &["name"],      "pg_stat_slru",                                        Sample, Anyone),
    (16, ON, "stat_io",               &["backend_type", "object", "context"], IO,                            Sample, Anyone),
    (10, ON, "",                      &[],            LOG_AND_IDS,                                           Sample, Anyone),
    (10, ON, "",                      &[],            CONNECTIONS,                                           Sample, Anyone),
    (10, ON, "oldest_xmin",           &["holder", "name"], HOLDERS,                                          Sample, Anyone),
    (10, 12, "replication_slot",      OF_SLOT,        SLOTS,                                                 Sample, Anyone),
    (13, 16, "replication_slot",      OF_SLOT,        SLOTS_WITH_STATE,                                      Sample, Anyone),
    (17, ON, "replication_slot",      OF_SLOT,        SLOTS_WITH_TIME,                                       Sample, Anyone),
    (10, ON, "replica",               &[],            REPLICA,                                               Sample, Anyone),
    (10, ON, "stat_replication",      &["application_name", "client_addr", "slot"], REPLICATION,             Sample, Statistics),
    (10, ON, "progress_vacuum",       OF_PROGRESS,    progress!("pg_stat_progress_vacuum"),                  Sample, Statistics),
    (13, ON, "progress_analyze",      OF_PROGRESS,    progress!("pg_stat_progress_analyze"),                 Sample, Statistics),
    (12, ON, "progress_create_index", OF_PROGRESS,    progress!("pg_stat_progress_create_index"),            Sample, Statistics),
    (12, ON, "progress_cluster",      OF_PROGRESS,    progress!("pg_stat_progress_cluster"),                 Sample, Statistics),
    (14, ON, "progress_copy",         OF_PROGRESS,    progress!("pg_stat_progress_copy"),                    Sample, Statistics),
    (13, ON, "progress_basebackup",   &["pid", "phase"], "pg_stat_progress_basebackup",                      Sample, Statistics),
    (10, ON, "stat_database_conflicts", &["datname"], "pg_stat_database_conflicts WHERE pg_is_in_recovery()", Slow,  Anyone),
    (10, ON, "database",              &["datname"],   AGES,                                                  Slow,   Anyone),
    (10, ON, "",                      &["kind", "mode", "granted"], LOCKS,                                   Slow,   Anyone),
    (10, ON, "",                      &[],            LOG_FILES,                                             Slow,   Monitor),
    (12, ON, "",                      &[],            TEMPORARY_FILES,                                       Slow,   Monitor),
];

/// The readings of a server with this major version.
pub(super) fn for_version(major: i64) -> impl Iterator<Item = &'static Reading> {
    READINGS.iter().filter(move |reading| (reading.since..=reading.until).contains(&major))
}

/// The metric of a column of the reading `name`; none if it is one of `labels` or identifies the
/// row.
pub(super) fn metric(name: &str, labels: &[&str], column: &str) -> Option<Member> {
    if labels.contains(&column) || metrics::postgresql::IDENTITIES.contains(&column) {
        return None;
    }
    let gap = if name.is_empty() { "" } else { "_" };
    Some(metrics::postgresql::VIEWS.member(format_args!("{name}{gap}{column}")))
}

/// The label for a column.
pub(super) fn label(column: &str) -> &str {
    if column == "datname" { "database" } else { column }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(major: i64) -> BTreeSet<&'static str> {
        for_version(major).map(|reading| reading.name).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn each_version_has_what_it_has_once() {
        for major in 10..=NEWEST + 1 {
            let named = for_version(major).filter(|reading| !reading.name.is_empty());
            assert_eq!(named.count(), names(major).len(), "{major}: a name twice");
        }
        let since = |name: &str| (10..=NEWEST).find(|major| names(*major).contains(name));
        for (name, first) in [
            ("stat_bgwriter", 10),
            ("progress_vacuum", 10),
            ("progress_cluster", 12),
            ("progress_analyze", 13),
            ("progress_basebackup", 13),
            ("progress_copy", 14),
            ("stat_wal", 14),
            ("stat_io", 16),
            ("stat_checkpointer", 17),
        ] {
            assert_eq!(since(name), Some(first), "{name}");
        }
    }

    #[test]
    fn metrics_are_named_after_what_was_read_and_its_column() {
        let of = |name: &str, column: &str| {
            READINGS
                .iter()
                .find(|reading| reading.name == name)
                .and_then(|reading| metric(name, reading.labels, column))
        };
        assert_eq!(of("stat_wal", "wal_bytes").as_ref().map(Member::as_str), Some("postgresql_stat_wal_wal_bytes"));
        assert_eq!(of("", "connections_max").as_ref().map(Member::as_str), Some("postgresql_connections_max"));
        assert_eq!(of("progress_vacuum", "pid"), None, "a label");
        assert_eq!(of("progress_cluster", "cluster_index_relid"), None, "no count");
        assert_eq!((label("datname"), label("phase")), ("database", "phase"));
    }

    #[test]
    fn frequent_reads_avoid_whole_catalogs() {
        for reading in READINGS.iter().filter(|reading| reading.cadence == Cadence::Sample) {
            for catalog in ["FROM pg_class", "FROM pg_index", "FROM pg_attribute", "pg_stat_all", "pg_locks", "pg_ls_"]
            {
                assert!(!reading.from.contains(catalog), "{}: {catalog}", reading.name);
            }
        }
    }
}
