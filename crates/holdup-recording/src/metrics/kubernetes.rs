//! Metrics of a pod's containers, from the cluster's API.

metrics! {
    "kubernetes", "Containers of a pod", "container_";

    Counter RESTARTS: Count = "container_restarts_total", "Restarts of a `container`";
    Gauge READY: Boolean = "container_ready", "Whether a `container` is ready";
    Counter CPU_CFS_PERIODS: Count = "container_cpu_cfs_periods_total", "Periods of a container's CPU quota, as cAdvisor exports them";
    Counter CPU_CFS_THROTTLED_PERIODS: Count = "container_cpu_cfs_throttled_periods_total", "Those in which the quota ran out";
    Gauge CPU_USAGE_CORES: Count = "container_cpu_usage_cores", "CPUs that a `container` used, or all of its pod; an average that `kubectl top` printed";
    Gauge MEMORY_USAGE_BYTES: Bytes = "container_memory_usage_bytes", "Memory in use by a `container`, or by all of its pod, as `kubectl top` printed it";
}
