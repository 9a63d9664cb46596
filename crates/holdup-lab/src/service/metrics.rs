//! The service's measurements of itself, as Prometheus text. Names are those of OpenTelemetry's
//! semantic conventions in Prometheus form. Every value is measured.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::service::pool::PoolState;
use crate::service::process::Usage;

/// Upper bounds of the histograms' buckets, seconds. They are fine enough that a percentile read
/// from them errs by half a bucket at most, from a statement on a local file to a request that
/// waited a minute.
const BOUNDS: [f64; 35] = [
    0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04,
    0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0,
];

/// Everything the service counts and times.
#[derive(Default)]
pub struct Metrics {
    /// Requests being answered now.
    pub active_requests: AtomicI64,
    /// Checkouts that gave up.
    pub pool_timeouts_total: AtomicU64,
    /// From asking for a connection to having it (or giving up).
    pub pool_wait: Family,
    /// From having a connection to giving it back.
    pub pool_use: Family,
    /// A statement, or a read of a document store, as its caller sees it.
    pub operation: Family,
    /// The answer of the downstream service that is called while a connection is held.
    pub downstream: Family,
    /// From the first byte of a request read to the last byte of its response written.
    pub request: Family,
}

/// A histogram for each set of labels.
#[derive(Default)]
pub struct Family(Mutex<BTreeMap<String, Histogram>>);

#[derive(Clone)]
struct Histogram {
    /// Observations per bucket, not cumulated; the last is for those above all bounds.
    buckets: [u64; BOUNDS.len() + 1],
    sum_seconds: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BOUNDS.len() + 1], sum_seconds: 0.0 }
    }
}

impl Family {
    /// Counts one observation under `labels`, as they stand between the braces.
    pub fn observe(&self, labels: &str, value: Duration) {
        let seconds = value.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        let mut family = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !family.contains_key(labels) {
            family.insert(labels.to_owned(), Histogram::default());
        }
        if let Some(histogram) = family.get_mut(labels) {
            histogram.buckets[bucket] += 1;
            histogram.sum_seconds += seconds;
        }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn write(&self, text: &mut String, name: &str, help: &str) {
        head(text, name, help, "histogram");
        let family = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (labels, histogram) in &family {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut count = 0;
            for (bound, observed) in BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]).zip(histogram.buckets)
            {
                count += observed;
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(text, "{name}_sum{{{labels}}} {}", histogram.sum_seconds);
            let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
        }
    }
}

/// Label of the only pool.
pub const POOL: &str = "db_client_connection_pool_name=\"main\"";

impl Metrics {
    /// The Prometheus text (exposition format 0.0.4). Without a pool it has no pool metrics.
    pub fn render(&self, pool: Option<PoolState>, usage: Usage) -> String {
        let mut text = String::with_capacity(32 * 1024);
        if let Some(pool) = pool {
            self.render_pool(pool, &mut text);
        }
        if pool.is_some() || !self.operation.is_empty() {
            self.operation.write(
                &mut text,
                "db_client_operation_duration_seconds",
                "Time of a database statement as its caller sees it.",
            );
        }
        self.downstream.write(
            &mut text,
            "http_client_request_duration_seconds",
            "Time of a call to a downstream service.",
        );
        self.request.write(
            &mut text,
            "http_server_request_duration_seconds",
            "Time from a request's first byte read to its response's last byte written.",
        );
        head(&mut text, "http_server_active_requests", "Requests being answered.", "gauge");
        let _ = writeln!(text, "http_server_active_requests {}", self.active_requests.load(Ordering::Relaxed));
        for (name, help, kind, value) in [
            ("process_cpu_seconds_total", "User and system CPU time.", "counter", usage.cpu_seconds_total),
            ("process_resident_memory_bytes", "Memory in RAM.", "gauge", usage.resident_bytes),
            ("process_start_time_seconds", "Start, seconds since the Unix epoch.", "gauge", usage.start_seconds),
        ] {
            if let Some(value) = value {
                head(&mut text, name, help, kind);
                let _ = writeln!(text, "{name} {value}");
            }
        }
        text
    }

    fn render_pool(&self, pool: PoolState, text: &mut String) {
        head(text, "db_client_connection_count", "Connections of the pool by state.", "gauge");
        for (state, count) in [("idle", pool.idle), ("used", pool.size - pool.idle)] {
            let _ =
                writeln!(text, "db_client_connection_count{{{POOL},db_client_connection_state=\"{state}\"}} {count}");
        }
        let labelled = format!("{{{POOL}}}");
        let one = |text: &mut String, name: &str, help: &str, kind: &str, value: u64| {
            head(text, name, help, kind);
            let _ = writeln!(text, "{name}{labelled} {value}");
        };
        one(text, "db_client_connection_max", "Most connections the pool may open.", "gauge", pool.size as u64);
        let pending = pool.pending as u64;
        one(text, "db_client_connection_pending_requests", "Requests waiting for a connection.", "gauge", pending);
        let timeouts = self.pool_timeouts_total.load(Ordering::Relaxed);
        one(text, "db_client_connection_timeouts_total", "Waits for a connection that gave up.", "counter", timeouts);
        self.pool_wait.write(
            text,
            "db_client_connection_wait_time_seconds",
            "Time to obtain a connection from the pool.",
        );
        self.pool_use.write(
            text,
            "db_client_connection_use_time_seconds",
            "Time between obtaining a connection and returning it.",
        );
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_inclusive() {
        let family = Family::default();
        for milliseconds in [1, 1, 40, 90_000] {
            family.observe("a=\"b\"", Duration::from_millis(milliseconds));
        }
        let mut text = String::new();
        family.write(&mut text, "x", "help");
        for line in
            ["x_bucket{a=\"b\",le=\"0.00075\"} 0", "x_bucket{a=\"b\",le=\"0.001\"} 2", "x_bucket{a=\"b\",le=\"60\"} 3"]
        {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(text.contains("x_bucket{a=\"b\",le=\"+Inf\"} 4\nx_sum{a=\"b\"} 90.042\nx_count{a=\"b\"} 4\n"));
    }

    #[test]
    fn bounds_rise() {
        assert!(BOUNDS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
