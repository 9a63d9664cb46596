//! Metrics of liveness probes that holdup makes itself.

metrics! {
    "probe", "Liveness probes", "probe_";

    Gauge SUCCESS: Boolean = "probe_success", "Whether the probe succeeded";
    Gauge DURATION: Seconds = "probe_duration_seconds", "How long it took";
}
