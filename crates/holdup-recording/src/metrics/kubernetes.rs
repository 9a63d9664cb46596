//! Metrics of a pod's containers, as the cluster's API tells them.

metrics! {
    "kubernetes", "Containers of a pod", "container_";

    Counter RESTARTS: Count = "container_restarts_total", "Restarts of a `container`";
    Gauge READY: Boolean = "container_ready", "Whether a `container` is ready";
}
