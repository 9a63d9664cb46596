//! Charts of a recording, all on one time axis: seconds from its start.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdup_diagnose::{ClientView, Diagnosis};
use holdup_recording::condensed::Condensed;
use holdup_recording::{Recording, metrics};
use holdup_signals::time::requests::failed;
use serde::Serialize;

mod database;
mod layers;
mod marks;
mod overview;
mod service;
mod stages;
mod volume;

pub use marks::{Mark, marks};
pub use overview::{Lane, overview};

/// One chart; its counterpart is `Chart` in `web/src/model.ts`.
#[derive(Serialize)]
pub struct Chart {
    /// Unique among the charts of a recording.
    pub id: &'static str,
    title: &'static str,
    /// The unit of all values.
    pub unit: &'static str,
    log: bool,
    series: Vec<Series>,
}

impl Chart {
    /// The instants (seconds from the recording's start) and values of one series.
    pub fn points(&self, series: usize) -> Option<(&[f64], &[Option<f64>])> {
        self.series.get(series).map(|s| (s.x_s.as_slice(), s.y.as_slice()))
    }
}

/// A chart with an axis from 0.
fn chart(id: &'static str, title: &'static str, unit: &'static str, series: Vec<Series>) -> Chart {
    Chart { id, title, unit, log: false, series }
}

/// A chart with a logarithmic axis.
fn log_chart(id: &'static str, title: &'static str, unit: &'static str, series: Vec<Series>) -> Chart {
    Chart { log: true, ..chart(id, title, unit, series) }
}

#[derive(Serialize)]
struct Series {
    name: String,
    x_s: Vec<f64>,
    y: Vec<Option<f64>>,
    style: &'static str,
}

/// The chart that shows a piece of evidence, by its table and the prefix of its column or metric.
const SHOWN: &[(&str, &str, &str)] = &[
    ("requests", "sent_at", "generator"),
    ("requests", "ready_at", "generator"),
    ("requests", "done_at", "response"),
    ("statements", "", "statements"),
    ("plans", "", "plans"),
    ("sessions", "", "sessions"),
    ("samples", "holdup_load_requests_offered", "rate"),
    ("samples", "holdup_load_busy_", "generator_time"),
    ("samples", "holdup_load_cpu_", "generator_time"),
    ("samples", "holdup_load_run_queue_", "generator_time"),
    ("samples", "holdup_load_throttled_", "generator_time"),
    ("samples", "holdup_load_", "generator"),
    ("samples", "db_client_connection_", "pool"),
    ("samples", "db_client_operation_", "app"),
    ("samples", "http_", "app"),
    ("samples", "tcp_listen_", "refused"),
    ("samples", "tcp_accept_queue_", "accept_queue"),
    ("samples", "server_outgoing_", "neighbours"),
    ("samples", "server_thread_cpu_", "service_cpu"),
    ("samples", "server_memory_", "memory"),
    ("samples", "server_", "workers"),
    ("samples", "puma_", "workers"),
    ("samples", "uwsgi_", "workers"),
    ("samples", "php_fpm_", "workers"),
    ("samples", "tomcat_threads_", "workers"),
    ("samples", "kafka_", "stage_lag"),
    ("samples", "probe_", "probes"),
    ("samples", "cgroup_cpu_usage_", "service_cpu"),
    ("samples", "cgroup_cpu_", "throttling"),
    ("samples", "cgroup_memory_", "memory"),
    ("samples", "mysql_thread_pool_", "thread_pool"),
    ("samples", "mysql_", "sessions"),
    ("samples", "system_cpu_", "cpu"),
    ("samples", "process_run_queue_", "cpu"),
    ("samples", "system_disk_io_bytes_", "disk_bytes"),
    ("samples", "system_disk_", "disk"),
    ("samples", metrics::postgresql::STAT_TABLES_N_DEAD_TUP.name, "dead_rows"),
    ("samples", metrics::process::THREADS.name, "disk"),
    ("samples", "system_load_", "load_average"),
    ("samples", metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, "volume"),
    ("samples", metrics::aws::READ_IOPS.name, "volume_operations"),
    ("samples", metrics::aws::DISK_QUEUE_DEPTH.name, "volume_queue"),
];

/// Links every piece of evidence of `diagnosis` to the chart that shows it.
pub fn link(diagnosis: &mut Diagnosis, charts: &[Chart]) {
    let found = diagnosis.findings.iter_mut().chain(diagnosis.next.iter_mut()).flat_map(|f| &mut f.evidence);
    for evidence in found.chain(diagnosis.cleared.iter_mut().flat_map(|c| &mut c.evidence)) {
        let name = evidence.labels.get("metric").unwrap_or(&evidence.column);
        let shown = SHOWN.iter().find(|(table, begin, _)| evidence.table == *table && name.starts_with(begin));
        evidence.chart = shown.map(|(.., id)| (*id).to_owned()).filter(|id| charts.iter().any(|c| c.id == id));
    }
}

/// Series with more points are thinned out, because screens cannot show more.
const MOST_POINTS: usize = 2_000;

/// All charts that have data, in the order in which a request meets what they show. Of a recording
/// that was read in part they show the course; single statements and plans are those of the part.
pub fn charts(recording: &Recording) -> Vec<Chart> {
    let course = recording.course().unwrap_or(recording);
    let start = recording.manifest.started_at;
    let plot = Plot { recording: course, condensed: condensed(course), stretch: recording, start };
    let layers = [
        layers::load_charts(&plot),
        layers::service_charts(&plot),
        layers::app_charts(&plot),
        plot.stage_charts(),
        layers::database_charts(&plot),
        layers::host_charts(&plot),
        plot.volume(),
    ];
    layers.into_iter().flatten().filter(|c| c.series.iter().any(|s| s.y.iter().any(Option::is_some))).collect()
}

/// Samples and statements of a recording, opened with or without its rows.
fn condensed(recording: &Recording) -> Arc<Condensed> {
    recording.tables.condensed.clone().unwrap_or_else(|| Arc::new(recording.tables.condense()))
}

struct Plot<'a> {
    recording: &'a Recording,
    condensed: Arc<Condensed>,
    /// What was read in full: the recording itself, or a part of it.
    stretch: &'a Recording,
    start: i64,
}

type Points = Vec<(i64, Option<f64>)>;

/// A wanted series: its name, metric and labels.
type SeriesSelector<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

impl Plot<'_> {
    fn series(&self, name: &str, points: Points) -> Series {
        let step = points.len().div_ceil(MOST_POINTS).max(1);
        let points = points.into_iter().step_by(step);
        let (x_s, y) = points
            .map(|(at, y)| ((at - self.start) as f64 / 1e9, y.map(|v| (v * 1e4).round() / 1e4)))
            .map(|(x, y)| ((x * 1e3).round() / 1e3, y))
            .unzip();
        Series { name: name.to_owned(), x_s, y, style: "line" }
    }

    fn samples(&self, metric: &str, labels: &[(&str, &str)]) -> BTreeMap<(&str, String), Vec<(i64, f64)>> {
        let all = self.condensed.series.by_metric.get(metric).into_iter().flatten();
        let matching = all.filter(|((_, of), _)| of.contains(labels));
        matching.map(|((source, of), points)| ((source.as_str(), of.to_string()), points.clone())).collect()
    }

    /// A gauge, summed over its series at each instant.
    fn gauges(&self, wanted: &[SeriesSelector<'_>]) -> Vec<Series> {
        let mut all = Vec::new();
        for (name, metric, labels) in wanted {
            let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
            for (at, value) in self.samples(metric, labels).into_values().flatten() {
                *sums.entry(at).or_default() += value;
            }
            if !sums.is_empty() {
                all.push(self.series(name, sums.into_iter().map(|(at, v)| (at, Some(v))).collect()));
            }
        }
        all
    }

    /// Growth of a counter between samples, summed over its series; a drop leaves a gap.
    fn growth(&self, metric: &str, labels: &[(&str, &str)]) -> BTreeMap<i64, (f64, f64)> {
        let mut grown: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for series in self.samples(metric, labels).into_values() {
            for pair in series.windows(2) {
                let ((a_at, a), (b_at, b)) = (pair[0], pair[1]);
                if b >= a && b_at > a_at {
                    let entry = grown.entry(b_at).or_insert((0.0, (b_at - a_at) as f64 / 1e9));
                    entry.0 += b - a;
                }
            }
        }
        grown
    }

    fn means(&self, wanted: &[(&str, &str)]) -> Vec<Series> {
        let mut all = Vec::new();
        for (name, metric) in wanted {
            let sums = self.growth(&format!("{metric}_sum"), &[]);
            let counts = self.growth(&format!("{metric}_count"), &[]);
            let points: Points = sums
                .iter()
                .map(|(at, (sum, _))| {
                    let count = counts.get(at).map_or(0.0, |(c, _)| *c);
                    (*at, (count > 0.0).then(|| sum / count * 1e3))
                })
                .collect();
            if points.iter().any(|(_, y)| y.is_some()) {
                all.push(self.series(name, points));
            }
        }
        all
    }

    fn rate_by_label(&self, metric: &str, label: &str) -> Vec<Series> {
        let mut values: Vec<String> = self
            .samples(metric, &[])
            .into_keys()
            .filter_map(|(_, labels)| holdup_recording::Labels::from(labels.as_str()).get(label).map(str::to_owned))
            .collect();
        values.sort_unstable();
        values.dedup();
        values
            .iter()
            .map(|value| {
                let grown = self.growth(metric, &[(label, value.as_str())]);
                self.series(
                    value,
                    grown.into_iter().map(|(at, (delta, seconds))| (at, Some(delta / seconds))).collect(),
                )
            })
            .collect()
    }

    /// The share of its time that each loop of the generator was awake, waited for a CPU, or was
    /// throttled.
    fn own_time(&self) -> Vec<Series> {
        let mut all = Vec::new();
        for (what, metric) in [
            ("awake", metrics::load::BUSY),
            ("waiting for a CPU", metrics::load::RUN_QUEUE),
            ("out of quota", metrics::load::THROTTLED),
        ] {
            for ((_, labels), series) in self.samples(metric.name, &[]) {
                let of_loop = holdup_recording::Labels::from(labels.as_str());
                let name = of_loop.get("loop").map_or_else(|| what.to_owned(), |l| format!("{what}, loop {l}"));
                let growth = series.windows(2).filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1);
                let points = growth.map(|p| (p[1].0, Some((p[1].1 - p[0].1) / ((p[1].0 - p[0].0) as f64 / 1e9))));
                all.push(self.series(&name, points.collect()));
            }
        }
        all
    }

    fn cpu(&self) -> Vec<Series> {
        let metric = metrics::host::CPU_TIME.name;
        let all = self.growth(metric, &[]);
        ["user", "system", "iowait", "steal", "idle"]
            .iter()
            .map(|mode| {
                let points = self.growth(metric, &[("cpu_mode", mode)]).into_iter().map(|(at, (delta, _))| {
                    let total = all.get(&at).map_or(0.0, |(t, _)| *t);
                    (at, (total > 0.0).then(|| delta / total))
                });
                self.series(mode, points.collect())
            })
            .filter(|s| !s.y.is_empty())
            .collect()
    }

    fn rates(&self) -> Vec<Series> {
        let requests = &self.recording.tables.requests.rows;
        let (Some(first), Some(last)) =
            (requests.iter().map(|r| r.intended_at).min(), requests.iter().map(|r| r.done_at).max())
        else {
            return Vec::new();
        };
        let mut by_second: BTreeMap<i64, [f64; 3]> =
            (0..=(last - first) / 1_000_000_000).map(|s| (first + s * 1_000_000_000, [0.0; 3])).collect();
        let second = |at: i64| first + (at - first) / 1_000_000_000 * 1_000_000_000;
        for request in requests {
            if let Some(counts) = by_second.get_mut(&second(request.intended_at)) {
                counts[0] += request.count() as f64;
            }
            if let Some(counts) = by_second.get_mut(&second(request.done_at)) {
                let count = request.count() as f64;
                counts[1] += if request.outcome == "ok" { count } else { 0.0 };
                counts[2] += if failed(request) { count } else { 0.0 };
            }
        }
        ["offered", "achieved", "errors"]
            .iter()
            .enumerate()
            .map(|(i, name)| self.series(name, by_second.iter().map(|(at, counts)| (*at, Some(counts[i]))).collect()))
            .collect()
    }

    fn latency(&self) -> Vec<Series> {
        let seconds = ClientView::from_requests(&self.recording.tables.requests.rows).seconds;
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)]
            .iter()
            .map(|(name, q)| self.series(name, seconds.iter().map(|s| (s.window.from, s.quantile(*q))).collect()))
            .filter(|s| !s.y.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The charts of a report.
    fn drawn(recording: &Recording) -> String {
        serde_json::to_string(&(charts(recording), marks(recording))).unwrap()
    }

    #[test]
    fn a_recording_without_its_rows_is_drawn_as_one_with_them() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        for name in ["limits-memory", "hidden-queue-accounts", "uninterruptible-faulty", "worker-capacity-faulty"] {
            let dir = fixtures.join(name);
            let (with, without) = (Recording::open(&dir).unwrap(), Recording::open_condensed(&dir).unwrap());
            assert!(!with.tables.samples.rows.is_empty() && without.tables.samples.rows.is_empty(), "{name}");
            assert!(charts(&without).len() > 5, "{name}");
            assert_eq!(drawn(&with), drawn(&without), "{name}");
        }
    }
}
