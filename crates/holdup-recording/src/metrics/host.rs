//! Metrics of the Linux host, out of `/proc` and `/sys`.

metrics! {
    "host", "The Linux host", "system_";

    Gauge LOAD_AVERAGE_1M: Count = "system_load_average_1m", "Load average of the last minute";
    Gauge LOAD_AVERAGE_5M: Count = "system_load_average_5m", "Load average of the last 5 minutes";
    Gauge LOAD_AVERAGE_15M: Count = "system_load_average_15m", "Load average of the last 15 minutes";
    Gauge PROCESSES_RUNNABLE: Count = "system_processes_runnable", "Threads on a CPU or waiting for one";
    Counter CPU_TIME: Seconds = "system_cpu_time_seconds_total", "Time of all CPUs, by `cpu_mode`";
    Counter CPU_SOFTIRQ_TIME: Seconds = "system_cpu_softirq_time_seconds_total", "Time of one CPU in soft interrupts, which are mostly packets, by `cpu_logical_number`";
    Gauge CPU_LOGICAL_COUNT: Count = "system_cpu_logical_count", "CPUs that are online";
    Counter CONTEXT_SWITCHES: Count = "system_context_switches_total", "Context switches";
    Counter PROCESS_CREATED: Count = "system_process_created_total", "Processes and threads created";
    Gauge FOLDER_ENTRIES: Count = "system_folder_entries", "Files in a folder, by `path`; pasted outputs have it";
    Gauge FOLDER_BYTES: Bytes = "system_folder_bytes", "What the files of a folder take, by `path`; pasted outputs have it";
    Gauge TEMPORARY_TABLE_FILES: Count = "system_temporary_table_files", "Files of temporary tables (`#sql…`) in a folder, by `path`; pasted outputs have it";
    Gauge TEMPORARY_TABLE_FILES_VANISHED: Count = "system_temporary_table_files_vanished", "Of them, those that were gone before `ls` could read them, by `path`; pasted outputs have it";
    Gauge FILE_HANDLES: Count = "system_file_handles", "Files open on the whole host";

    Gauge MEMORY_USAGE_BYTES: Bytes = "system_memory_usage_bytes", "Memory by `state`: used, free, buffers and cached add up to all of it";
    Gauge MEMORY_AVAILABLE_BYTES: Bytes = "system_memory_available_bytes", "Memory that programs could get without swapping";
    Gauge MEMORY_TOTAL_BYTES: Bytes = "system_memory_total_bytes", "Memory of the host";
    Gauge MEMORY_DIRTY_BYTES: Bytes = "system_memory_dirty_bytes", "Cached file pages that are not on disk yet";
    Gauge MEMORY_WRITEBACK_BYTES: Bytes = "system_memory_writeback_bytes", "Cached file pages that are being written to disk";
    Gauge PAGING_USAGE_BYTES: Bytes = "system_paging_usage_bytes", "Swap by `state`: used or free";
    Counter PAGING_OPERATIONS: Pages = "system_paging_operations_total", "Pages swapped, by `direction`";
    Counter PAGING_FAULTS: Count = "system_paging_faults_total", "Page faults that read from a disk (`type` major)";
    Counter PAGING_REFAULTS: Pages = "system_paging_refaults_total", "Pages read again soon after they were evicted, by `type`: file or anon";
    Counter MEMORY_RECLAIM_PAGES: Pages = "system_memory_reclaim_pages_total", "Pages looked at or taken to get free memory, by `kind`";
    Counter OUT_OF_MEMORY_KILLS: Count = "system_out_of_memory_kills_total", "Processes that the kernel killed for lack of memory";
    Counter ALLOCATION_STALLS: Count = "system_allocation_stalls_total", "Allocations that had to free memory themselves";
    Counter NUMA_PAGES: Pages = "system_numa_pages_total", "Pages taken on a `node` of several, by `kind`: hit (it was wanted there), miss (another was wanted), interleave (spread on purpose; part of hit)";
    Gauge NUMA_MEMORY_TOTAL_BYTES: Bytes = "system_numa_memory_total_bytes", "Memory of a `node` of several";
    Gauge NUMA_MEMORY_FREE_BYTES: Bytes = "system_numa_memory_free_bytes", "Free memory of a `node` of several";
    Counter PRESSURE: Seconds = "system_pressure_seconds_total", "Time in which some or all tasks stalled, by `resource` and `kind`";

    Counter DISK_OPERATIONS: Count = "system_disk_operations_total", "Requests completed, by `device` and `direction`";
    Counter DISK_MERGED: Count = "system_disk_merged_total", "Requests merged into a queued one, by `device` and `direction`";
    Counter DISK_IO_BYTES: Bytes = "system_disk_io_bytes_total", "Bytes read and written, by `device` and `direction`";
    Counter DISK_OPERATION_TIME: Seconds = "system_disk_operation_time_seconds_total", "Time that completed requests took, summed up, by `device` and `direction`";
    Gauge DISK_IN_FLIGHT: Count = "system_disk_in_flight", "Requests in flight, by `device`";
    Counter DISK_IO_TIME: Seconds = "system_disk_io_time_seconds_total", "Time with at least one request in flight, by `device`";
    Counter DISK_WEIGHTED_IO_TIME: Seconds = "system_disk_weighted_io_time_seconds_total", "Time with requests in flight, times their number, by `device`";
    Counter DISK_DISCARDS: Count = "system_disk_discards_total", "Discards completed, by `device`";
    Counter DISK_FLUSHES: Count = "system_disk_flushes_total", "Flushes of the disk's cache, by `device`";
    Counter DISK_FLUSH_TIME: Seconds = "system_disk_flush_time_seconds_total", "Time that flushes took, summed up, by `device`";

    Counter NETWORK_IO_BYTES: Bytes = "system_network_io_bytes_total", "Bytes received and sent, by `device` and `direction`";
    Counter NETWORK_PACKETS: Count = "system_network_packets_total", "Packets received and sent, by `device` and `direction`";
    Counter NETWORK_ERRORS: Count = "system_network_errors_total", "Packets with errors, by `device` and `direction`";
    Counter NETWORK_DROPPED: Count = "system_network_dropped_total", "Packets dropped, by `device` and `direction`";
    Gauge NETWORK_QDISC_BACKLOG_BYTES: Bytes = "system_network_qdisc_backlog_bytes", "Bytes in the queue for sending, by `device`";
    Counter NETWORK_QDISC_DROPPED: Count = "system_network_qdisc_dropped_total", "Packets that the queue for sending dropped, by `device`";
    Counter NETWORK_QDISC_OVERLIMITS: Count = "system_network_qdisc_overlimits_total", "Times that the queue for sending held packets back by its limit, by `device`";
    Counter NETWORK_SOFTNET_PROCESSED: Count = "system_network_softnet_processed_total", "Received packets that a CPU took up, by `cpu_logical_number`";
    Counter NETWORK_SOFTNET_DROPPED: Count = "system_network_softnet_dropped_total", "Received packets dropped because a CPU's backlog (net.core.netdev_max_backlog) was full, by `cpu_logical_number`";
    Counter NETWORK_SOFTNET_SQUEEZED: Count = "system_network_softnet_squeezed_total", "Rounds of receiving that ended with packets left, by `cpu_logical_number`";
    Counter NETWORK_RECEIVE_SOFTIRQS: Count = "system_network_receive_softirqs_total", "Soft interrupts for received packets, by `cpu_logical_number`";
    Gauge NETWORK_PROBES: Count = "system_network_probes", "Probes that were sent to a `peer`; pasted outputs have it";
    Gauge NETWORK_PROBE_LOSS_RATIO: Ratio = "system_network_probe_loss_ratio", "Of them, the share that was not answered, by `peer`; pasted outputs have it";
    Gauge NETWORK_CONNTRACK_COUNT: Count = "system_network_conntrack_count", "Connections in the kernel's table of tracked connections (conntrack)";
    Gauge NETWORK_CONNTRACK_MAX: Count = "system_network_conntrack_max", "Connections that this table has room for";
    Counter NETWORK_CONNTRACK_DROPPED: Count = "system_network_conntrack_dropped_total", "Packets dropped because their connection found no room in this table";
    Counter NETWORK_CONNTRACK_EARLY_DROPPED: Count = "system_network_conntrack_early_dropped_total", "Connections that the full table forgot to make room for new ones";
    Counter NETWORK_CONNTRACK_INSERT_FAILED: Count = "system_network_conntrack_insert_failed_total", "Packets dropped because their connection entered this table twice at once";
    Counter NETWORK_ALLOWANCE_EXCEEDED: Count = "system_network_allowance_exceeded_total", "Packets that a cloud queued or dropped because an allowance was used up, by `device` and `allowance`: bandwidth_in, bandwidth_out, packets, connections or link_local";
    Counter NETWORK_ALLOWANCE_EXCEEDED_BYTES: Bytes = "system_network_allowance_exceeded_bytes_total", "Bytes that a network device dropped by its rate limit, by `device` and `allowance`: bandwidth_in or bandwidth_out";
    Gauge NETWORK_ALLOWANCE_AVAILABLE: Count = "system_network_allowance_available", "What is left of an allowance, by `device` and `allowance`: connections";

    Gauge THREADS: Count = "system_threads", "Threads by `state`, the letter of `/proc/PID/stat`";
}
