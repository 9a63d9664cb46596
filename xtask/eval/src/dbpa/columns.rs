//! What DBPA's collector (dool with a MySQL plugin) called things, and in which units: percent, bytes and events a second.

use holdup_signals::time::counters::Signal;

use crate::table::Mapping;

/// Signals and their columns.
pub const COLUMNS: &[Mapping] = &[
    (Signal::CpuUser, &["total_cpu_usage|usr"], 0.01),
    (Signal::CpuSystem, &["total_cpu_usage|sys"], 0.01),
    (Signal::CpuIdle, &["total_cpu_usage|idl"], 0.01),
    (Signal::CpuIowait, &["total_cpu_usage|wai"], 0.01),
    (Signal::RunQueue, &["procs|run"], 1.0),
    (Signal::BlockedThreads, &["procs|blk"], 1.0),
    (Signal::ContextSwitches, &["system|csw"], 1.0),
    (Signal::DiskReadBytes, &["dsk_total|read"], 1.0),
    (Signal::DiskWriteBytes, &["dsk_total|writ"], 1.0),
    (Signal::DiskReads, &["io_total|read"], 1.0),
    (Signal::DiskWrites, &["io_total|writ"], 1.0),
    (Signal::NetReceivedBytes, &["net_total|recv"], 1.0),
    (Signal::NetSentBytes, &["net_total|send"], 1.0),
    (Signal::MinorFaults, &["virtual_memory|minpf"], 1.0),
    (Signal::FileHandles, &["filesystem|files"], 1.0),
    (Signal::SessionsConnected, &["mysql5_conn|Conn"], 1.0),
    (Signal::SessionsRunning, &["mysql5_conn|Act"], 1.0),
    (Signal::LockWaiting, &["mysql5_locks|Locks"], 1.0),
    (Signal::Commits, &["mysql5_all|comm"], 1.0),
    (Signal::Rollbacks, &["mysql5_all|roll"], 1.0),
    (Signal::RowsInserted, &["mysql5_all|insert"], 1.0),
    (Signal::RowsChanged, &["mysql5_all|insert", "mysql5_all|update", "mysql5_all|delete"], 1.0),
    (Signal::PagesWritten, &["mysql5_all|flushed"], 1.0),
    (Signal::PoolRequests, &["mysql5_all|readr"], 1.0),
    (Signal::PoolMisses, &["mysql5_all|reads"], 1.0),
    (Signal::DirtyPages, &["mysql5_all|dirty"], 1.0),
    (Signal::PoolBytes, &["mysql5_settings|Innodb_buffer_pool_size"], 1.0),
    (Signal::DataBytes, &["mysql5_all|size"], 1.0),
];

/// The set's words for causes, and holdup's; `normal` is none.
pub const CAUSES: &[(&str, &str)] = &[
    ("normal", NOTHING),
    ("concurrent_commits", "many_small_commits"),
    ("concurrent_inserts", "bulk_load"),
    ("heavy_workload", "workload_spike"),
    ("io_saturation", "io_taken_by_others"),
    ("lock_waits", "lock_contention"),
    ("missing_indexes", "missing_index"),
    ("small_shared_buffer", "small_buffer_pool"),
    ("too_many_indexes", "too_many_indexes"),
];

/// The answer of a judge that names nobody.
pub const NOTHING: &str = "nothing";
