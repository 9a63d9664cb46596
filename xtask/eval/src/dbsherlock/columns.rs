//! What DBSherlock's collector called things, and in which units: percent, kB, MB, one second a row.

use holdup_signals::time::counters::Signal;

use crate::table::Mapping;

/// A megabyte, as the set's sector counters and the server's status give them.
const MB: f64 = 1e6;

/// Signals and their columns.
pub const COLUMNS: &[Mapping] = &[
    (Signal::CpuUser, &["AvgCpuUser"], 0.01),
    (Signal::CpuSystem, &["AvgCpuSys", "AvgCpuHiq", "AvgCpuSiq"], 0.01),
    (Signal::CpuIdle, &["AvgCpuIdle"], 0.01),
    (Signal::CpuIowait, &["AvgCpuWai"], 0.01),
    (Signal::RunQueue, &["osNumberOfProcessesCurrentlyRunning"], 1.0),
    (Signal::ContextSwitches, &["osNumberOfContextSwitches"], 1.0),
    (Signal::ServerCpu, &["dbmsMeasuredCPU"], 1.0),
    (Signal::DiskReadBytes, &["osNumberOfSectorReads"], MB),
    (Signal::DiskWriteBytes, &["osNumberOfSectorWrites"], MB),
    (Signal::DiskUtilization, &["osDiskUtilization"], 0.01),
    (Signal::NetReceivedBytes, &["osNetworkRecvKB"], 1e3),
    (Signal::NetSentBytes, &["osNetworkSendKB"], 1e3),
    (Signal::MinorFaults, &["osNumberOfMinorPageFaults"], 1.0),
    (Signal::FileHandles, &["osAllocatedFileHandlers"], 1.0),
    (Signal::SessionsRunning, &["dbmsThreadsRunning"], 1.0),
    (Signal::LockWaiting, &["dbmsCurrentLockWaits"], 1.0),
    (Signal::LockWaits, &["dbmsLockWaits"], 1.0),
    (Signal::LockWaitTime, &["dbmsLockWaitTime"], 1e-3),
    (Signal::Commits, &["dbmsCommittedCommands"], 1.0),
    (Signal::Rollbacks, &["dbmsRolledbackCommands"], 1.0),
    (Signal::RowsInserted, &["dbmsNumberOfRowInsertRequests"], 1.0),
    (Signal::RowsChanged, &["dbmsChangedRows"], 1.0),
    (Signal::RowsScanned, &["dbmsNumberOfNextRowReadRequests"], 1.0),
    (Signal::RowsNext, &["dbmsNumberOfNextKeyBasedReadRequests", "dbmsNumberOfPrevKeyBasedReadRequests"], 1.0),
    (Signal::RowsKeyed, &["dbmsNumberOfKeyBasedReadRequests"], 1.0),
    (Signal::LogBytes, &["dbmsLogWritesMB"], MB),
    (Signal::LogWrites, &["dbmsNumberOfPhysicalLogWrites"], 1.0),
    (Signal::LogSyncs, &["dbmsNumberOfFysncLogWrites"], 1.0),
    (Signal::PagesWritten, &["dbmsFlushedPages"], 1.0),
    (Signal::ServerWriteBytes, &["dbmsTotalWritesMB"], MB),
    (Signal::ServerReadBytes, &["dbmsPhysicalReadsMB"], MB),
    (Signal::ServerReads, &["dbmsNumberOfDataReads"], 1.0),
    (Signal::PoolRequests, &["dbmsNumberOfLogicalReadRequests"], 1.0),
    (Signal::PoolMisses, &["dbmsNumberOfLogicalReadsFromDisk"], 1.0),
    (Signal::DirtyPages, &["dbmsCurrentDirtyPages"], 1.0),
    (Signal::Latency, &["Combined Avg Latency"], 1.0),
];

/// The set's words for causes, and holdup's. A word may join several causes with ` + `; one stands for three.
pub const CAUSES: &[(&str, &[&str])] = &[
    ("Poorly Written Query", &["missing_index"]),
    ("Poor Physical Design", &["too_many_indexes"]),
    ("Workload Spike", &["workload_spike"]),
    ("I/O Saturation", &["io_taken_by_others"]),
    ("DB Backup", &["backup_read"]),
    ("Table Restore", &["bulk_load"]),
    ("CPU Saturation", &["cpu_taken_by_others"]),
    ("Flush Log/Table", &["global_lock"]),
    ("Network Congestion", &["network_delay"]),
    ("Network Saturation", &["network_delay"]),
    ("Lock Contention", &["lock_contention"]),
    ("CPU,IO,Network Saturation", &["cpu_taken_by_others", "io_taken_by_others", "network_delay"]),
];
