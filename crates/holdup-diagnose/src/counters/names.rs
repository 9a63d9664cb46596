//! The samples behind each [`Signal`]: MySQL's, PostgreSQL's and the host's. `frame` makes series
//! of equal steps of them.

use holdup_recording::metrics;

use crate::counters::Signal;

/// Source of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The machine's.
    Host,
    /// The database server's processes'.
    Server,
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}

/// How samples become values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Take {
    /// A counter's growth per second, times this.
    Rate(f64),
    /// A counter's growth as a share (0-1) of that of all series of the metric.
    Share,
    /// The greatest growth per second of any series, at most 1: the busiest device.
    Busiest,
    /// A level, summed over all series.
    Level,
}

/// Samples of a signal, or of a part of it.
pub(super) struct Term {
    pub whose: Whose,
    pub metric: &'static str,
    /// Only series with one of these values of the label; all if the list is empty.
    pub only: (&'static str, &'static [&'static str]),
    pub take: Take,
}

/// A signal, and the terms to add up.
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
    Term { whose: Whose::Host, metric: metrics::host::CPU_TIME.name, only: ("cpu_mode", modes), take: Take::Share }
}

const fn toward(metric: &'static str, direction: &'static [&'static str]) -> Term {
    Term { whose: Whose::Host, metric, only: ("direction", direction), take: Take::Rate(1.0) }
}

/// For a signal with several definitions, the first one that was recorded and counted anything.
pub(super) const SIGNALS: &[Made] = &[
    Made { signal: Signal::CpuUser, of: &[cpu(&["user", "nice"])] },
    Made { signal: Signal::CpuSystem, of: &[cpu(&["system", "interrupt", "softirq"])] },
    Made { signal: Signal::CpuIdle, of: &[cpu(&["idle"])] },
    Made { signal: Signal::CpuIowait, of: &[cpu(&["iowait"])] },
    Made {
        signal: Signal::RunQueue,
        of: &[Term { only: ("state", &["R"]), ..level(Whose::Host, metrics::host::THREADS.name) }],
    },
    Made { signal: Signal::RunQueue, of: &[level(Whose::Host, metrics::host::PROCESSES_RUNNABLE.name)] },
    Made {
        signal: Signal::BlockedThreads,
        of: &[Term { only: ("state", &["D"]), ..level(Whose::Host, metrics::host::THREADS.name) }],
    },
    Made { signal: Signal::ContextSwitches, of: &[rate(Whose::Host, metrics::host::CONTEXT_SWITCHES.name)] },
    // In percent of a CPU, like `top`: the signal's negligible amount is in that unit.
    Made {
        signal: Signal::ServerCpu,
        of: &[Term { take: Take::Rate(100.0), ..rate(Whose::Server, metrics::process::CPU_TIME.name) }],
    },
    Made { signal: Signal::DiskReadBytes, of: &[toward(metrics::host::DISK_IO_BYTES.name, &["read"])] },
    Made { signal: Signal::DiskWriteBytes, of: &[toward(metrics::host::DISK_IO_BYTES.name, &["write"])] },
    Made { signal: Signal::DiskReads, of: &[toward(metrics::host::DISK_OPERATIONS.name, &["read"])] },
    Made { signal: Signal::DiskWrites, of: &[toward(metrics::host::DISK_OPERATIONS.name, &["write"])] },
    Made {
        signal: Signal::DiskUtilization,
        of: &[Term { take: Take::Busiest, ..rate(Whose::Host, metrics::host::DISK_IO_TIME.name) }],
    },
    Made { signal: Signal::NetReceivedBytes, of: &[toward(metrics::host::NETWORK_IO_BYTES.name, &["receive"])] },
    Made { signal: Signal::NetSentBytes, of: &[toward(metrics::host::NETWORK_IO_BYTES.name, &["transmit"])] },
    Made { signal: Signal::MinorFaults, of: &[rate(Whose::Server, metrics::process::MINOR_FAULTS.name)] },
    Made { signal: Signal::FileHandles, of: &[level(Whose::Host, metrics::host::FILE_HANDLES.name)] },
    // MySQL and MariaDB.
    Made {
        signal: Signal::ConnectionsOpened,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_CONNECTIONS.name)],
    },
    Made {
        signal: Signal::SessionsConnected,
        of: &[level(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name)],
    },
    Made {
        signal: Signal::SessionsRunning,
        of: &[level(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_THREADS_RUNNING.name)],
    },
    Made {
        signal: Signal::LockWaiting,
        of: &[level(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS.name)],
    },
    Made {
        signal: Signal::LockWaits,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_WAITS.name)],
    },
    // The counter is in milliseconds: seconds waited per second.
    Made {
        signal: Signal::LockWaitTime,
        of: &[Term {
            take: Take::Rate(1e-3),
            ..rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name)
        }],
    },
    Made { signal: Signal::Commits, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_COM_COMMIT.name)] },
    // With autocommit there are no COMMIT statements.
    Made { signal: Signal::Commits, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_COMMIT.name)] },
    Made { signal: Signal::Rollbacks, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_COM_ROLLBACK.name)] },
    Made {
        signal: Signal::RowsInserted,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED.name)],
    },
    Made { signal: Signal::RowsInserted, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_WRITE.name)] },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED.name),
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED.name),
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_DELETED.name),
        ],
    },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_WRITE.name),
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_UPDATE.name),
            rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_DELETE.name),
        ],
    },
    Made {
        signal: Signal::RowsScanned,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_RND_NEXT.name)],
    },
    Made { signal: Signal::RowsNext, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_NEXT.name)] },
    Made { signal: Signal::RowsKeyed, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_KEY.name)] },
    Made {
        signal: Signal::LogBytes,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN.name)],
    },
    Made { signal: Signal::LogWrites, of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_LOG_WRITES.name)] },
    Made {
        signal: Signal::LogSyncs,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_FSYNCS.name)],
    },
    Made {
        signal: Signal::PagesWritten,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_PAGES_WRITTEN.name)],
    },
    Made {
        signal: Signal::ServerWriteBytes,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_WRITTEN.name)],
    },
    Made {
        signal: Signal::ServerReadBytes,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_READ.name)],
    },
    Made {
        signal: Signal::ServerReads,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_READS.name)],
    },
    Made {
        signal: Signal::PoolRequests,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READ_REQUESTS.name)],
    },
    Made {
        signal: Signal::PoolMisses,
        of: &[rate(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS.name)],
    },
    Made {
        signal: Signal::DirtyPages,
        of: &[level(Whose::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_DIRTY.name)],
    },
    // PostgreSQL.
    Made { signal: Signal::SessionsConnected, of: &[level(Whose::Postgres, metrics::postgresql::SESSIONS.name)] },
    Made {
        signal: Signal::SessionsRunning,
        of: &[Term { only: ("state", &["active"]), ..level(Whose::Postgres, metrics::postgresql::SESSIONS.name) }],
    },
    Made { signal: Signal::Commits, of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name)] },
    Made {
        signal: Signal::Rollbacks,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_XACT_ROLLBACK.name)],
    },
    Made {
        signal: Signal::RowsInserted,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_INSERTED.name)],
    },
    Made {
        signal: Signal::RowsChanged,
        of: &[
            rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_INSERTED.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_UPDATED.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_DELETED.name),
        ],
    },
    Made {
        signal: Signal::RowsUpdated,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_UPDATED.name)],
    },
    Made {
        signal: Signal::RowsDeleted,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_DELETED.name)],
    },
    Made {
        signal: Signal::TempBytes,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TEMP_BYTES.name)],
    },
    Made { signal: Signal::DeadRows, of: &[level(Whose::Postgres, metrics::postgresql::STAT_TABLES_N_DEAD_TUP.name)] },
    Made {
        signal: Signal::RowsScanned,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_RETURNED.name)],
    },
    Made {
        signal: Signal::RowsKeyed,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_TUP_FETCHED.name)],
    },
    Made { signal: Signal::LogBytes, of: &[rate(Whose::Postgres, metrics::postgresql::STAT_WAL_WAL_BYTES.name)] },
    Made { signal: Signal::LogBytes, of: &[rate(Whose::Postgres, metrics::postgresql::WAL_POSITION_BYTES.name)] },
    Made { signal: Signal::LogWrites, of: &[rate(Whose::Postgres, metrics::postgresql::STAT_WAL_WAL_WRITE.name)] },
    Made { signal: Signal::LogSyncs, of: &[rate(Whose::Postgres, metrics::postgresql::STAT_WAL_WAL_SYNC.name)] },
    Made {
        signal: Signal::PagesWritten,
        of: &[
            rate(Whose::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_CLEAN.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_BACKEND.name),
        ],
    },
    // Pages of 8 KiB, and the log: this misses other paths through the kernel's cache.
    Made {
        signal: Signal::ServerWriteBytes,
        of: &[
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT.name),
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_CLEAN.name),
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_BACKEND.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_WAL_WAL_BYTES.name),
        ],
    },
    Made {
        signal: Signal::PoolRequests,
        of: &[
            rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_HIT.name),
            rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_READ.name),
        ],
    },
    Made {
        signal: Signal::PoolMisses,
        of: &[rate(Whose::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_READ.name)],
    },
];
