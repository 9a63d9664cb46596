//! The samples behind each [`Signal`]: MySQL's, PostgreSQL's and the host's. `frame` makes series
//! of equal steps of them.

use holdup_recording::metrics::{Metric, host, mysql, postgresql, process};

use self::SampleOrigin::{Host, Mysql, Postgres, Server};
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

const fn term(
    whose: SampleOrigin,
    of: Metric,
    only: (&'static str, &'static [&'static str]),
    take: Conversion,
) -> Term {
    Term { whose, metric: of.name, only, take }
}

const fn rate(whose: SampleOrigin, of: Metric) -> Term {
    times(1.0, whose, of)
}

const fn times(factor: f64, whose: SampleOrigin, of: Metric) -> Term {
    term(whose, of, ("", &[]), Conversion::Rate(factor))
}

/// Pages of PostgreSQL's usual size, as bytes.
const fn pages(of: Metric) -> Term {
    times(8_192.0, Postgres, of)
}

const fn level(whose: SampleOrigin, of: Metric) -> Term {
    in_state(whose, of, &[])
}

const fn in_state(whose: SampleOrigin, of: Metric, states: &'static [&'static str]) -> Term {
    term(whose, of, ("state", states), Conversion::Level)
}

const fn busiest(of: Metric) -> Term {
    term(Host, of, ("", &[]), Conversion::Busiest)
}

const fn cpu(modes: &'static [&'static str]) -> Term {
    term(Host, host::CPU_TIME, ("cpu_mode", modes), Conversion::Share)
}

const fn toward(of: Metric, direction: &'static [&'static str]) -> Term {
    term(Host, of, ("direction", direction), Conversion::Rate(1.0))
}

macro_rules! signals {
    ($($signal:ident: $($term:expr),+;)*) => {
        /// For a signal with several definitions, the first one that was recorded and counted anything.
        pub(super) const SIGNALS: &[SignalSource] =
            &[$(SignalSource { signal: Signal::$signal, of: &[$($term),+] }),*];
    };
}

signals! {
    CpuUser: cpu(&["user", "nice"]);
    CpuSystem: cpu(&["system", "interrupt", "softirq"]);
    CpuIdle: cpu(&["idle"]);
    CpuIowait: cpu(&["iowait"]);
    RunQueue: in_state(Host, host::THREADS, &["R"]);
    RunQueue: level(Host, host::PROCESSES_RUNNABLE);
    BlockedThreads: in_state(Host, host::THREADS, &["D"]);
    ContextSwitches: rate(Host, host::CONTEXT_SWITCHES);
    // In percent of a CPU, like `top`: the signal's negligible amount is in that unit.
    ServerCpu: times(100.0, Server, process::CPU_TIME);
    DiskReadBytes: toward(host::DISK_IO_BYTES, &["read"]);
    DiskWriteBytes: toward(host::DISK_IO_BYTES, &["write"]);
    DiskReads: toward(host::DISK_OPERATIONS, &["read"]);
    DiskWrites: toward(host::DISK_OPERATIONS, &["write"]);
    DiskUtilization: busiest(host::DISK_IO_TIME);
    NetReceivedBytes: toward(host::NETWORK_IO_BYTES, &["receive"]);
    NetSentBytes: toward(host::NETWORK_IO_BYTES, &["transmit"]);
    MinorFaults: rate(Server, process::MINOR_FAULTS);
    FileHandles: level(Host, host::FILE_HANDLES);
    // MySQL and MariaDB.
    ConnectionsOpened: rate(Mysql, mysql::GLOBAL_STATUS_CONNECTIONS);
    SessionsConnected: level(Mysql, mysql::GLOBAL_STATUS_THREADS_CONNECTED);
    SessionsRunning: level(Mysql, mysql::GLOBAL_STATUS_THREADS_RUNNING);
    LockWaiting: level(Mysql, mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS);
    LockWaits: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_WAITS);
    // The counter is in milliseconds: seconds waited per second.
    LockWaitTime: times(1e-3, Mysql, mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME);
    Commits: rate(Mysql, mysql::GLOBAL_STATUS_COM_COMMIT);
    // With autocommit there are no COMMIT statements.
    Commits: rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_COMMIT);
    Rollbacks: rate(Mysql, mysql::GLOBAL_STATUS_COM_ROLLBACK);
    RowsInserted: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED);
    RowsInserted: rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_WRITE);
    RowsChanged:
        rate(Mysql, mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED),
        rate(Mysql, mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED),
        rate(Mysql, mysql::GLOBAL_STATUS_INNODB_ROWS_DELETED);
    RowsChanged:
        rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_WRITE),
        rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_UPDATE),
        rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_DELETE);
    RowsScanned: rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_READ_RND_NEXT);
    RowsNext: rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_READ_NEXT);
    RowsKeyed: rate(Mysql, mysql::GLOBAL_STATUS_HANDLER_READ_KEY);
    LogBytes: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN);
    LogWrites: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_LOG_WRITES);
    LogSyncs: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_OS_LOG_FSYNCS);
    PagesWritten: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_PAGES_WRITTEN);
    ServerWriteBytes: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_DATA_WRITTEN);
    ServerReadBytes: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_DATA_READ);
    ServerReads: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_DATA_READS);
    PoolRequests: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READ_REQUESTS);
    PoolMisses: rate(Mysql, mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS);
    DirtyPages: level(Mysql, mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_DIRTY);
    // PostgreSQL.
    SessionsConnected: level(Postgres, postgresql::SESSIONS);
    SessionsRunning: in_state(Postgres, postgresql::SESSIONS, &["active"]);
    Commits: rate(Postgres, postgresql::STAT_DATABASE_XACT_COMMIT);
    Rollbacks: rate(Postgres, postgresql::STAT_DATABASE_XACT_ROLLBACK);
    RowsInserted: rate(Postgres, postgresql::STAT_DATABASE_TUP_INSERTED);
    RowsChanged:
        rate(Postgres, postgresql::STAT_DATABASE_TUP_INSERTED),
        rate(Postgres, postgresql::STAT_DATABASE_TUP_UPDATED),
        rate(Postgres, postgresql::STAT_DATABASE_TUP_DELETED);
    RowsUpdated: rate(Postgres, postgresql::STAT_DATABASE_TUP_UPDATED);
    RowsDeleted: rate(Postgres, postgresql::STAT_DATABASE_TUP_DELETED);
    TempBytes: rate(Postgres, postgresql::STAT_DATABASE_TEMP_BYTES);
    DeadRows: level(Postgres, postgresql::STAT_TABLES_N_DEAD_TUP);
    RowsScanned: rate(Postgres, postgresql::STAT_DATABASE_TUP_RETURNED);
    RowsKeyed: rate(Postgres, postgresql::STAT_DATABASE_TUP_FETCHED);
    LogBytes: rate(Postgres, postgresql::STAT_WAL_WAL_BYTES);
    LogBytes: rate(Postgres, postgresql::WAL_POSITION_BYTES);
    LogWrites: rate(Postgres, postgresql::STAT_WAL_WAL_WRITE);
    LogSyncs: rate(Postgres, postgresql::STAT_WAL_WAL_SYNC);
    PagesWritten:
        rate(Postgres, postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT),
        rate(Postgres, postgresql::STAT_BGWRITER_BUFFERS_CLEAN),
        rate(Postgres, postgresql::STAT_BGWRITER_BUFFERS_BACKEND);
    // Pages of 8 KiB, and the log: this misses other paths through the kernel's cache.
    ServerWriteBytes:
        pages(postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT),
        pages(postgresql::STAT_BGWRITER_BUFFERS_CLEAN),
        pages(postgresql::STAT_BGWRITER_BUFFERS_BACKEND),
        rate(Postgres, postgresql::STAT_WAL_WAL_BYTES);
    PoolRequests:
        rate(Postgres, postgresql::STAT_DATABASE_BLKS_HIT),
        rate(Postgres, postgresql::STAT_DATABASE_BLKS_READ);
    PoolMisses: rate(Postgres, postgresql::STAT_DATABASE_BLKS_READ);
}
