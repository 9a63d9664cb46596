//! The names by which exporters know what this crate has a word for: node_exporter's, postgres_exporter's, pg_exporter's;
//! and what their usual alerts are about. A metric that is not here says nothing to the judge.

use super::evidence::Alarm;
use holdup_signals::time::counters::signal::Signal;

/// Metric and signal. Counters (`_total`, and all of `pg_stat_database`) are meant as rates per second.
const METRICS: &[(&str, Signal)] = &[
    ("node_procs_running", Signal::RunQueue),
    ("node_procs_blocked", Signal::BlockedThreads),
    ("node_context_switches_total", Signal::ContextSwitches),
    ("node_disk_reads_completed_total", Signal::DiskReads),
    ("node_disk_writes_completed_total", Signal::DiskWrites),
    ("node_disk_read_bytes_total", Signal::DiskReadBytes),
    ("node_disk_written_bytes_total", Signal::DiskWriteBytes),
    // Seconds that requests waited, a second: Little's law makes it the mean number of them on the way.
    ("node_disk_read_time_seconds_total", Signal::DiskReadsInFlight),
    ("node_disk_write_time_seconds_total", Signal::DiskWritesInFlight),
    ("node_disk_io_time_seconds_total", Signal::DiskUtilization),
    // Shared memory counts as anonymous to the kernel: the server's shared buffers are here once they are touched.
    ("node_memory_Inactive_anon_bytes", Signal::AnonymousMemory),
    ("node_sockstat_TCP_inuse", Signal::TcpConnections),
    ("node_sockstat_TCP_alloc", Signal::TcpConnections),
    ("node_netstat_Tcp_PassiveOpens", Signal::ConnectionsOpened),
    ("node_network_receive_bytes_total", Signal::NetReceivedBytes),
    ("node_network_transmit_bytes_total", Signal::NetSentBytes),
    ("pg_stat_database_xact_commit", Signal::Commits),
    ("pg_stat_database_xact_rollback", Signal::Rollbacks),
    ("pg_stat_database_tup_inserted", Signal::RowsInserted),
    ("pg_stat_database_tup_updated", Signal::RowsUpdated),
    ("pg_stat_database_tup_deleted", Signal::RowsDeleted),
    ("pg_stat_database_tup_returned", Signal::RowsScanned),
    ("pg_stat_database_tup_fetched", Signal::RowsKeyed),
    ("pg_stat_database_blks_read", Signal::PoolMisses),
    ("pg_stat_database_temp_bytes", Signal::TempBytes),
    ("pg_stat_user_tables_n_dead_tup", Signal::DeadRows),
    ("pg_db_xact_commit", Signal::Commits),
    ("pg_db_xact_rollback", Signal::Rollbacks),
    ("pg_db_tup_inserted", Signal::RowsInserted),
    ("pg_db_tup_updated", Signal::RowsUpdated),
    ("pg_db_tup_deleted", Signal::RowsDeleted),
    ("pg_db_tup_returned", Signal::RowsScanned),
    ("pg_db_tup_fetched", Signal::RowsKeyed),
    ("pg_db_blks_read", Signal::PoolMisses),
    ("pg_db_temp_bytes", Signal::TempBytes),
    ("pg_table_n_dead_tup", Signal::DeadRows),
];

/// Alerts of Pigsty and of the rules that exporters come with.
const ALERTS: &[(&str, Alarm)] = &[
    ("NodeOutOfMem", Alarm::MemoryShort),
    ("NodeMemHigh", Alarm::MemoryShort),
    ("NodeCpuHigh", Alarm::CpuHigh),
    ("NodeLoadHigh", Alarm::LoadHigh),
    ("NodeFsSpaceFull", Alarm::FilesystemFull),
    ("PostgresDown", Alarm::ServerDown),
];

/// The signal of a metric, by its bare name.
#[must_use]
pub fn signal_of_metric(name: &str) -> Option<Signal> {
    METRICS.iter().find(|(metric, _)| *metric == name).map(|(_, signal)| *signal)
}

/// What an alert is about.
#[must_use]
pub fn alarm_of_alert(name: &str) -> Option<Alarm> {
    ALERTS.iter().find(|(alert, _)| *alert == name).map(|(_, alarm)| *alarm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_one_signal() {
        for (at, (name, signal)) in METRICS.iter().enumerate() {
            assert!(METRICS.iter().skip(at + 1).all(|(other, _)| other != name), "{name} stands there twice");
            assert_eq!(signal_of_metric(name), Some(*signal));
        }
        assert_eq!((signal_of_metric("node_boot_time_seconds"), alarm_of_alert("Watchdog")), (None, None));
    }
}
