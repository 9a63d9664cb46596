//! Charts of the server itself, as seen from outside and as it reports: workers, accept queue,
//! calls to downstream services, CPU and memory.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::{Labels, metrics};

use super::{Plot, Points, Series};

/// Samples further apart than this belong to different reads of a source, in nanoseconds.
const ONE_READING_NS: i64 = 200_000_000;

/// Metrics of busy workers and of their limit; empty if another series has the limit.
const WORKERS: &[(&str, &str)] = &[
    (metrics::uwsgi::WORKER_BUSY.name, ""),
    (metrics::php_fpm::ACTIVE_PROCESSES.name, metrics::php_fpm::TOTAL_PROCESSES.name),
    ("tomcat_threads_busy_threads", "tomcat_threads_config_max_threads"),
    ("jetty_threads_busy", "jetty_threads_config_max"),
];

/// Metrics of a service's CPU time, the most specific first; each source shows one of them. A process
/// may share its cgroup with others, and in the root with the whole machine: its own figures come first.
const CPU_TIMES: &[&str] =
    &[metrics::server::THREAD_CPU_TIME.name, metrics::process::CPU_TIME.name, metrics::cgroup::CPU_USAGE.name];

/// Metrics of a service's memory, in the same order.
const MEMORIES: &[&str] = &[
    metrics::server::MEMORY_USAGE_BYTES.name,
    metrics::process::MEMORY_USAGE_BYTES.name,
    metrics::cgroup::MEMORY_USAGE_BYTES.name,
];

/// The machine itself has separate charts.
const MACHINE: &str = "host";

impl Plot<'_> {
    /// A metric by source, summed over its series at each read. A series that has ended no longer
    /// counts.
    fn readings(&self, metric: &str, labels: &[(&str, &str)]) -> BTreeMap<&str, Vec<(i64, f64)>> {
        let mut by_source: BTreeMap<&str, Vec<Vec<(i64, f64)>>> = BTreeMap::new();
        for ((source, _), points) in self.samples(metric, labels) {
            by_source.entry(source).or_default().push(points);
        }
        by_source.into_iter().map(|(source, points)| (source, summed(points))).collect()
    }

    /// Growth per second of a counter by source, summed over its series. A drop, i.e. a restart of
    /// the process, leaves a gap.
    fn rates_by_source(&self, metric: &str) -> BTreeMap<&str, Vec<(i64, f64)>> {
        let mut by_source: BTreeMap<&str, Vec<Vec<(i64, f64)>>> = BTreeMap::new();
        for ((source, _), points) in self.samples(metric, &[]) {
            let grown = points.windows(2).filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1);
            let rates = grown.map(|pair| (pair[1].0, (pair[1].1 - pair[0].1) / ((pair[1].0 - pair[0].0) as f64 / 1e9)));
            by_source.entry(source).or_default().push(rates.collect());
        }
        by_source.into_iter().map(|(source, points)| (source, summed(points))).collect()
    }

    fn series_of(&self, name: &str, points: Vec<(i64, f64)>) -> Series {
        self.series(name, points.into_iter().map(|(at, value)| (at, Some(value))).collect())
    }

    /// Busy workers and their limit, as the server reports them; then the connections it is
    /// answering.
    pub(super) fn workers(&self) -> Vec<Series> {
        let mut all = Vec::new();
        // Puma's `running` counts its threads; its remaining capacity says how many of them are
        // free.
        let mut free = self.readings(metrics::puma::POOL_CAPACITY.name, &[]);
        for (source, most) in self.readings(metrics::puma::MAX_THREADS.name, &[]) {
            let free = free.remove(source).unwrap_or_default();
            let busy = most.iter().zip(free).map(|((at, most), (_, free))| (*at, (most - free).max(0.0)));
            all.push(self.series_of("busy", busy.collect()));
            all.push(self.series_of("at most", most));
        }
        for (busy, most) in WORKERS {
            all.extend(self.readings(busy, &[]).into_values().map(|points| self.series_of("busy", points)));
            all.extend(self.readings(most, &[]).into_values().map(|points| self.series_of("at most", points)));
        }
        for (name, metric) in [
            ("connections answered", metrics::server::ANSWERING_CONNECTIONS.name),
            ("connections accepted", metrics::server::ACCEPTED_CONNECTIONS.name),
        ] {
            all.extend(self.readings(metric, &[]).into_values().map(|points| self.series_of(name, points)));
        }
        all
    }

    /// Connections waiting to be accepted, and the limit, for ports where any waited.
    pub(super) fn accept_queue(&self) -> Vec<Series> {
        let (mut all, mut drawn) = (Vec::new(), Vec::new());
        for ((source, labels), waiting) in self.samples(metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[]).into_iter().rev() {
            let port = Labels::from(labels.as_str()).get("port").unwrap_or_default().to_owned();
            // `host` also sees the port of a server that is watched by itself. In reverse order
            // `server:` comes first.
            if waiting.iter().all(|(_, n)| *n == 0.0) && source == MACHINE || drawn.contains(&port) {
                continue;
            }
            all.push(self.series_of(&format!("waiting, port {port}"), waiting));
            let limit = self.samples(metrics::tcp::ACCEPT_QUEUE_LIMIT.name, &[("port", &port)]);
            let of_source = limit.into_iter().find(|((of, _), _)| *of == source);
            all.extend(of_source.map(|(_, points)| self.series_of(&format!("at most, port {port}"), points)));
            drawn.push(port);
        }
        all
    }

    /// Connections that found an accept queue full, by port; only if there were any.
    pub(super) fn refused(&self) -> Vec<Series> {
        let rates = self.rates_by_source(metrics::tcp::LISTEN_OVERFLOWS.name).into_iter();
        let some = rates.filter(|(_, points)| points.iter().any(|(_, rate)| *rate > 0.0));
        some.map(|(source, points)| self.series_of(source, points)).collect()
    }

    /// Open calls to each downstream service.
    pub(super) fn downstream_calls(&self) -> Vec<Series> {
        let mut by_port: BTreeMap<String, Vec<Vec<(i64, f64)>>> = BTreeMap::new();
        for ((_, labels), points) in self.samples(metrics::server::OUTGOING_PENDING_CONNECTIONS.name, &[]) {
            let labels = Labels::from(labels.as_str());
            let port = labels.get("peer_port").unwrap_or_default().to_owned();
            by_port.entry(port).or_default().push(points);
        }
        by_port.into_iter().map(|(port, points)| self.series_of(&port, summed(points))).collect()
    }

    /// Durations of probes; a failed one leaves a gap here and becomes a mark.
    pub(super) fn probes(&self) -> Vec<Series> {
        let mut all = Vec::new();
        let succeeded = self.samples(metrics::probe::SUCCESS.name, &[]);
        for ((source, labels), took) in self.samples(metrics::probe::DURATION.name, &[]) {
            let of = succeeded.get(&(source, labels));
            let ended = |i: usize| of.and_then(|points| points.get(i)).is_none_or(|(_, ok)| *ok > 0.0);
            let points: Points =
                took.iter().enumerate().map(|(i, (at, seconds))| (*at, ended(i).then_some(seconds * 1e3))).collect();
            all.push(Series { style: "points", ..self.series(source, points) });
        }
        all
    }

    /// The share of a quota's periods that were throttled.
    pub(super) fn throttling(&self) -> Vec<Series> {
        let mut throttled = self.rates_by_source(metrics::cgroup::CPU_THROTTLED_PERIODS.name);
        let periods = self.rates_by_source(metrics::cgroup::CPU_PERIODS.name).into_iter();
        let shares = periods.filter_map(|(source, periods)| {
            let throttled = throttled.remove(source)?;
            let share =
                periods.iter().zip(throttled).map(|((at, all), (_, some))| (*at, (*all > 0.0).then(|| some / all)));
            Some(self.series(source, share.collect()))
        });
        shares.collect()
    }

    pub(super) fn cpus_used(&self) -> Vec<Series> {
        self.nearest(CPU_TIMES, |metric| self.rates_by_source(metric))
    }

    pub(super) fn memory(&self) -> Vec<Series> {
        self.nearest(MEMORIES, |metric| self.readings(metric, &[]))
    }

    /// For each source except the machine, the first of `metrics` that it has.
    fn nearest<'p>(
        &'p self,
        metrics: &[&str],
        read: impl Fn(&str) -> BTreeMap<&'p str, Vec<(i64, f64)>>,
    ) -> Vec<Series> {
        let mut by_source: BTreeMap<&str, Vec<(i64, f64)>> = BTreeMap::new();
        for metric in metrics {
            for (source, points) in read(metric) {
                if source != MACHINE && !points.is_empty() {
                    by_source.entry(source).or_insert(points);
                }
            }
        }
        by_source.into_iter().map(|(source, points)| self.series_of(source, points)).collect()
    }
}

/// Sums the series of each read, at the instant of its first value. A series has one value per
/// read.
fn summed(series: Vec<Vec<(i64, f64)>>) -> Vec<(i64, f64)> {
    let numbered = series.into_iter().enumerate();
    let mut points: Vec<(i64, usize, f64)> =
        numbered.flat_map(|(i, points)| points.into_iter().map(move |(at, value)| (at, i, value))).collect();
    points.sort_by_key(|(at, i, _)| (*at, *i));
    let mut sums: Vec<(i64, f64)> = Vec::new();
    let mut read = BTreeSet::new();
    for (at, i, value) in points {
        match sums.last_mut() {
            Some((first, sum)) if at - *first <= ONE_READING_NS && read.insert(i) => *sum += value,
            _ => {
                sums.push((at, value));
                read = BTreeSet::from([i]);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_summed_per_read_until_they_end() {
        let ms = |at: i64| at * 1_000_000;
        let ended = vec![(ms(0), 5.0), (ms(500), 5.0)];
        let stays = vec![(ms(3), 4.0), (ms(502), 4.0), (ms(1_000), 2.0), (ms(1_050), 3.0)];
        let sums = [(ms(0), 9.0), (ms(500), 9.0), (ms(1_000), 2.0), (ms(1_050), 3.0)];
        assert_eq!(summed(vec![ended, stays]), sums, "the last sample comes at once after the one before");
    }
}
