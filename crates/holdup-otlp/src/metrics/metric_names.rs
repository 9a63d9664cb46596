//! Gives the metrics that rules read one name and unit, under whichever of their names and units
//! they arrive. The conventions for HTTP, databases and processes were renamed when they became
//! stable, durations went from milliseconds to seconds, and packages of both ages are in use. An
//! app's figures about the machine or a database never get the names of holdup's own sources for
//! them: they would be counted twice.

use std::collections::HashMap;

use holdup_recording::Labels;

use super::{Metric, naming};

/// Names of a metric, the present one first, and its name here. Values of time metrics are in
/// seconds.
struct Names {
    becomes: &'static str,
    is_time: bool,
    /// If several arrive, the first of these is kept under that name.
    names: &'static [&'static str],
}

const fn time(becomes: &'static str, names: &'static [&'static str]) -> Names {
    Names { becomes, is_time: true, names }
}

const fn count(becomes: &'static str, names: &'static [&'static str]) -> Names {
    Names { becomes, is_time: false, names }
}

#[rustfmt::skip]
const KNOWN: [Names; 13] = [
    time("http.server.request.duration", &["http.server.request.duration", "http.server.duration"]),
    time("http.client.request.duration", &["http.client.request.duration", "http.client.duration"]),
    time("db.client.operation.duration", &["db.client.operation.duration"]),
    time("db.client.connection.wait_time", &["db.client.connection.wait_time", "db.client.connections.wait_time"]),
    time("db.client.connection.use_time", &["db.client.connection.use_time", "db.client.connections.use_time"]),
    time("db.client.connection.create_time", &["db.client.connection.create_time", "db.client.connections.create_time"]),
    // The name used by Prometheus' client libraries, and by rules.
    time("process.cpu", &["process.cpu.time", "jvm.cpu.time"]),
    count("db.client.connection.count", &["db.client.connection.count", "db.client.connections.usage"]),
    count("db.client.connection.max", &["db.client.connection.max", "db.client.connections.max"]),
    count("db.client.connection.idle.max", &["db.client.connection.idle.max", "db.client.connections.idle.max"]),
    count("db.client.connection.idle.min", &["db.client.connection.idle.min", "db.client.connections.idle.min"]),
    count("db.client.connection.pending_requests", &["db.client.connection.pending_requests", "db.client.connections.pending_requests"]),
    count("db.client.connection.timeouts", &["db.client.connection.timeouts", "db.client.connections.timeouts"]),
];

/// Name prefixes of holdup's other sources, and of the receiver itself.
const OTHERS: [&str; 11] =
    ["system_", "process_", "cgroup_", "tcp_", "mysql_", "postgresql_", "pg_", "traced_", "wire_", "holdup_", "otlp_"];

/// The one name with such a prefix that apps may send.
const APP_CPU: &str = holdup_recording::metrics::app::PROCESS_CPU.name;

/// Largest number of remembered names: processes times metrics.
const REMEMBERED_MAX: usize = 10_000;

/// The name that each process uses for each metric: some send the old and the new one at once.
#[derive(Debug, Default)]
pub struct MetricNames(HashMap<(Labels, usize), usize>);

impl MetricNames {
    /// The name of `metric` from the process described by `resource`, and the divisor for its
    /// values.
    pub fn name(&mut self, resource: &Labels, metric: &Metric<'_>) -> (String, f64) {
        let of_unit = |name, unit| naming::name(name, unit, metric.kind, metric.is_monotonic);
        let known = KNOWN.iter().enumerate().find_map(|(index, known)| {
            let rank = known.names.iter().position(|name| *name == metric.name)?;
            let per_second = if known.is_time { per_second(&metric.unit)? } else { 1.0 };
            Some((index, known, rank, per_second))
        });
        if let Some((index, known, rank, per_second)) = known
            && self.is_first(resource, index, rank)
        {
            return (of_unit(known.becomes, if known.is_time { "s" } else { &*metric.unit }), per_second);
        }
        let name = of_unit(&metric.name, &metric.unit);
        let is_others = name != APP_CPU && OTHERS.iter().any(|prefix| name.starts_with(prefix));
        (if is_others { format!("otlp_{name}") } else { name }, 1.0)
    }

    /// Whether the same process sends no name of a better rank.
    fn is_first(&mut self, resource: &Labels, index: usize, rank: usize) -> bool {
        let key = (resource.clone(), index);
        if let Some(best) = self.0.get_mut(&key) {
            *best = rank.min(*best);
            return *best == rank;
        }
        if self.0.len() >= REMEMBERED_MAX {
            return rank == 0;
        }
        self.0.insert(key, rank);
        true
    }
}

/// Units per second, for a unit of time.
fn per_second(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1.0),
        "ms" => Some(1e3),
        "us" => Some(1e6),
        "ns" => Some(1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::metrics::Kind;

    fn metric<'a>(name: &'a str, unit: &'a str, kind: Kind, is_monotonic: bool) -> Metric<'a> {
        Metric { name: Cow::Borrowed(name), unit: Cow::Borrowed(unit), kind, is_monotonic, ..Metric::default() }
    }

    #[test]
    fn old_names_and_units_become_those_that_rules_read() {
        for (name, unit, kind, is_monotonic, expected) in [
            ("http.server.duration", "ms", Kind::Histogram, false, ("http_server_request_duration_seconds", 1e3)),
            (
                "http.server.request.duration",
                "s",
                Kind::Histogram,
                false,
                ("http_server_request_duration_seconds", 1.0),
            ),
            ("http.client.duration", "ms", Kind::Histogram, false, ("http_client_request_duration_seconds", 1e3)),
            (
                "db.client.operation.duration",
                "us",
                Kind::Histogram,
                false,
                ("db_client_operation_duration_seconds", 1e6),
            ),
            (
                "db.client.connections.wait_time",
                "ms",
                Kind::Histogram,
                false,
                ("db_client_connection_wait_time_seconds", 1e3),
            ),
            ("db.client.connections.usage", "{connection}", Kind::Sum, false, ("db_client_connection_count", 1.0)),
            (
                "db.client.connections.timeouts",
                "{timeout}",
                Kind::Sum,
                true,
                ("db_client_connection_timeouts_total", 1.0),
            ),
            ("process.cpu.time", "s", Kind::Sum, true, ("process_cpu_seconds_total", 1.0)),
            ("jvm.cpu.time", "s", Kind::Sum, true, ("process_cpu_seconds_total", 1.0)),
            ("process_cpu_seconds", "", Kind::Sum, true, ("process_cpu_seconds_total", 1.0)),
            // Of no unit that is plain.
            ("http.server.duration", "", Kind::Histogram, false, ("http_server_duration", 1.0)),
            // Other sources' own account of the same.
            ("system.cpu.time", "s", Kind::Sum, true, ("otlp_system_cpu_time_seconds_total", 1.0)),
            ("process.memory.usage", "By", Kind::Sum, false, ("otlp_process_memory_usage_bytes", 1.0)),
            ("mysql.threads", "1", Kind::Sum, false, ("otlp_mysql_threads", 1.0)),
            ("otlp.spans", "", Kind::Sum, true, ("otlp_otlp_spans_total", 1.0)),
            ("systemd.units", "", Kind::Gauge, false, ("systemd_units", 1.0)),
        ] {
            let given = metric(name, unit, kind, is_monotonic);
            let (found, divided_by) = MetricNames::default().name(&Labels::none(), &given);
            assert_eq!((found.as_str(), divided_by), expected, "{name}");
        }
    }

    #[test]
    fn of_two_names_that_one_process_sends_the_new_one_counts() {
        let mut known = MetricNames::default();
        let one = Labels::new([("service_name", "shop")]);
        let other = Labels::new([("service_name", "cart")]);
        let mut name = |of: &Labels, name, unit| known.name(of, &metric(name, unit, Kind::Histogram, false));
        let is_read = ("http_server_request_duration_seconds".to_owned(), 1e3);
        assert_eq!(name(&one, "http.server.duration", "ms"), is_read);
        assert_eq!(name(&one, "http.server.request.duration", "s"), (is_read.0.clone(), 1.0));
        for _ in 0..2 {
            let kept_apart = ("http_server_duration_milliseconds".to_owned(), 1.0);
            assert_eq!(name(&one, "http.server.duration", "ms"), kept_apart);
            assert_eq!(name(&other, "http.server.duration", "ms"), is_read);
        }
    }
}
