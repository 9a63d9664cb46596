//! Metrics of a cluster's nodes, as `kubectl top nodes` prints them.

metrics! {
    "kubernetes_node", "Nodes of a cluster", "kubernetes_node_";

    Gauge CPU_USAGE_CORES: Count = "kubernetes_node_cpu_usage_cores", "CPUs in use";
    Gauge CPU_UTILIZATION_RATIO: Ratio = "kubernetes_node_cpu_utilization_ratio", "CPUs in use of those that pods may have";
    Gauge MEMORY_USAGE_BYTES: Bytes = "kubernetes_node_memory_usage_bytes", "Memory in use";
    Gauge MEMORY_UTILIZATION_RATIO: Ratio = "kubernetes_node_memory_utilization_ratio", "Memory in use of what pods may have";
}
