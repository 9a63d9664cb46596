//! Amazon's figures of a database and its disk from `holdup import aws` and exporters of
//! CloudWatch: statistics over a period.

metrics! {
    "aws", "Amazon's figures", "aws_";

    Gauge READ_IOPS: PerSecond = "aws_read_iops", "Read requests of the volume";
    Gauge WRITE_IOPS: PerSecond = "aws_write_iops", "Write requests of the volume";
    Gauge READ_THROUGHPUT_BYTES_PER_SECOND: BytesPerSecond = "aws_read_throughput_bytes_per_second", "Bytes read from the volume";
    Gauge WRITE_THROUGHPUT_BYTES_PER_SECOND: BytesPerSecond = "aws_write_throughput_bytes_per_second", "Bytes written to the volume";
    Gauge READ_LATENCY: Seconds = "aws_read_latency_seconds", "Average time of a read request";
    Gauge WRITE_LATENCY: Seconds = "aws_write_latency_seconds", "Average time of a write request";
    Gauge DISK_QUEUE_DEPTH: Count = "aws_disk_queue_depth", "Requests waiting for the volume";
    Gauge CPU_UTILIZATION_RATIO: Ratio = "aws_cpu_utilization_ratio", "Share of the CPUs in use";
    Gauge DATABASE_CONNECTIONS: Count = "aws_database_connections", "Connections of clients to the database";
    Gauge FREEABLE_MEMORY_BYTES: Bytes = "aws_freeable_memory_bytes", "Memory that is free or can be freed at once";
    Gauge SWAP_USAGE_BYTES: Bytes = "aws_swap_usage_bytes", "Memory that is swapped out";
    Gauge FREE_STORAGE_SPACE_BYTES: Bytes = "aws_free_storage_space_bytes", "Space left on the volume";
    Gauge NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND: BytesPerSecond = "aws_network_receive_throughput_bytes_per_second", "Bytes that reached the instance, without those of its volume";
    Gauge NETWORK_TRANSMIT_THROUGHPUT_BYTES_PER_SECOND: BytesPerSecond = "aws_network_transmit_throughput_bytes_per_second", "Bytes that left the instance, without those of its volume";
    Gauge BURST_BALANCE_RATIO: Ratio = "aws_burst_balance_ratio", "Credits left to the volume (gp2)";
    Gauge EBS_BYTE_BALANCE_RATIO: Ratio = "aws_ebs_byte_balance_ratio", "Credits left to the instance for bytes to volumes";
    Gauge EBS_IO_BALANCE_RATIO: Ratio = "aws_ebs_io_balance_ratio", "Credits left to the instance for requests to volumes";

    Gauge DISK_IOPS_CONSUMED_RATIO: Ratio = "aws_disk_iops_consumed_ratio", "Share of the volume's limit on operations";
    Gauge DISK_THROUGHPUT_CONSUMED_RATIO: Ratio = "aws_disk_throughput_consumed_ratio", "Share of the volume's limit on bytes";
    Gauge DISK_IO_CONSUMED_RATIO: Ratio = "aws_disk_io_consumed_ratio", "Share of a limit on the volume's I/O, operations or bytes";
    Gauge DATA_IO_CONSUMED_RATIO: Ratio = "aws_data_io_consumed_ratio", "Share of the limit on I/O to data files";
    Gauge LOG_WRITE_CONSUMED_RATIO: Ratio = "aws_log_write_consumed_ratio", "Share of the limit on bytes written to the log";
    Gauge REPLICA_LAG: Seconds = "aws_replica_lag_seconds", "How far a replica is behind its source";
    Gauge AURORA_REPLICA_LAG: Seconds = "aws_aurora_replica_lag_seconds", "How far a replica of Aurora is behind the writer";
    Gauge AURORA_BINLOG_REPLICA_LAG: Seconds = "aws_aurora_binlog_replica_lag_seconds", "How far a cluster of Aurora is behind the server whose binary log it applies";
    Gauge OLDEST_REPLICATION_SLOT_LAG_BYTES: Bytes = "aws_oldest_replication_slot_lag_bytes", "Log that the replication slot furthest behind has not received";
    Gauge OLDEST_LOGICAL_REPLICATION_SLOT_LAG_BYTES: Bytes = "aws_oldest_logical_replication_slot_lag_bytes", "The same of logical slots";
    Gauge REPLICATION_SLOT_DISK_USAGE_BYTES: Bytes = "aws_replication_slot_disk_usage_bytes", "Space that files of replication slots take";
    Gauge TRANSACTION_LOGS_DISK_USAGE_BYTES: Bytes = "aws_transaction_logs_disk_usage_bytes", "Space that write-ahead log takes";
    Gauge ENGINE_UPTIME: Seconds = "aws_engine_uptime_seconds", "Time since the server started";

    Gauge STORAGE_UTILIZATION_RATIO: Ratio = "aws_storage_utilization_ratio", "Share of the volume's space in use";

    @family FIGURES: "the name's end says the unit; all are gauges" = "aws_", "CloudWatch's figures by their names in lower case; `aws_os_*` of enhanced monitoring, `aws_pi_*` of Performance Insights";
}
