//! What a cloud's volume did: throughput, operations, queue and latency, and the database's load by
//! Performance Insights.

use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::host::flows::FlowSource;
use holdup_signals::host::throttle::Unit;

use super::Readings;

/// Sessions that ran or waited, by Performance Insights.
const LOAD: &str = "aws_pi_db_load";

pub(super) fn read(view: &View<'_>, readings: &mut Readings) {
    let flows = view.flows().unwrap_or_default();
    let Some(flow) = flows.iter().find(|flow| flow.counted == FlowSource::Cloud) else { return };
    // At a limit more is moved after it was raised, and less after the demand fell: neither is
    // better by itself.
    if let Some(moved) = flow.mean(Unit::Bytes, view.window) {
        readings.put("volume, throughput", "MB/s", moved / 1e6, None);
    }
    let operations = flow.mean(Unit::Operations, view.window);
    if let Some(operations) = operations {
        readings.put("volume, operations", "operations/s", operations, None);
    }
    let queued = flow.queued(view.window);
    if let Some(queued) = queued {
        readings.put("volume, queue", "operations", queued, Some(false));
    }
    let latencies = [
        ("volume, wait of a read", metrics::aws::READ_LATENCY.name),
        ("volume, wait of a write", metrics::aws::WRITE_LATENCY.name),
    ];
    let mut has_latencies = false;
    for (name, metric) in latencies {
        if let Ok(latency) = view.gauge(metric, &[("db_instance", &flow.name)], "") {
            readings.put(name, "ms", latency.mean * 1e3, Some(false));
            has_latencies = true;
        }
    }
    if let (false, Some(queued), Some(operations)) = (has_latencies, queued, operations.filter(|n| *n > 0.0)) {
        readings.put("volume, wait of an operation", "ms", queued / operations * 1e3, Some(false));
    }
    if let Ok(load) = view.gauge(LOAD, &[], "") {
        readings.put("database load by Performance Insights", "sessions", load.mean, Some(false));
    }
}
