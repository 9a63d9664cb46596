//! Metrics of one cgroup, version 1 or 2. The label `cgroup` is the path of the level that was
//! read.

metrics! {
    "cgroup", "One cgroup (`cgroup:PATH`, and those of `host`, `pid:N` and `server:`)", "cgroup_";

    Counter CPU_USAGE: Seconds = "cgroup_cpu_usage_seconds_total", "CPU time used";
    Counter CPU_PERIODS: Count = "cgroup_cpu_periods_total", "Periods of the CPU quota in which something ran";
    Counter CPU_THROTTLED_PERIODS: Count = "cgroup_cpu_throttled_periods_total", "Of them, those in which the quota ran out";
    Counter CPU_THROTTLED_TIME: Seconds = "cgroup_cpu_throttled_time_seconds_total", "Time that its CPUs were held back by the quota";
    Gauge PROCESSES: Count = "cgroup_processes", "Threads and processes in it and below it";
    Gauge PROCESSES_LIMIT: Count = "cgroup_processes_limit", "Most threads and processes that it may have";
    Gauge MEMBER_PROCESSES: Count = "cgroup_member_processes", "Processes that are in the cgroup of the name that is watched";
    Gauge MEMORY_USAGE_BYTES: Bytes = "cgroup_memory_usage_bytes", "Memory charged to it, page cache included";
    Gauge MEMORY_FILE_BYTES: Bytes = "cgroup_memory_file_bytes", "Of that, page cache";
    Counter MEMORY_MAJOR_FAULTS: Count = "cgroup_memory_major_faults_total", "Page faults that read from a disk";
    Counter MEMORY_REFAULTS: Pages = "cgroup_memory_refaults_total", "Pages read again soon after they were evicted, by `type`: file or anon";
    Counter MEMORY_LIMIT_HITS: Count = "cgroup_memory_limit_hits_total", "Times that its memory reached the limit";
    Counter OUT_OF_MEMORY_KILLS: Count = "cgroup_out_of_memory_kills_total", "Processes killed because of its memory limit";
    Counter DISK_IO_BYTES: Bytes = "cgroup_disk_io_bytes_total", "Bytes read and written, by `device` and `direction`";
    Counter DISK_OPERATIONS: Count = "cgroup_disk_operations_total", "Disk requests, by `device` and `direction`";
    Counter PRESSURE_STALL: Seconds = "cgroup_pressure_stall_seconds_total", "Time in which some or all of its tasks stalled, by `resource` and `kind`";
}
