//! The meaning of a log's fields, by the names of common formats or as the address says. Also
//! parses their values: durations in the unit of the name or the value, and trace ids in their
//! usual forms.

use std::collections::HashMap;

use holdup_recording::clock;

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// The trace id, or a `traceparent` that has it.
    Trace,
    /// The request's total time.
    Total,
    /// Time in a resource, by its index in [`RESOURCES`].
    Wait(usize),
    /// The number of calls to that resource.
    Calls(usize),
    /// When the request ended.
    Time,
    /// The service.
    Service,
    /// The operation.
    Name,
    /// The HTTP status.
    Status,
}

/// Resources that a request may wait for.
pub(super) const RESOURCES: [&str; 5] = ["database", "pool", "cache", "http", "queue"];

/// Nanoseconds per unit.
pub(super) const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

const MS: f64 = 1e6;
const SECONDS: f64 = 1e9;
const US: f64 = 1e3;
const NS: f64 = 1.0;

/// Longest plausible time, nanoseconds: a day.
const LONGEST_NS: f64 = 86_400e9;

/// Field names in lower case and without their unit, each with the unit of a bare number. They come
/// from the usual formats of nginx, Apache and HAProxy, from Rails (lograge), Elastic's schema and
/// loggers of apps.
const KNOWN: &[(&str, Meaning, f64)] = &[
    ("trace_id", Meaning::Trace, NS),
    ("traceid", Meaning::Trace, NS),
    ("trace.id", Meaning::Trace, NS),
    ("trace", Meaning::Trace, NS),
    ("traceparent", Meaning::Trace, NS),
    ("http_traceparent", Meaning::Trace, NS),
    ("oteltraceid", Meaning::Trace, NS),
    ("duration", Meaning::Total, MS),
    ("total", Meaning::Total, MS),
    ("total_time", Meaning::Total, MS),
    ("elapsed", Meaning::Total, MS),
    ("elapsed_time", Meaning::Total, MS),
    ("took", Meaning::Total, MS),
    ("latency", Meaning::Total, MS),
    ("response_time", Meaning::Total, MS),
    ("responsetime", Meaning::Total, MS),
    ("request_time", Meaning::Total, SECONDS),
    ("request_duration", Meaning::Total, MS),
    ("rt", Meaning::Total, SECONDS),
    ("event.duration", Meaning::Total, NS),
    ("db", Meaning::Wait(0), MS),
    ("db_time", Meaning::Wait(0), MS),
    ("db_duration", Meaning::Wait(0), MS),
    ("db.duration", Meaning::Wait(0), MS),
    ("db_runtime", Meaning::Wait(0), MS),
    ("database", Meaning::Wait(0), MS),
    ("database_time", Meaning::Wait(0), MS),
    ("sql", Meaning::Wait(0), MS),
    ("sql_time", Meaning::Wait(0), MS),
    ("pool", Meaning::Wait(1), MS),
    ("pool_wait", Meaning::Wait(1), MS),
    ("pool.wait", Meaning::Wait(1), MS),
    ("db_pool_wait", Meaning::Wait(1), MS),
    ("cache", Meaning::Wait(2), MS),
    ("cache_time", Meaning::Wait(2), MS),
    ("redis", Meaning::Wait(2), MS),
    ("redis_time", Meaning::Wait(2), MS),
    ("memcached", Meaning::Wait(2), MS),
    ("upstream_response_time", Meaning::Wait(3), SECONDS),
    ("urt", Meaning::Wait(3), SECONDS),
    ("upstream", Meaning::Wait(3), MS),
    ("downstream", Meaning::Wait(3), MS),
    ("http_time", Meaning::Wait(3), MS),
    ("external", Meaning::Wait(3), MS),
    ("queue", Meaning::Wait(4), MS),
    ("queue_time", Meaning::Wait(4), MS),
    ("request_queue", Meaning::Wait(4), MS),
    ("upstream_queue_time", Meaning::Wait(4), SECONDS),
    ("db_count", Meaning::Calls(0), NS),
    ("db_calls", Meaning::Calls(0), NS),
    ("db.count", Meaning::Calls(0), NS),
    ("sql_count", Meaning::Calls(0), NS),
    ("query_count", Meaning::Calls(0), NS),
    ("queries", Meaning::Calls(0), NS),
    ("cache_count", Meaning::Calls(2), NS),
    ("redis_count", Meaning::Calls(2), NS),
    ("time", Meaning::Time, NS),
    ("timestamp", Meaning::Time, NS),
    ("@timestamp", Meaning::Time, NS),
    ("ts", Meaning::Time, NS),
    ("time_iso8601", Meaning::Time, NS),
    ("msec", Meaning::Time, NS),
    ("service", Meaning::Service, NS),
    ("service.name", Meaning::Service, NS),
    ("service_name", Meaning::Service, NS),
    ("route", Meaning::Name, NS),
    ("http.route", Meaning::Name, NS),
    ("operation", Meaning::Name, NS),
    ("handler", Meaning::Name, NS),
    ("status", Meaning::Status, NS),
    ("status_code", Meaning::Status, NS),
    ("http.response.status_code", Meaning::Status, NS),
];

/// Name suffixes that state a unit.
const SUFFIXES: [(&str, f64); 10] = [
    ("_ms", MS),
    ("_us", US),
    ("_ns", NS),
    ("_s", SECONDS),
    ("_sec", SECONDS),
    ("_secs", SECONDS),
    ("_seconds", SECONDS),
    ("_millis", MS),
    ("_micros", US),
    ("_nanos", NS),
];

/// The known fields.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    known: HashMap<String, (Meaning, f64)>,
    /// Meanings set by the address: default names no longer carry them.
    given: Vec<Meaning>,
}

impl Default for Fields {
    fn default() -> Self {
        let known = KNOWN.iter().map(|(name, meaning, unit)| ((*name).to_owned(), (*meaning, *unit)));
        Self { known: known.collect(), given: Vec::new() }
    }
}

impl Fields {
    /// Gives `name` this meaning, in place of the defaults.
    pub fn give(&mut self, name: &str, meaning: Meaning, unit: f64) {
        if !self.given.contains(&meaning) {
            self.given.push(meaning);
            self.known.retain(|_, (known, _)| *known != meaning);
        }
        self.known.insert(name.to_ascii_lowercase(), (meaning, unit));
    }

    /// The meaning of `name`, and the nanoseconds per unit of its bare numbers.
    pub fn meaning(&self, name: &str) -> Option<(Meaning, f64)> {
        // Every field of every line is looked up; most names are short.
        if name.len() > 64 {
            return None;
        }
        let name = name.to_ascii_lowercase();
        if let Some(found) = self.known.get(&name) {
            return Some(*found);
        }
        let (bare, unit) = SUFFIXES.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))?;
        let (meaning, _) = self.known.get(bare)?;
        let is_time = matches!(meaning, Meaning::Total | Meaning::Wait(_)) && !self.given.contains(meaning);
        is_time.then_some((*meaning, unit))
    }
}

/// A duration, nanoseconds: a number in `unit`, or one with its own unit. Several values, which
/// nginx writes for several upstreams (`0.010, 0.020 : 0.005`), are added up; `-` yields none.
pub(super) fn duration(text: &str, unit: f64) -> Option<i64> {
    let mut sum = 0.0;
    let mut has_one = false;
    for part in text.split([',', ':']).map(str::trim).filter(|part| !matches!(*part, "" | "-")) {
        let digits = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        let (number, own) = part.split_at(digits);
        let unit = match own.trim() {
            "" => unit,
            own => UNITS.iter().find(|(name, _)| *name == own.replace('µ', "u")).map(|(_, unit)| *unit)?,
        };
        sum += number.parse::<f64>().ok()? * unit;
        has_one = true;
    }
    (has_one && (0.0..=LONGEST_NS).contains(&sum)).then_some(sum as i64)
}

/// The trace id in `text`: 32 hex digits, 16 as in B3, or a `traceparent`.
pub(super) fn trace_id(text: &str) -> Option<String> {
    let text = text.trim();
    let id = match text.split('-').collect::<Vec<_>>()[..] {
        [id] => id.to_owned(),
        [version, id, span, _flags] if version.len() == 2 && span.len() == 16 => id.to_owned(),
        // As a UUID.
        [a, b, c, d, e] if [a.len(), b.len(), c.len(), d.len(), e.len()] == [8, 4, 4, 4, 12] => {
            [a, b, c, d, e].concat()
        }
        _ => return None,
    };
    let is_hex = matches!(id.len(), 16 | 32) && id.bytes().all(|b| b.is_ascii_hexdigit());
    let is_set = id.bytes().any(|b| b != b'0');
    (is_hex && is_set).then(|| format!("{:0>32}", id.to_ascii_lowercase()))
}

/// A time, nanoseconds since the Unix epoch: a number of seconds, milliseconds, microseconds or
/// nanoseconds, whichever gives a plausible year, or `2026-01-31T12:00:00.5+01:00`. None without a
/// time zone.
pub(crate) fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        // 1e8 seconds lie in 1973, 1e11 in the year 5138.
        let scale = [1e9, 1e6, 1e3, 1.0].into_iter().find(|scale| (1e17..1e20).contains(&(number * scale)))?;
        let ns = if text.bytes().all(|b| b.is_ascii_digit()) {
            text.parse::<i64>().ok()?.checked_mul(scale as i64)?
        } else {
            (number * scale) as i64
        };
        return Some(ns).filter(|ns| *ns > 0);
    }
    clock::parse_rfc3339(text).filter(|ns| *ns >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_units() {
        let mut fields = Fields::default();
        for (name, expected) in [
            ("request_time", Some((Meaning::Total, SECONDS))),
            ("Duration_MS", Some((Meaning::Total, MS))),
            ("duration_us", Some((Meaning::Total, US))),
            ("db_seconds", Some((Meaning::Wait(0), SECONDS))),
            ("upstream_response_time", Some((Meaning::Wait(3), SECONDS))),
            ("traceId", Some((Meaning::Trace, NS))),
            ("trace_ms", None),
            ("status_s", None),
            ("nobody", None),
        ] {
            assert_eq!(fields.meaning(name), expected, "{name}");
        }
        fields.give("dauer", Meaning::Total, US);
        fields.give("dauer_alles", Meaning::Total, US);
        assert_eq!(
            (fields.meaning("Dauer"), fields.meaning("dauer_alles")),
            (Some((Meaning::Total, US)), Some((Meaning::Total, US)))
        );
        assert_eq!((fields.meaning("duration"), fields.meaning("duration_ms")), (None, None), "what is said is said");
    }

    #[test]
    fn durations() {
        for (text, unit, expected) in [
            ("12.5", MS, Some(12_500_000)),
            ("0.012", SECONDS, Some(12_000_000)),
            ("0.010, 0.020 : 0.005", SECONDS, Some(35_000_000)),
            ("-, 0.5", SECONDS, Some(500_000_000)),
            ("12ms", SECONDS, Some(12_000_000)),
            ("1.5s", MS, Some(1_500_000_000)),
            ("7µs", MS, Some(7_000)),
            ("7 us", MS, Some(7_000)),
            ("0", MS, Some(0)),
            ("-", MS, None),
            ("", MS, None),
            ("-5", MS, None),
            ("shop", MS, None),
            ("nan", MS, None),
            ("1e9", MS, None),
            ("999999999999999999999", MS, None),
            ("5 apples", MS, None),
        ] {
            assert_eq!(duration(text, unit), expected, "{text}");
        }
    }

    #[test]
    fn trace_ids() {
        const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        for text in [
            ID,
            &ID.to_uppercase(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
        ] {
            assert_eq!(trace_id(text).as_deref(), Some(ID), "{text}");
        }
        assert_eq!(trace_id("a3ce929d0e0e4736").as_deref(), Some("0000000000000000a3ce929d0e0e4736"));
        for text in
            ["", "-", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "4bf92f", "x".repeat(32).as_str()]
        {
            assert_eq!(trace_id(text), None, "{text}");
        }
    }

    #[test]
    fn moments() {
        const NS_2026: i64 = 1_770_091_506_789_000_000;
        assert_eq!(clock::rfc3339(NS_2026), "2026-02-03T04:05:06.789Z");
        for text in [
            "2026-02-03T04:05:06.789Z",
            "2026-02-03 05:05:06,789+01:00",
            "2026-02-02T23:35:06.789-0430",
            "1770091506789",
            "1770091506789000",
            "1770091506789000000",
        ] {
            assert_eq!(moment(text), Some(NS_2026), "{text}");
        }
        assert!(moment("1770091506.789").is_some_and(|at| (at - NS_2026).abs() < 1_000));
        for text in [
            "",
            "now",
            "5",
            "2026-02-03T04:05:06",
            "2026-13-03T04:05:06Z",
            "2026-02-03T04:05:06+1",
            "1e999",
            "-5",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
