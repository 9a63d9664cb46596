//! The load as time series for Prometheus, the same for scrape and remote write.
//!
//! Counters count from the start of the load. Quantiles cover the last second alone; for another
//! window a client has sums and counts. A second without requests has no quantile, rather than an
//! old one.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use holdup_load::stats::Second;

use crate::figures::offered;

/// The type of a family (Prometheus' text format).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Quantiles with a sum and a count.
    Summary,
}

/// Series of one name.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// Every family, in the order of output.
pub const FAMILIES: [Family; 9] = [
    family("holdup_build_info", "Version of holdup.", Kind::Gauge),
    family("holdup_requests_total", "Requests that ended, by outcome: ok, or the kind of failure.", Kind::Counter),
    family(
        "holdup_response_time_seconds",
        "From the time a request was due to the end of the response; quantiles of the last second.",
        Kind::Summary,
    ),
    family("holdup_service_time_seconds", "From the send to the end of the response.", Kind::Summary),
    family("holdup_send_lag_seconds", "The generator's own delay before the send.", Kind::Summary),
    family("holdup_offered_rate", "Requests due per second; 0 in a closed model.", Kind::Gauge),
    family("holdup_requests_in_flight", "Requests on the wire.", Kind::Gauge),
    family("holdup_requests_waiting", "Requests due that wait for a free connection.", Kind::Gauge),
    family("holdup_phase_info", "The current phase of the load.", Kind::Gauge),
];

const fn family(name: &'static str, help: &'static str, kind: Kind) -> Family {
    Family { name, help, kind }
}

/// The quantiles, with their labels.
const QUANTILES: [(&str, f64); 5] = [("0.5", 0.5), ("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99), ("0.999", 0.999)];

/// Name and value of each label.
pub type Labels = Vec<(&'static str, String)>;

/// The value of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Index in [`FAMILIES`].
    pub family: usize,
    /// The suffix of its name: empty, `_sum` or `_count`.
    pub suffix: &'static str,
    /// Its labels.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

impl Point {
    /// The name of the series.
    pub fn name(&self) -> String {
        format!("{}{}", FAMILIES[self.family].name, self.suffix)
    }
}

/// Counts from the start of the load. See the module.
pub struct Meter {
    labels: Labels,
    /// By operation.
    totals: Vec<Totals>,
}

#[derive(Default)]
struct Totals {
    outcomes: BTreeMap<&'static str, u64>,
    /// Sum (seconds) and count of response time, service time and send lag.
    times: [(f64, u64); 3],
}

impl Meter {
    /// A meter whose series all have `labels`.
    pub fn new(labels: Labels) -> Self {
        Self { labels, totals: Vec::new() }
    }

    /// The series before the load has begun.
    pub fn before(&self) -> Vec<Point> {
        vec![self.point(0, "", [("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0)]
    }

    /// The series at the end of `second`.
    pub fn at(&mut self, second: &Second) -> Vec<Point> {
        self.totals.resize_with(self.totals.len().max(second.operations.len()), Totals::default);
        for (totals, operation) in self.totals.iter_mut().zip(&second.operations) {
            *totals.outcomes.entry("ok").or_default() += operation.completed;
            for (kind, count) in &operation.failures {
                *totals.outcomes.entry(*kind).or_default() += count;
            }
            let l = &operation.latencies;
            for ((sum, count), histogram) in totals.times.iter_mut().zip([&l.response, &l.service, &l.send_lag]) {
                *count += histogram.len();
                if !histogram.is_empty() {
                    *sum += histogram.mean() * histogram.len() as f64 / 1e9;
                }
            }
        }
        let mut points = self.before();
        for (totals, operation) in self.totals.iter().zip(&second.operations) {
            points.extend(totals.outcomes.iter().map(|(outcome, count)| {
                let labels = [("operation", operation.name.clone()), ("outcome", (*outcome).to_owned())];
                self.point(1, "", labels, *count as f64)
            }));
        }
        for which in 0..3 {
            for (totals, operation) in self.totals.iter().zip(&second.operations) {
                let l = &operation.latencies;
                let histogram = [&l.response, &l.service, &l.send_lag][which];
                self.summary(&mut points, 2 + which, &operation.name, histogram, totals.times[which]);
            }
        }
        points.push(self.point(5, "", [], offered(second)));
        points.push(self.point(6, "", [], second.in_flight as f64));
        points.push(self.point(7, "", [], second.waiting as f64));
        points.push(self.point(8, "", [("phase", second.phase.clone())], 1.0));
        points
    }

    fn summary(
        &self,
        points: &mut Vec<Point>,
        family: usize,
        operation: &str,
        histogram: &Histogram<u64>,
        (sum, count): (f64, u64),
    ) {
        let operation = || ("operation", operation.to_owned());
        if !histogram.is_empty() {
            points.extend(QUANTILES.map(|(label, quantile)| {
                let labels = [operation(), ("quantile", label.to_owned())];
                self.point(family, "", labels, histogram.value_at_quantile(quantile) as f64 / 1e9)
            }));
        }
        points.push(self.point(family, "_sum", [operation()], sum));
        points.push(self.point(family, "_count", [operation()], count as f64));
    }

    fn point<const N: usize>(
        &self,
        family: usize,
        suffix: &'static str,
        labels: [(&'static str, String); N],
        value: f64,
    ) -> Point {
        let labels = labels.into_iter().chain(self.labels.iter().cloned()).collect();
        Point { family, suffix, labels, value }
    }
}

/// `points` in Prometheus' text format (version 0.0.4).
pub fn text(points: &[Point]) -> String {
    let mut out = String::new();
    let mut last = usize::MAX;
    for point in points {
        let Family { name, help, kind } = &FAMILIES[point.family];
        if point.family != last {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Summary => "summary",
            };
            out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            last = point.family;
        }
        let labels: Vec<String> =
            point.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        out.push_str(&format!("{}{labels} {}\n", point.name(), point.value));
    }
    out
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::second;

    fn value(text: &str, series: &str) -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    #[test]
    fn counters_add_up_and_quantiles_are_of_the_last_second() {
        let mut meter = Meter::new(vec![("run", "r1".to_owned())]);
        meter.at(&second(0, &[("timeout", 2)]));
        let text = text(&meter.at(&second(1, &[("http_status", 1)])));
        let of = |series: &str| value(&text, series);
        assert_eq!(of("holdup_requests_total{operation=\"search\",outcome=\"ok\",run=\"r1\"}"), Some(200.0));
        let order = r#"operation="order \"new\"",outcome="#;
        assert_eq!(of(&format!("holdup_requests_total{{{order}\"timeout\",run=\"r1\"}}")), Some(2.0));
        assert_eq!(of(&format!("holdup_requests_total{{{order}\"http_status\",run=\"r1\"}}")), Some(1.0));
        let p99 = of("holdup_response_time_seconds{operation=\"search\",quantile=\"0.99\",run=\"r1\"}").unwrap();
        assert!((p99 - 0.01).abs() < 2e-5, "{p99}");
        assert_eq!(of("holdup_response_time_seconds_count{operation=\"search\",run=\"r1\"}"), Some(200.0));
        let sum = of("holdup_response_time_seconds_sum{operation=\"search\",run=\"r1\"}").unwrap();
        assert!((sum - 2.0).abs() < 0.01, "{sum}");
        assert_eq!(of("holdup_offered_rate{run=\"r1\"}"), Some(110.0));
        assert_eq!(of(r#"holdup_phase_info{phase="110/s, \"first\"",run="r1"}"#), Some(1.0));
        assert!(!text.contains(r#"operation="order \"new\"",quantile"#), "nothing of it ended in time: {text}");
    }

    #[test]
    fn every_family_is_described_once_and_stays_together() {
        let text = text(&Meter::new(Vec::new()).at(&second(0, &[("timeout", 2)])));
        for Family { name, .. } in &FAMILIES {
            assert_eq!(text.matches(&format!("# TYPE {name} ")).count(), 1, "{name}");
        }
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
    }
}
