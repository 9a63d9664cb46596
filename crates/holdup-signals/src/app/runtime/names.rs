//! The names under which runtimes and their metrics libraries report stops. Where several series
//! describe the same stops, the first one counts: a collector's pause is part of the JVM's
//! safepoints, and part of a late event loop.

use holdup_recording::Labels;

/// What stops the code of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// All threads stand at a safepoint of the JVM, for a collection or anything else.
    Safepoint,
    /// The garbage collector stops all threads, or runs on the only one.
    Collector,
    /// A callback keeps the event loop from the next one.
    EventLoop,
}

/// A counter of seconds for which a process stood still.
pub(super) struct StopCounter {
    /// The end of the metric's name: libraries let users put a prefix in front.
    pub(super) ends: &'static str,
    /// Counter of the stops, which replaces that end; none without such a counter.
    pub(super) count_ends: Option<&'static str>,
    pub(super) runtime: &'static str,
    pub(super) stop: Stop,
}

const fn counter(ends: &'static str, count: &'static str, runtime: &'static str, stop: Stop) -> StopCounter {
    StopCounter { ends, count_ends: Some(count), runtime, stop }
}

/// Every known counter, the better one first.
pub(super) const COUNTERS: &[StopCounter] = &[
    // Prometheus' client for Java, hotspot exports: a summary, in older versions two counters.
    counter("jvm_safepoint_seconds_sum", "jvm_safepoint_seconds_count", "JVM", Stop::Safepoint),
    counter("jvm_safepoint_total_time_seconds_total", "jvm_safepoint_count_total", "JVM", Stop::Safepoint),
    counter("jvm_safepoint_total_time_seconds", "jvm_safepoint_count_total", "JVM", Stop::Safepoint),
    // Micrometer: pauses only; concurrent phases have a name of their own.
    counter("jvm_gc_pause_seconds_sum", "jvm_gc_pause_seconds_count", "JVM", Stop::Collector),
    // OpenTelemetry, and Prometheus' client for Java: with concurrent work, see `is_concurrent`.
    counter("jvm_gc_duration_seconds_sum", "jvm_gc_duration_seconds_count", "JVM", Stop::Collector),
    counter("jvm_gc_collection_seconds_sum", "jvm_gc_collection_seconds_count", "JVM", Stop::Collector),
    // Prometheus' client for Go: exact sums first. Sums of histograms of `runtime/metrics` are made
    // of their buckets' lower bounds.
    counter("go_gc_duration_seconds_sum", "go_gc_duration_seconds_count", "Go", Stop::Collector),
    counter("go_sched_pauses_total_gc_seconds_sum", "go_sched_pauses_total_gc_seconds_count", "Go", Stop::Collector),
    counter("go_gc_pauses_seconds_sum", "go_gc_pauses_seconds_count", "Go", Stop::Collector),
    // prom-client, and OpenTelemetry for V8.
    counter("nodejs_gc_duration_seconds_sum", "nodejs_gc_duration_seconds_count", "Node.js", Stop::Collector),
    counter("v8js_gc_duration_seconds_sum", "v8js_gc_duration_seconds_count", "Node.js", Stop::Collector),
    StopCounter {
        ends: "dotnet_gc_pause_time_seconds_total",
        count_ends: None,
        runtime: ".NET",
        stop: Stop::Collector,
    },
    // Python's client counts collections without their time. Apps that time them, by
    // `gc.callbacks`, mostly use this name.
    counter("python_gc_pause_seconds_sum", "python_gc_pause_seconds_count", "Python", Stop::Collector),
    counter("gc_pause_seconds_sum", "gc_pause_seconds_count", "app", Stop::Collector),
];

/// The gauges of how late an event loop is, as `perf_hooks.monitorEventLoopDelay` has them: ends of
/// the names of the mean, the standard deviation and the greatest value. prom-client and
/// OpenTelemetry.
pub(super) const EVENT_LOOPS: &[[&str; 3]] = &[
    ["nodejs_eventloop_lag_mean_seconds", "nodejs_eventloop_lag_stddev_seconds", "nodejs_eventloop_lag_max_seconds"],
    [
        "nodejs_eventloop_delay_mean_seconds",
        "nodejs_eventloop_delay_stddev_seconds",
        "nodejs_eventloop_delay_max_seconds",
    ],
];

/// Histogram of the time that goroutines spent runnable before they ran (`/sched/latencies`).
pub(super) const GO_LATENCIES: &str = "go_sched_latencies_seconds";

/// Threads that may run Go code at once.
pub(super) const GO_MAX_PROCS: &[&str] = &["go_sched_gomaxprocs_threads", "go_gomaxprocs"];

/// Metrics of programs that translate for others, and are Go or Java themselves: of Prometheus' own
/// exporters and of those for CloudWatch.
pub(super) const EXPORTERS: &[&str] =
    &["exporter_build_info", "cloudwatch_requests_total", "cloudwatch_exporter_scrape_duration_seconds"];

/// Labels that tell the processes of one source apart.
const IDENTITY: &[&str] = &["service_name", "service_instance_id", "instance", "pod", "application", "pid"];

/// Names of collectors, and of their actions, that include work beside running threads. The pauses
/// of ZGC and Shenandoah have series of their own; "G1 Concurrent GC" counts pauses alone.
const CONCURRENT: &[&str] = &["Cycles", "ConcurrentMarkSweep", "end of GC cycle"];

/// Whether `metric` is the one called `end`, with any prefix.
pub(super) fn is_called(metric: &str, end: &str) -> bool {
    metric.strip_suffix(end).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('_'))
}

/// Whether the series counts work of the collector beside running threads: not a pause.
pub(super) fn is_concurrent(labels: &Labels) -> bool {
    let names = ["gc", "jvm_gc_name", "jvm_gc_action", "action"].into_iter().filter_map(|name| labels.get(name));
    names.into_iter().any(|name| CONCURRENT.iter().any(|word| name.contains(word)))
}

/// What tells the process of a series from others of the same source.
pub(super) fn identity(labels: &Labels) -> Labels {
    Labels::new(IDENTITY.iter().filter_map(|name| Some((*name, labels.get(name)?))))
}
