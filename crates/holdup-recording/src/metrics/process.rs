//! Metrics of one process and its threads, out of `/proc/PID`.

metrics! {
    "process", "One process and those of its program that it forked (`pid:N`)", "process_";

    Counter CPU_TIME: Seconds = "process_cpu_time_seconds_total", "CPU time of all its threads, by `cpu_mode`";
    Gauge MEMORY_USAGE_BYTES: Bytes = "process_memory_usage_bytes", "Resident memory";
    Counter MAJOR_FAULTS: Count = "process_major_faults_total", "Page faults that read from a disk";
    Counter MINOR_FAULTS: Count = "process_minor_faults_total", "Page faults that read from no disk";
    Counter CONTEXT_SWITCHES: Count = "process_context_switches_total", "Context switches by `type`: voluntary (it waited) or involuntary; pasted outputs have them";
    Gauge OPEN_FILE_DESCRIPTORS: Count = "process_open_file_descriptors", "Open file descriptors";
    Counter DISK_IO_BYTES: Bytes = "process_disk_io_bytes_total", "Bytes it had read from or written to disks, by `direction`";
    Counter IO_CALLS_BYTES: Bytes = "process_io_calls_bytes_total", "Bytes of its read and write calls, cached or not, by `direction`";
    Gauge THREADS: Count = "process_threads", "Its threads by `state`, the letter of `/proc/PID/stat`";
    Gauge WAITING_STACKS: Count = "process_waiting_stacks", "Its threads by what they `wait` for, as their stacks show: pool, http, database, monitor, row_lock, metadata_lock, table_lock, log, page, flush, table_cache or removal; pasted outputs have it";
    Counter RUN_QUEUE: Seconds = "process_run_queue_seconds_total", "Time its threads were runnable and waited for a CPU";
    Counter BLOCK_IO_DELAY: Seconds = "process_block_io_delay_seconds_total", "Time its threads waited for disks";
}
