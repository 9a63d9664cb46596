//! Prometheus' names for OpenTelemetry's metrics (OpenTelemetry's "Prometheus and OpenMetrics
//! Compatibility": dots become underscores, the unit and `_total` are appended), so that rules find
//! a metric under one name whatever its source.

use super::Kind;
use crate::bounds::{TEXT_BYTES_MAX, cut};

/// Units in UCUM notation, and their words in names.
const UNITS: [(&str, &str); 22] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
    ("%", "percent"),
];

/// The name of a metric; for a histogram the base to which `_bucket`, `_sum` and `_count` are
/// appended.
pub fn name(name: &str, unit: &str, kind: Kind, is_monotonic: bool) -> String {
    let mut name = plain(cut(name, TEXT_BYTES_MAX));
    let is_total = kind == Kind::Sum && is_monotonic;
    if is_total && let Some(stem) = name.strip_suffix("_total") {
        name = stem.to_owned();
    }
    let mut add = |word: &str| {
        if !word.is_empty() && !name.ends_with(&format!("_{word}")) {
            name = format!("{name}_{word}");
        }
    };
    match unit.split_once('/') {
        Some((of, per)) => {
            add(&words(of));
            // A rate's unit is singular: bytes per second.
            let per = words(per);
            if !per.is_empty() {
                add(&format!("per_{}", per.strip_suffix('s').unwrap_or(&per)));
            }
        }
        None if unit == "1" && kind == Kind::Gauge => add("ratio"),
        None => add(&words(unit)),
    }
    if is_total {
        name.push_str("_total");
    }
    name
}

/// The words of a unit; empty for a plain count, or for text in braces.
fn words(unit: &str) -> String {
    let unit = unit.split('{').next().unwrap_or_default().trim();
    match UNITS.iter().find(|(letters, _)| *letters == unit) {
        Some((_, word)) => (*word).to_owned(),
        None if unit == "1" => String::new(),
        None => plain(cut(unit, 32)).trim_matches('_').to_owned(),
    }
}

/// The name of a label.
pub fn label(key: &str) -> String {
    plain(key)
}

/// Replaces each run of characters other than letters, digits and colons by one underscore; a name
/// never starts with a digit.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || c == ':' { c } else { '_' };
        if c == '_' && plain.ends_with('_') {
            continue;
        }
        if plain.is_empty() && c.is_ascii_digit() {
            plain.push('_');
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_prometheus_endpoint() {
        for (given, unit, kind, monotonic, expected) in [
            ("db.client.operation.duration", "s", Kind::Histogram, false, "db_client_operation_duration_seconds"),
            ("db.client.connection.wait_time", "s", Kind::Histogram, false, "db_client_connection_wait_time_seconds"),
            ("db.client.connection.count", "{connection}", Kind::Sum, false, "db_client_connection_count"),
            ("db.client.connection.timeouts", "{timeout}", Kind::Sum, true, "db_client_connection_timeouts_total"),
            ("http.server.active_requests", "{request}", Kind::Sum, false, "http_server_active_requests"),
            ("process.cpu.time", "s", Kind::Sum, true, "process_cpu_time_seconds_total"),
            ("jvm.memory.used", "By", Kind::Sum, false, "jvm_memory_used_bytes"),
            ("system.cpu.utilization", "1", Kind::Gauge, false, "system_cpu_utilization_ratio"),
            ("x.requests_total", "", Kind::Sum, true, "x_requests_total"),
            ("x_seconds", "s", Kind::Gauge, false, "x_seconds"),
            ("net.io", "By/s", Kind::Gauge, false, "net_io_bytes_per_second"),
            ("9 lives--left", "", Kind::Gauge, false, "_9_lives_left"),
        ] {
            assert_eq!(name(given, unit, kind, monotonic), expected);
        }
        assert_eq!(label("db.system.name"), "db_system_name");
    }
}
