//! The samples behind each [`Signal`]: MySQL's, PostgreSQL's and the host's. `frame` makes series
//! of equal steps of them.

use holdup_recording::metrics;

use super::Signal;

/// Source of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleOrigin {
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
pub(super) enum Conversion {
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
    pub whose: SampleOrigin,
    pub metric: &'static str,
    /// Only series with one of these values of the label; all if the list is empty.
    pub only: (&'static str, &'static [&'static str]),
    pub take: Conversion,
}

/// A signal, and the terms to add up.
pub(super) struct SignalSource {
    pub signal: Signal,
    pub of: &'static [Term],
}

const ALL: (&str, &[&str]) = ("", &[]);

const fn rate(whose: SampleOrigin, metric: &'static str) -> Term {
    Term { whose, metric, only: ALL, take: Conversion::Rate(1.0) }
}

/// Pages of PostgreSQL's usual size, as bytes.
const fn pages(metric: &'static str) -> Term {
    Term { whose: SampleOrigin::Postgres, metric, only: ALL, take: Conversion::Rate(8_192.0) }
}

const fn level(whose: SampleOrigin, metric: &'static str) -> Term {
    Term { whose, metric, only: ALL, take: Conversion::Level }
}

const fn cpu(modes: &'static [&'static str]) -> Term {
    Term {
        whose: SampleOrigin::Host,
        metric: metrics::host::CPU_TIME.name,
        only: ("cpu_mode", modes),
        take: Conversion::Share,
    }
}

const fn toward(metric: &'static str, direction: &'static [&'static str]) -> Term {
    Term { whose: SampleOrigin::Host, metric, only: ("direction", direction), take: Conversion::Rate(1.0) }
}

/// For a signal with several definitions, the first one that was recorded and counted anything.
pub(super) const SIGNALS: &[SignalSource] = &[
    SignalSource { signal: Signal::CpuUser, of: &[cpu(&["user", "nice"])] },
    SignalSource { signal: Signal::CpuSystem, of: &[cpu(&["system", "interrupt", "softirq"])] },
    SignalSource { signal: Signal::CpuIdle, of: &[cpu(&["idle"])] },
    SignalSource { signal: Signal::CpuIowait, of: &[cpu(&["iowait"])] },
    SignalSource {
        signal: Signal::RunQueue,
        of: &[Term { only: ("state", &["R"]), ..level(SampleOrigin::Host, metrics::host::THREADS.name) }],
    },
    SignalSource { signal: Signal::RunQueue, of: &[level(SampleOrigin::Host, metrics::host::PROCESSES_RUNNABLE.name)] },
    SignalSource {
        signal: Signal::BlockedThreads,
        of: &[Term { only: ("state", &["D"]), ..level(SampleOrigin::Host, metrics::host::THREADS.name) }],
    },
    SignalSource {
        signal: Signal::ContextSwitches,
        of: &[rate(SampleOrigin::Host, metrics::host::CONTEXT_SWITCHES.name)],
    },
    // In percent of a CPU, like `top`: the signal's negligible amount is in that unit.
    SignalSource {
        signal: Signal::ServerCpu,
        of: &[Term { take: Conversion::Rate(100.0), ..rate(SampleOrigin::Server, metrics::process::CPU_TIME.name) }],
    },
    SignalSource { signal: Signal::DiskReadBytes, of: &[toward(metrics::host::DISK_IO_BYTES.name, &["read"])] },
    SignalSource { signal: Signal::DiskWriteBytes, of: &[toward(metrics::host::DISK_IO_BYTES.name, &["write"])] },
    SignalSource { signal: Signal::DiskReads, of: &[toward(metrics::host::DISK_OPERATIONS.name, &["read"])] },
    SignalSource { signal: Signal::DiskWrites, of: &[toward(metrics::host::DISK_OPERATIONS.name, &["write"])] },
    SignalSource {
        signal: Signal::DiskUtilization,
        of: &[Term { take: Conversion::Busiest, ..rate(SampleOrigin::Host, metrics::host::DISK_IO_TIME.name) }],
    },
    SignalSource {
        signal: Signal::NetReceivedBytes,
        of: &[toward(metrics::host::NETWORK_IO_BYTES.name, &["receive"])],
    },
    SignalSource { signal: Signal::NetSentBytes, of: &[toward(metrics::host::NETWORK_IO_BYTES.name, &["transmit"])] },
    SignalSource {
        signal: Signal::MinorFaults,
        of: &[rate(SampleOrigin::Server, metrics::process::MINOR_FAULTS.name)],
    },
    SignalSource { signal: Signal::FileHandles, of: &[level(SampleOrigin::Host, metrics::host::FILE_HANDLES.name)] },
    // MySQL and MariaDB.
    SignalSource {
        signal: Signal::ConnectionsOpened,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_CONNECTIONS.name)],
    },
    SignalSource {
        signal: Signal::SessionsConnected,
        of: &[level(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name)],
    },
    SignalSource {
        signal: Signal::SessionsRunning,
        of: &[level(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_THREADS_RUNNING.name)],
    },
    SignalSource {
        signal: Signal::LockWaiting,
        of: &[level(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS.name)],
    },
    SignalSource {
        signal: Signal::LockWaits,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_WAITS.name)],
    },
    // The counter is in milliseconds: seconds waited per second.
    SignalSource {
        signal: Signal::LockWaitTime,
        of: &[Term {
            take: Conversion::Rate(1e-3),
            ..rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name)
        }],
    },
    SignalSource {
        signal: Signal::Commits,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_COM_COMMIT.name)],
    },
    // With autocommit there are no COMMIT statements.
    SignalSource {
        signal: Signal::Commits,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_COMMIT.name)],
    },
    SignalSource {
        signal: Signal::Rollbacks,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_COM_ROLLBACK.name)],
    },
    SignalSource {
        signal: Signal::RowsInserted,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED.name)],
    },
    SignalSource {
        signal: Signal::RowsInserted,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_WRITE.name)],
    },
    SignalSource {
        signal: Signal::RowsChanged,
        of: &[
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED.name),
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED.name),
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_DELETED.name),
        ],
    },
    SignalSource {
        signal: Signal::RowsChanged,
        of: &[
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_WRITE.name),
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_UPDATE.name),
            rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_DELETE.name),
        ],
    },
    SignalSource {
        signal: Signal::RowsScanned,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_RND_NEXT.name)],
    },
    SignalSource {
        signal: Signal::RowsNext,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_NEXT.name)],
    },
    SignalSource {
        signal: Signal::RowsKeyed,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_HANDLER_READ_KEY.name)],
    },
    SignalSource {
        signal: Signal::LogBytes,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN.name)],
    },
    SignalSource {
        signal: Signal::LogWrites,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_LOG_WRITES.name)],
    },
    SignalSource {
        signal: Signal::LogSyncs,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_FSYNCS.name)],
    },
    SignalSource {
        signal: Signal::PagesWritten,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_PAGES_WRITTEN.name)],
    },
    SignalSource {
        signal: Signal::ServerWriteBytes,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_WRITTEN.name)],
    },
    SignalSource {
        signal: Signal::ServerReadBytes,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_READ.name)],
    },
    SignalSource {
        signal: Signal::ServerReads,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_DATA_READS.name)],
    },
    SignalSource {
        signal: Signal::PoolRequests,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READ_REQUESTS.name)],
    },
    SignalSource {
        signal: Signal::PoolMisses,
        of: &[rate(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS.name)],
    },
    SignalSource {
        signal: Signal::DirtyPages,
        of: &[level(SampleOrigin::Mysql, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_DIRTY.name)],
    },
    // PostgreSQL.
    SignalSource {
        signal: Signal::SessionsConnected,
        of: &[level(SampleOrigin::Postgres, metrics::postgresql::SESSIONS.name)],
    },
    SignalSource {
        signal: Signal::SessionsRunning,
        of: &[Term {
            only: ("state", &["active"]),
            ..level(SampleOrigin::Postgres, metrics::postgresql::SESSIONS.name)
        }],
    },
    SignalSource {
        signal: Signal::Commits,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name)],
    },
    SignalSource {
        signal: Signal::Rollbacks,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_XACT_ROLLBACK.name)],
    },
    SignalSource {
        signal: Signal::RowsInserted,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_INSERTED.name)],
    },
    SignalSource {
        signal: Signal::RowsChanged,
        of: &[
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_INSERTED.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_UPDATED.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_DELETED.name),
        ],
    },
    SignalSource {
        signal: Signal::RowsUpdated,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_UPDATED.name)],
    },
    SignalSource {
        signal: Signal::RowsDeleted,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_DELETED.name)],
    },
    SignalSource {
        signal: Signal::TempBytes,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TEMP_BYTES.name)],
    },
    SignalSource {
        signal: Signal::DeadRows,
        of: &[level(SampleOrigin::Postgres, metrics::postgresql::STAT_TABLES_N_DEAD_TUP.name)],
    },
    SignalSource {
        signal: Signal::RowsScanned,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_RETURNED.name)],
    },
    SignalSource {
        signal: Signal::RowsKeyed,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_TUP_FETCHED.name)],
    },
    SignalSource {
        signal: Signal::LogBytes,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_WAL_WAL_BYTES.name)],
    },
    SignalSource {
        signal: Signal::LogBytes,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::WAL_POSITION_BYTES.name)],
    },
    SignalSource {
        signal: Signal::LogWrites,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_WAL_WAL_WRITE.name)],
    },
    SignalSource {
        signal: Signal::LogSyncs,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_WAL_WAL_SYNC.name)],
    },
    SignalSource {
        signal: Signal::PagesWritten,
        of: &[
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_CLEAN.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_BGWRITER_BUFFERS_BACKEND.name),
        ],
    },
    // Pages of 8 KiB, and the log: this misses other paths through the kernel's cache.
    SignalSource {
        signal: Signal::ServerWriteBytes,
        of: &[
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT.name),
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_CLEAN.name),
            pages(metrics::postgresql::STAT_BGWRITER_BUFFERS_BACKEND.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_WAL_WAL_BYTES.name),
        ],
    },
    SignalSource {
        signal: Signal::PoolRequests,
        of: &[
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_HIT.name),
            rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_READ.name),
        ],
    },
    SignalSource {
        signal: Signal::PoolMisses,
        of: &[rate(SampleOrigin::Postgres, metrics::postgresql::STAT_DATABASE_BLKS_READ.name)],
    },
];
