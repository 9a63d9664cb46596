//! Which causes a changed setting belongs to, and which way it hurts.

use crate::cause::Cause;
use crate::cause::Cause::{
    AcceptQueueOverflow, AtimeUpdates, AutovacuumPressure, BurstExhausted, CommitLogBound, ConnectionLimit,
    CpuSaturated, CpuThrottled, DiskSaturated, FileDescriptorLimit, FlushStorm, IopsCeiling, LockContention,
    MemoryPressure, OldSnapshot, OnDiskTemporaryTables, OutOfMemoryKill, PlanChanged, ReadaheadTooLarge,
    ReplicationSlotKeepsLog, ReplicationWait, ServiceFails, TableCacheSmall, ThreadPoolQueue, ThroughputCeiling,
    WorkerPoolExhausted, WorkingSetExceedsMemory,
};

/// Which way a setting hurts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hurts {
    Less,
    More,
    /// Either way may hurt, or its value has no order.
    Any,
}

use Hurts::{Any, Less, More};

/// Settings by the beginning of their names, the longest that fits counting; which way they hurt, and what
/// follows.
const SETTINGS: &[(&str, Hurts, &[Cause])] = &[
    // PostgreSQL.
    ("autovacuum", Any, &[AutovacuumPressure]),
    ("checkpoint_", Less, &[FlushStorm]),
    ("commit_delay", More, &[CommitLogBound]),
    ("cpu_", Any, &[PlanChanged]),
    ("deadlock_timeout", More, &[LockContention]),
    ("default_statistics_target", Any, &[PlanChanged]),
    ("default_transaction_isolation", Any, &[LockContention]),
    ("effective_cache_size", Less, &[PlanChanged]),
    ("enable_", Any, &[PlanChanged]),
    ("from_collapse_limit", Any, &[PlanChanged]),
    ("fsync", Any, &[CommitLogBound]),
    ("full_page_writes", Any, &[FlushStorm, CommitLogBound]),
    ("geqo", Any, &[PlanChanged]),
    ("hash_mem_multiplier", Less, &[OnDiskTemporaryTables, PlanChanged]),
    ("idle_in_transaction_session_timeout", Any, &[OldSnapshot, LockContention]),
    ("jit", Any, &[PlanChanged, CpuSaturated]),
    ("join_collapse_limit", Any, &[PlanChanged]),
    ("lock_timeout", Any, &[LockContention, ServiceFails]),
    ("max_connections", Less, &[ConnectionLimit]),
    ("max_parallel_", Any, &[PlanChanged, CpuSaturated]),
    ("max_slot_wal_keep_size", Any, &[ReplicationSlotKeepsLog]),
    ("max_wal_size", Less, &[FlushStorm]),
    ("plan_cache_mode", Any, &[PlanChanged]),
    ("random_page_cost", Any, &[PlanChanged]),
    ("seq_page_cost", Any, &[PlanChanged]),
    ("shared_buffers", Less, &[WorkingSetExceedsMemory]),
    ("statement_timeout", Less, &[ServiceFails]),
    ("superuser_reserved_connections", More, &[ConnectionLimit]),
    ("synchronous_commit", Any, &[CommitLogBound, ReplicationWait]),
    ("synchronous_standby_names", Any, &[ReplicationWait]),
    ("temp_buffers", Less, &[OnDiskTemporaryTables]),
    ("vacuum_cost_", Any, &[AutovacuumPressure]),
    ("wal_", Any, &[CommitLogBound, FlushStorm]),
    ("work_mem", Less, &[OnDiskTemporaryTables, PlanChanged]),
    // MySQL and MariaDB.
    ("binlog_group_commit_", Any, &[CommitLogBound]),
    ("eq_range_index_dive_limit", Any, &[PlanChanged]),
    ("innodb_adaptive_flushing", Any, &[FlushStorm]),
    ("innodb_buffer_pool_size", Less, &[WorkingSetExceedsMemory]),
    ("innodb_flush_log_at_", Any, &[CommitLogBound]),
    ("innodb_flush_method", Any, &[CommitLogBound, WorkingSetExceedsMemory]),
    ("innodb_io_capacity", Any, &[FlushStorm]),
    ("innodb_lock_wait_timeout", Any, &[LockContention]),
    ("innodb_log_file_size", Less, &[FlushStorm]),
    ("innodb_max_dirty_pages_", Any, &[FlushStorm]),
    ("innodb_redo_log_capacity", Less, &[FlushStorm]),
    ("innodb_stats_", Any, &[PlanChanged]),
    ("internal_tmp_", Any, &[OnDiskTemporaryTables]),
    ("join_buffer_size", Less, &[PlanChanged]),
    ("max_heap_table_size", Less, &[OnDiskTemporaryTables]),
    ("max_user_connections", Less, &[ConnectionLimit]),
    ("open_files_limit", Less, &[TableCacheSmall, FileDescriptorLimit]),
    ("optimizer_", Any, &[PlanChanged]),
    ("rpl_semi_sync_", Any, &[ReplicationWait]),
    ("sync_binlog", Any, &[CommitLogBound]),
    ("table_definition_cache", Less, &[TableCacheSmall]),
    ("table_open_cache", Less, &[TableCacheSmall]),
    ("thread_handling", Any, &[ThreadPoolQueue]),
    ("thread_pool_", Any, &[ThreadPoolQueue]),
    ("tmp_memory_table_size", Less, &[OnDiskTemporaryTables]),
    ("tmp_table_size", Less, &[OnDiskTemporaryTables]),
    ("transaction_isolation", Any, &[LockContention]),
    ("use_stat_tables", Any, &[PlanChanged]),
    // Hosts, cgroups and processes.
    ("block.", Any, &[ReadaheadTooLarge]),
    ("cgroup.cpu_", Less, &[CpuThrottled]),
    ("cgroup.disk_limit", Less, &[IopsCeiling, ThroughputCeiling, DiskSaturated]),
    ("cgroup.memory_", Less, &[MemoryPressure, OutOfMemoryKill, WorkingSetExceedsMemory]),
    ("instance.class", Any, &[IopsCeiling, ThroughputCeiling, CpuSaturated, CpuThrottled, WorkingSetExceedsMemory]),
    ("limit.nofile", Less, &[FileDescriptorLimit]),
    ("mount[", Any, &[AtimeUpdates]),
    ("net.core.somaxconn", Less, &[AcceptQueueOverflow]),
    ("net.ipv4.tcp_max_syn_backlog", Less, &[AcceptQueueOverflow]),
    ("server.workers", Less, &[WorkerPoolExhausted]),
    ("volume.iops", Less, &[IopsCeiling]),
    ("volume.throughput", Less, &[ThroughputCeiling]),
    ("volume.type", Any, &[IopsCeiling, ThroughputCeiling, BurstExhausted]),
    ("vm.", Any, &[MemoryPressure, DiskSaturated]),
];

/// Settings that trade commits or pages that survive a crash for speed: holdup advises no way back.
const KEEP_DATA: [&str; 7] = [
    "fsync",
    "full_page_writes",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "synchronous_commit",
    "synchronous_standby_names",
];

/// Whether what survives a crash depends on a setting, at any level.
pub(super) fn keeps_data(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|part| KEEP_DATA.contains(&part))
}

/// Whether a setting that went from one value to another may be behind `cause`.
pub(super) fn belongs(name: &str, (from, to): (&str, &str), cause: Cause) -> bool {
    let fitting = SETTINGS.iter().filter(|(begin, ..)| name.starts_with(begin));
    let Some((_, hurts, causes)) = fitting.max_by_key(|(begin, ..)| begin.len()) else { return false };
    let went = amount(from).zip(amount(to));
    let is_way = match (hurts, went) {
        (Any, _) | (_, None) => true,
        (Less, Some((from, to))) => to < from,
        (More, Some((from, to))) => to > from,
    };
    is_way && causes.contains(&cause)
}

/// Units of settings, as factors.
const UNITS: [(&str, f64); 13] = [
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
    ("%", 1.0),
];

/// A value as a number; none for words. No limit is the most there is. A quota is `QUOTA PERIOD`.
fn amount(text: &str) -> Option<f64> {
    if matches!(text, "max" | "unlimited" | "none") {
        return Some(f64::INFINITY);
    }
    if let Some((quota, period)) = text.split_once(' ') {
        return Some(amount(quota)? / period.parse::<f64>().ok()?);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-')).unwrap_or(text.len());
    let (number, unit) = (text.get(..end)?, text.get(end..)?);
    let factor = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_belongs_to_a_cause_the_way_it_hurts() {
        assert!(belongs("work_mem", ("4MB", "64kB"), OnDiskTemporaryTables));
        assert!(!belongs("work_mem", ("64kB", "4MB"), OnDiskTemporaryTables), "it was raised");
        assert!(!belongs("work_mem", ("4MB", "64kB"), CommitLogBound));
        assert!(belongs("cgroup.cpu_quota_us_per_period_us", ("max", "50000 100000"), CpuThrottled));
        assert!(!belongs("cgroup.cpu_quota_us_per_period_us", ("50000 100000", "max"), CpuThrottled));
        assert!(belongs("innodb_flush_log_at_trx_commit", ("2", "1"), CommitLogBound));
        assert!(belongs("volume.iops", ("12000", "3000"), IopsCeiling));
        assert!(!belongs("volume.iops", ("3000", "12000"), IopsCeiling), "it was raised");
        assert!(belongs("enable_indexscan", ("on", "off"), PlanChanged));
        assert!(!belongs("application_name", ("a", "b"), PlanChanged));
    }

    #[test]
    fn data_is_not_put_at_risk_to_be_fast_again() {
        assert!(keeps_data("fsync") && keeps_data("innodb_flush_log_at_trx_commit"));
        assert!(keeps_data("shop.synchronous_commit"), "of a database or a role");
        assert!(!keeps_data("work_mem") && !keeps_data("commit_delay"));
    }
}
