//! Translates CloudWatch's name of a metric into ours, with its unit last. The table lists metrics
//! of RDS, EBS and EC2 whose unit or words the rule would miss. The rule for all others is snake
//! case, with the unit that the file gives.

/// A name, and the factor for its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricName {
    pub metric: String,
    pub factor: f64,
}

/// CloudWatch's name, our name, and CloudWatch's unit if it is not `Count`.
const KNOWN: [(&str, &str, &str); 77] = [
    ("AuroraBinlogReplicaLag", "aurora_binlog_replica_lag", "Seconds"),
    ("AuroraReplicaLag", "aurora_replica_lag", "Milliseconds"),
    ("BinLogDiskUsage", "bin_log_disk_usage", "Bytes"),
    ("BufferCacheHitRatio", "buffer_cache_hit", "Percent"),
    ("BurstBalance", "burst_balance", "Percent"),
    ("CPUCreditBalance", "cpu_credit_balance", "Count"),
    ("CPUCreditUsage", "cpu_credit_usage", "Count"),
    ("CPUSurplusCreditBalance", "cpu_surplus_credit_balance", "Count"),
    ("CPUSurplusCreditsCharged", "cpu_surplus_credits_charged", "Count"),
    ("CPUUtilization", "cpu_utilization", "Percent"),
    ("CheckpointLag", "checkpoint_lag", "Seconds"),
    ("ConnectionAttempts", "connection_attempts", "Count"),
    ("CommitLatency", "commit_latency", "Milliseconds"),
    ("DBLoad", "db_load", "Count"),
    ("DBLoadCPU", "db_load_cpu", "Count"),
    ("DBLoadNonCPU", "db_load_non_cpu", "Count"),
    ("DBLoadRelativeToNumVCPUs", "db_load_relative_to_cpus", "Count"),
    ("DatabaseConnections", "database_connections", "Count"),
    ("Deadlocks", "deadlocks", "Count"),
    ("DiskQueueDepth", "disk_queue_depth", "Count"),
    ("DiskQueueDepthLogVolume", "disk_queue_depth_log_volume", "Count"),
    ("EBSByteBalance%", "ebs_byte_balance", "Percent"),
    ("EBSIOBalance%", "ebs_io_balance", "Percent"),
    ("EBSReadBytes", "ebs_read", "Bytes"),
    ("EBSReadOps", "ebs_read_operations", "Count"),
    ("EBSWriteBytes", "ebs_write", "Bytes"),
    ("EBSWriteOps", "ebs_write_operations", "Count"),
    ("EngineUptime", "engine_uptime", "Seconds"),
    ("FreeEphemeralStorage", "free_ephemeral_storage", "Bytes"),
    ("FreeLocalStorage", "free_local_storage", "Bytes"),
    ("FreeStorageSpace", "free_storage_space", "Bytes"),
    ("FreeStorageSpaceLogVolume", "free_storage_space_log_volume", "Bytes"),
    ("FreeableMemory", "freeable_memory", "Bytes"),
    ("MaximumUsedTransactionIDs", "maximum_used_transaction_ids", "Count"),
    ("NetworkIn", "network_in", "Bytes"),
    ("NetworkOut", "network_out", "Bytes"),
    ("NetworkPacketsIn", "network_packets_in", "Count"),
    ("NetworkPacketsOut", "network_packets_out", "Count"),
    ("NetworkReceiveThroughput", "network_receive_throughput", "Bytes/Second"),
    ("NetworkTransmitThroughput", "network_transmit_throughput", "Bytes/Second"),
    ("OldestLogicalReplicationSlotLag", "oldest_logical_replication_slot_lag", "Bytes"),
    ("OldestReplicationSlotLag", "oldest_replication_slot_lag", "Bytes"),
    ("ReadIOPS", "read_iops", "Count/Second"),
    ("ReadIOPSLocalStorage", "read_iops_local_storage", "Count/Second"),
    ("ReadIOPSLogVolume", "read_iops_log_volume", "Count/Second"),
    ("ReadLatency", "read_latency", "Seconds"),
    ("ReadLatencyLocalStorage", "read_latency_local_storage", "Seconds"),
    ("ReadLatencyLogVolume", "read_latency_log_volume", "Seconds"),
    ("ReadThroughput", "read_throughput", "Bytes/Second"),
    ("ReadThroughputLocalStorage", "read_throughput_local_storage", "Bytes/Second"),
    ("ReadThroughputLogVolume", "read_throughput_log_volume", "Bytes/Second"),
    ("ReplicaLag", "replica_lag", "Seconds"),
    ("ReplicationSlotDiskUsage", "replication_slot_disk_usage", "Bytes"),
    ("SwapUsage", "swap_usage", "Bytes"),
    ("TransactionLogsDiskUsage", "transaction_logs_disk_usage", "Bytes"),
    ("TransactionLogsGeneration", "transaction_logs_generation", "Bytes/Second"),
    ("VolumeBytesUsed", "volume_used", "Bytes"),
    ("VolumeIdleTime", "volume_idle_time", "Seconds"),
    ("VolumeQueueLength", "volume_queue_length", "Count"),
    ("VolumeReadBytes", "volume_read", "Bytes"),
    ("VolumeReadIOPs", "volume_read_operations", "Count"),
    ("VolumeReadOps", "volume_read_operations", "Count"),
    ("VolumeThroughputPercentage", "volume_throughput", "Percent"),
    ("VolumeTotalReadTime", "volume_total_read_time", "Seconds"),
    ("VolumeTotalWriteTime", "volume_total_write_time", "Seconds"),
    ("VolumeWriteBytes", "volume_write", "Bytes"),
    ("VolumeWriteIOPs", "volume_write_operations", "Count"),
    ("VolumeWriteOps", "volume_write_operations", "Count"),
    ("WriteIOPS", "write_iops", "Count/Second"),
    ("WriteIOPSLocalStorage", "write_iops_local_storage", "Count/Second"),
    ("WriteIOPSLogVolume", "write_iops_log_volume", "Count/Second"),
    ("WriteLatency", "write_latency", "Seconds"),
    ("WriteLatencyLocalStorage", "write_latency_local_storage", "Seconds"),
    ("WriteLatencyLogVolume", "write_latency_log_volume", "Seconds"),
    ("WriteThroughput", "write_throughput", "Bytes/Second"),
    ("WriteThroughputLocalStorage", "write_throughput_local_storage", "Bytes/Second"),
    ("WriteThroughputLogVolume", "write_throughput_log_volume", "Bytes/Second"),
];

/// CloudWatch's name for `word`: the name itself, or an id made of it (`read_iops`; `m_readiops` is
/// none).
pub(super) fn known(word: &str) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let word = plain(word);
    if word.is_empty() {
        return None;
    }
    KNOWN.iter().map(|(theirs, ..)| *theirs).find(|theirs| plain(theirs) == word)
}

/// What exporters put before CloudWatch's name.
const EXPORTERS: [&str; 3] = ["aws_rds_", "aws_ebs_", "aws_ec2_"];
/// What exporters and dashboards put behind it, and the statistic that it is.
const STATS: [(&str, &str); 5] = [
    ("_average", "Average"),
    ("_maximum", "Maximum"),
    ("_minimum", "Minimum"),
    ("_sum", "Sum"),
    ("_samplecount", "SampleCount"),
];

/// CloudWatch's name in `word`, which may say the namespace before it and the statistic behind it:
/// `CPUUtilization_Average`, `aws_rds_cpuutilization_maximum`.
pub(super) fn known_in(word: &str) -> Option<(&'static str, Option<&'static str>)> {
    if let Some(theirs) = known(word) {
        return Some((theirs, None));
    }
    let lower = word.to_ascii_lowercase();
    let plain = EXPORTERS.iter().find_map(|before| lower.strip_prefix(before)).unwrap_or(&lower);
    let of_stat = STATS.iter().find_map(|(behind, stat)| Some((plain.strip_suffix(behind)?, Some(*stat))));
    let (plain, stat) = of_stat.unwrap_or((plain, None));
    Some((known(plain)?, stat))
}

/// Our name of CloudWatch's `metric` in `unit` (which may be empty, or `None`) as statistic `stat`.
pub(super) fn named(metric: &str, unit: &str, stat: &str) -> MetricName {
    let (words, known_unit) = match KNOWN.iter().find(|(theirs, ..)| *theirs == metric) {
        Some((_, ours, unit)) => ((*ours).to_owned(), *unit),
        None => (snake(metric), ""),
    };
    if stat == "SampleCount" {
        return MetricName { metric: format!("aws_{words}_samples"), factor: 1.0 };
    }
    let unit = if matches!(unit, "" | "None") { known_unit } else { unit };
    let (suffix, factor) = suffix(unit);
    let is_said = suffix.is_empty() || words.ends_with(suffix.trim_start_matches('_'));
    MetricName { metric: format!("aws_{words}{}", if is_said { "" } else { suffix }), factor }
}

/// Our word for one of CloudWatch's units, and how many of ours one of it is. A count has no unit,
/// nor has a count per second, because its name says so (IOPS).
fn suffix(unit: &str) -> (&'static str, f64) {
    const KIB: f64 = 1024.0;
    match unit {
        "Percent" => ("_ratio", 0.01),
        "Seconds" => ("_seconds", 1.0),
        "Milliseconds" => ("_seconds", 1e-3),
        "Microseconds" => ("_seconds", 1e-6),
        "Bytes" => ("_bytes", 1.0),
        "Kilobytes" => ("_bytes", KIB),
        "Megabytes" => ("_bytes", KIB * KIB),
        "Gigabytes" => ("_bytes", KIB * KIB * KIB),
        "Terabytes" => ("_bytes", KIB * KIB * KIB * KIB),
        "Bytes/Second" => ("_bytes_per_second", 1.0),
        "Kilobytes/Second" => ("_bytes_per_second", KIB),
        "Megabytes/Second" => ("_bytes_per_second", KIB * KIB),
        "Gigabytes/Second" => ("_bytes_per_second", KIB * KIB * KIB),
        "Bits/Second" => ("_bits_per_second", 1.0),
        "Kilobits/Second" => ("_bits_per_second", 1e3),
        "Megabits/Second" => ("_bits_per_second", 1e6),
        "Gigabits/Second" => ("_bits_per_second", 1e9),
        _ => ("", 1.0),
    }
}

/// `ReadIOPSLogVolume` -> `read_iops_log_volume`: a word begins at a capital letter that follows a
/// small one, or that precedes one. Other characters separate words, and letters outside ASCII are
/// dropped.
pub(super) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().take(120).collect();
    let mut words = String::new();
    for (n, letter) in letters.iter().enumerate() {
        let is_small = |at: Option<usize>| {
            let letter = at.and_then(|at| letters.get(at));
            letter.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if !letter.is_ascii_alphanumeric() {
            if !words.ends_with('_') && !words.is_empty() {
                words.push('_');
            }
            continue;
        }
        let begins = letter.is_ascii_uppercase() && (is_small(n.checked_sub(1)) || is_small(Some(n + 1)) && n > 0);
        // The small s of IOPs and IDs ends its word.
        let is_plural = letters.get(n + 1) == Some(&'s') && !is_small(Some(n + 2)) && !is_small(n.checked_sub(1));
        if begins && !is_plural && !words.is_empty() && !words.ends_with('_') {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let words = words.trim_end_matches('_');
    if words.is_empty() { "unnamed".to_owned() } else { words.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_unit() {
        for (theirs, unit, stat, ours, factor) in [
            ("ReadThroughput", "", "", "aws_read_throughput_bytes_per_second", 1.0),
            ("ReadIOPS", "Count/Second", "", "aws_read_iops", 1.0),
            ("DiskQueueDepth", "Count", "", "aws_disk_queue_depth", 1.0),
            ("CPUUtilization", "Percent", "", "aws_cpu_utilization_ratio", 0.01),
            ("CPUUtilization", "Percent", "SampleCount", "aws_cpu_utilization_samples", 1.0),
            ("EBSByteBalance%", "", "", "aws_ebs_byte_balance_ratio", 0.01),
            ("EBSIOBalance%", "Percent", "", "aws_ebs_io_balance_ratio", 0.01),
            ("BurstBalance", "None", "", "aws_burst_balance_ratio", 0.01),
            ("ReadLatency", "", "", "aws_read_latency_seconds", 1.0),
            ("FreeableMemory", "", "", "aws_freeable_memory_bytes", 1.0),
            ("NewThing", "Milliseconds", "", "aws_new_thing_seconds", 1e-3),
            ("SomeBytes", "Bytes", "", "aws_some_bytes", 1.0),
            ("AbortedClients", "", "", "aws_aborted_clients", 1.0),
        ] {
            assert_eq!(named(theirs, unit, stat), MetricName { metric: ours.to_owned(), factor }, "{theirs}");
        }
    }

    #[test]
    fn known_names_match_in_any_writing() {
        for (theirs, ..) in KNOWN {
            assert_eq!(known(theirs), Some(theirs));
        }
        assert_eq!(known("read_iops"), Some("ReadIOPS"));
        assert_eq!(known("ebsByteBalance"), Some("EBSByteBalance%"));
        assert_eq!((known("m1"), known("%")), (None, None));
    }

    #[test]
    fn words_of_names() {
        for (name, words) in [
            ("MaximumUsedTransactionIDs", "maximum_used_transaction_ids"),
            ("VolumeReadIOPs", "volume_read_iops"),
            ("DBLoadNonCPU", "db_load_non_cpu"),
            ("SQLServerJobs2", "sql_server_jobs2"),
            ("os.cpuUtilization.user", "os_cpu_utilization_user"),
            ("a  b/", "a_b"),
            ("ü", "unnamed"),
        ] {
            assert_eq!(snake(name), words);
        }
    }
}
