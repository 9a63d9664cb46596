//! What a recording calls the counters: for each [`Signal`] the samples that it is made of, MySQL's, PostgreSQL's and the host's.
//! How they become series of equal steps is `frame`'s.

use crate::counters::Signal;

/// Whose samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The machine's.
    Host,
    /// The database server's processes'.
    Server,
    /// MySQL's or MariaDB's own.
    Mysql,
    /// PostgreSQL's own.
    Postgres,
}

/// How samples become values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Take {
    /// A counter's growth a second, times this.
    Rate(f64),
    /// A counter's growth as a share (0-1) of that of all series of the metric.
    Share,
    /// The greatest growth a second of any series, at most 1: the busiest device.
    Busiest,
    /// A level, those of all series added up.
    Level,
}

/// Samples that a signal is made of, or a part of them.
pub(super) struct Term {
    pub whose: Whose,
    pub metric: &'static str,
    /// Only series with one of these values of the label; all if there are none.
    pub only: (&'static str, &'static [&'static str]),
    pub take: Take,
}

/// A signal, and the terms that are added up.
pub(super) struct Made {
    pub signal: Signal,
    pub of: &'static [Term],
}

const ALL: (&str, &[&str]) = ("", &[]);

const fn rate(whose: Whose, metric: &'static str) -> Term {
    Term { whose, metric, only: ALL, take: Take::Rate(1.0) }
}

/// Pages of PostgreSQL's usual size, as bytes.
const fn pages(metric: &'static str) -> Term {
    Term { whose: Whose::Postgres, metric, only: ALL, take: Take::Rate(8_192.0) }
}

const fn level(whose: Whose, metric: &'static str) -> Term {
    Term { whose, metric, only: ALL, take: Take::Level }
}

const fn cpu(modes: &'static [&'static str]) -> Term {
    Term { whose: Whose::Host, metric: "system_cpu_time_seconds_total", only: ("cpu_mode", modes), take: Take::Share }
}

const fn toward(metric: &'static str, direction: &'static [&'static str]) -> Term {
    Term { whose: Whose::Host, metric, only: ("direction", direction), take: Take::Rate(1.0) }
}

/// Of several ways to make a signal the first that was recorded, and counted anything, is taken.
pub(super) const SIGNALS: &[Made] = &[
    Made { signal: Signal::CpuUser, of: &[cpu(&["user", "nice"])] },
    Made { signal: Signal::CpuSystem, of: &[cpu(&["system", "interrupt", "softirq"])] },
    Made { signal: Signal::CpuIdle, of: &[cpu(&["idle"])] },
    Made { signal: Signal::CpuIowait, of: &[cpu(&["iowait"])] },
    Made { signal: Signal::RunQueue, of: &[Term { only: ("state", &["R"]), ..level(Whose::Host, "system_threads") }] },
    Made { signal: Signal::RunQueue, of: &[level(Whose::Host, "system_processes_runnable")] },
    Made {
        signal: Signal::BlockedThreads,
        of: &[Term { only: ("state", &["D"]), ..level(Whose::Host, "system_threads") }],
    },
    Made { signal: Signal::ContextSwitches, of: &[rate(Whose::Host, "system_context_switches_total")] },
    // In percent of a CPU, as `top` has it: what is nothing for this signal is meant so.
    Made {
        signal: Signal::ServerCpu,
        of: &[Term { take: Take::Rate(100.0), ..rate(Whose::Server, "process_cpu_time_seconds_total") }],
    },
    Made { signal: Signal::DiskReadBytes, of: &[toward("system_disk_io_bytes_total", &["read"])] },
    Made { signal: Signal::DiskWriteBytes, of: &[toward("system_disk_io_bytes_total", &["write"])] },
    Made { signal: Signal::DiskReads, of: &[toward("system_disk_operations_total", &["read"])] },
    Made { signal: Signal::DiskWrites, of: &[toward("system_disk_operations_total", &["write"])] },
    Made {
        signal: Signal::DiskUtilization,
        of: &[Term { take: Take::Busiest, ..rate(Whose::Host, "system_disk_io_time_seconds_total") }],
    },
    Made { signal: Signal::NetReceivedBytes, of: &[toward("system_network_io_bytes_total", &["receive"])] },
    Made { signal: Signal::NetSentBytes, of: &[toward("system_network_io_bytes_total", &["transmit"])] },
    Made { signal: Signal::MinorFaults, of: &[rate(Whose::Server, "process_minor_faults_total")] },
    Made { signal: Signal::FileHandles, of: &[level(Whose::Host, "system_file_handles")] },
    // MySQL and MariaDB.
    Made { signal: Signal::ConnectionsOpened, of: &[rate(Whose::Mysql, "mysql_global_status_connections")] },
    Made { signal: Signal::SessionsConnected, of: &[level(Whose::Mysql, "mysql_global_status_threads_connected")] },
    Made { signal: Signal::SessionsRunning, of: &[level(Whose::Mysql, "mysql_global_status_threads_running")] },
    Made {
        signal: Signal::LockWaiting,
        of: &[level(Whose::Mysql, "mysql_global_status_innodb_row_lock_current_waits")],
    },
    Made { signal: Signal::LockWaits, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_row_lock_waits")] },
    // The counter is in milliseconds: seconds waited a second.
    Made {
        signal: Signal::LockWaitTime,
        of: &[Term { take: Take::Rate(1e-3), ..rate(Whose::Mysql, "mysql_global_status_innodb_row_lock_time") }],
    },
    Made { signal: Signal::Commits, of: &[rate(Whose::Mysql, "mysql_global_status_com_commit")] },
    // With autocommit nobody says COMMIT.
    Made { signal: Signal::Commits, of: &[rate(Whose::Mysql, "mysql_global_status_handler_commit")] },
    Made { signal: Signal::Rollbacks, of: &[rate(Whose::Mysql, "mysql_global_status_com_rollback")] },
    Made { signal: Signal::RowsInserted, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_rows_inserted")] },
    Made { signal: Signal::RowsInserted, of: &[rate(Whose::Mysql, "mysql_global_status_handler_write")] },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Mysql, "mysql_global_status_innodb_rows_inserted"),
            rate(Whose::Mysql, "mysql_global_status_innodb_rows_updated"),
            rate(Whose::Mysql, "mysql_global_status_innodb_rows_deleted"),
        ],
    },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Mysql, "mysql_global_status_handler_write"),
            rate(Whose::Mysql, "mysql_global_status_handler_update"),
            rate(Whose::Mysql, "mysql_global_status_handler_delete"),
        ],
    },
    Made { signal: Signal::RowsScanned, of: &[rate(Whose::Mysql, "mysql_global_status_handler_read_rnd_next")] },
    Made { signal: Signal::RowsNext, of: &[rate(Whose::Mysql, "mysql_global_status_handler_read_next")] },
    Made { signal: Signal::RowsKeyed, of: &[rate(Whose::Mysql, "mysql_global_status_handler_read_key")] },
    Made { signal: Signal::LogBytes, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_os_log_written")] },
    Made { signal: Signal::LogWrites, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_log_writes")] },
    Made { signal: Signal::LogSyncs, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_os_log_fsyncs")] },
    Made { signal: Signal::PagesWritten, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_pages_written")] },
    Made { signal: Signal::ServerWriteBytes, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_data_written")] },
    Made { signal: Signal::ServerReadBytes, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_data_read")] },
    Made { signal: Signal::ServerReads, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_data_reads")] },
    Made {
        signal: Signal::PoolRequests,
        of: &[rate(Whose::Mysql, "mysql_global_status_innodb_buffer_pool_read_requests")],
    },
    Made { signal: Signal::PoolMisses, of: &[rate(Whose::Mysql, "mysql_global_status_innodb_buffer_pool_reads")] },
    Made {
        signal: Signal::DirtyPages,
        of: &[level(Whose::Mysql, "mysql_global_status_innodb_buffer_pool_pages_dirty")],
    },
    // PostgreSQL.
    Made { signal: Signal::SessionsConnected, of: &[level(Whose::Postgres, "postgresql_sessions")] },
    Made {
        signal: Signal::SessionsRunning,
        of: &[Term { only: ("state", &["active"]), ..level(Whose::Postgres, "postgresql_sessions") }],
    },
    Made { signal: Signal::Commits, of: &[rate(Whose::Postgres, "postgresql_stat_database_xact_commit")] },
    Made { signal: Signal::Rollbacks, of: &[rate(Whose::Postgres, "postgresql_stat_database_xact_rollback")] },
    Made { signal: Signal::RowsInserted, of: &[rate(Whose::Postgres, "postgresql_stat_database_tup_inserted")] },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Postgres, "postgresql_stat_database_tup_inserted"),
            rate(Whose::Postgres, "postgresql_stat_database_tup_updated"),
            rate(Whose::Postgres, "postgresql_stat_database_tup_deleted"),
        ],
    },
    Made { signal: Signal::RowsUpdated, of: &[rate(Whose::Postgres, "postgresql_stat_database_tup_updated")] },
    Made { signal: Signal::RowsDeleted, of: &[rate(Whose::Postgres, "postgresql_stat_database_tup_deleted")] },
    Made { signal: Signal::TempBytes, of: &[rate(Whose::Postgres, "postgresql_stat_database_temp_bytes")] },
    Made { signal: Signal::DeadRows, of: &[level(Whose::Postgres, "postgresql_stat_tables_n_dead_tup")] },
    Made { signal: Signal::RowsScanned, of: &[rate(Whose::Postgres, "postgresql_stat_database_tup_returned")] },
    Made { signal: Signal::RowsKeyed, of: &[rate(Whose::Postgres, "postgresql_stat_database_tup_fetched")] },
    Made { signal: Signal::LogBytes, of: &[rate(Whose::Postgres, "postgresql_stat_wal_wal_bytes")] },
    Made { signal: Signal::LogBytes, of: &[rate(Whose::Postgres, "postgresql_wal_position_bytes")] },
    Made { signal: Signal::LogWrites, of: &[rate(Whose::Postgres, "postgresql_stat_wal_wal_write")] },
    Made { signal: Signal::LogSyncs, of: &[rate(Whose::Postgres, "postgresql_stat_wal_wal_sync")] },
    Made {
        signal: Signal::PagesWritten,
        of: &[
            rate(Whose::Postgres, "postgresql_stat_bgwriter_buffers_checkpoint"),
            rate(Whose::Postgres, "postgresql_stat_bgwriter_buffers_clean"),
            rate(Whose::Postgres, "postgresql_stat_bgwriter_buffers_backend"),
        ],
    },
    // Pages of 8 KB, and the log: what went through the kernel's cache by other ways is not counted.
    Made {
        signal: Signal::ServerWriteBytes,
        of: &[
            pages("postgresql_stat_bgwriter_buffers_checkpoint"),
            pages("postgresql_stat_bgwriter_buffers_clean"),
            pages("postgresql_stat_bgwriter_buffers_backend"),
            rate(Whose::Postgres, "postgresql_stat_wal_wal_bytes"),
        ],
    },
    Made {
        signal: Signal::PoolRequests,
        of: &[
            rate(Whose::Postgres, "postgresql_stat_database_blks_hit"),
            rate(Whose::Postgres, "postgresql_stat_database_blks_read"),
        ],
    },
    Made { signal: Signal::PoolMisses, of: &[rate(Whose::Postgres, "postgresql_stat_database_blks_read")] },
];
