//! Metrics of a pod's containers, from the cluster's API.

metrics! {
    "kubernetes", "Containers of a pod", "container_";

    Counter RESTARTS: Count = "container_restarts_total", "Restarts of a `container`";
    Gauge READY: Boolean = "container_ready", "Whether a `container` is ready";
}
