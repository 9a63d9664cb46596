//! What host and servers did on average over the judged stretch, as far as recorded: the rows that
//! `compare` puts side by side for two runs. It judges nothing.

mod volume;

use std::collections::BTreeMap;

use crate::case::Case;
use crate::verdict::{Reading, round};
use holdup_recording::metrics;
use holdup_signals::app::timing;
use holdup_signals::host::cpu::{CpuMode, CpuTime};
use holdup_signals::{View, Window};

/// Counters whose growth per second is an indicator: name, unit, metric, labels, whether more is
/// better.
type Rate = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)], Option<bool>);

/// These follow the load: by themselves neither more nor less is better.
const RATES: &[Rate] = &[
    (
        "on-disk temporary tables per second",
        "tables/s",
        metrics::mysql::GLOBAL_STATUS_CREATED_TMP_DISK_TABLES.name,
        &[],
        None,
    ),
    ("opened tables per second", "tables/s", metrics::mysql::GLOBAL_STATUS_OPENED_TABLES.name, &[], None),
    ("buffer pool reads per second", "reads/s", metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS.name, &[], None),
    ("major page faults per second", "faults/s", metrics::host::PAGING_FAULTS.name, &[("type", "major")], Some(false)),
    (
        "refaults of file pages per second",
        "pages/s",
        metrics::host::PAGING_REFAULTS.name,
        &[("type", "file")],
        Some(false),
    ),
    (
        "share of time in which something waited for I/O",
        "ratio",
        metrics::host::PRESSURE.name,
        &[("resource", "io"), ("kind", "some")],
        Some(false),
    ),
    (
        "share of time in which something waited for memory",
        "ratio",
        metrics::host::PRESSURE.name,
        &[("resource", "memory"), ("kind", "some")],
        Some(false),
    ),
    ("listen queue overflows per second", "connections/s", metrics::tcp::LISTEN_OVERFLOWS.name, &[], Some(false)),
    ("context switches per second", "switches/s", metrics::host::CONTEXT_SWITCHES.name, &[], None),
];

const SECOND_NS: i64 = 1_000_000_000;

/// Every indicator that was recorded.
pub fn collect(case: &Case<'_>) -> Vec<Reading> {
    let view = judged(case);
    let mut readings = Readings(Vec::new());
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], "").map_or(1.0, |g| g.mean.max(1.0));
    readings.load_averages(&view);
    for (name, state, more_is_better) in [
        ("threads in uninterruptible sleep (mean)", "D", Some(false)),
        ("threads running or runnable (mean)", "R", None),
    ] {
        if let Ok(threads) = view.gauge(metrics::host::THREADS.name, &[("state", state)], "") {
            readings.put(name, "threads", threads.mean, more_is_better);
        }
    }
    // What the load average would settle at: its minute still includes earlier load.
    let of_state = |state| view.gauge(metrics::host::THREADS.name, &[("state", state)], "").map(|threads| threads.mean);
    if let (Ok(running), Ok(asleep)) = (of_state("R"), of_state("D")) {
        let name = "threads running or in uninterruptible sleep (mean)";
        readings.put(name, "a CPU", (running + asleep) / cpus, Some(false));
    }
    if let Ok(cpu) = CpuTime::measure(&view) {
        for (name, mode, more_is_better) in
            [("idle CPU time", CpuMode::Idle, None), ("CPU time that waited for I/O", CpuMode::Iowait, Some(false))]
        {
            if cpu.counter(mode).is_some() {
                readings.put(name, "ratio", cpu.ratio(mode), more_is_better);
            }
        }
    }
    readings.disk(&view);
    volume::read(&view, &mut readings);
    readings.statements(&view);
    for (name, unit, metric, labels, more_is_better) in RATES {
        // The host's figures in a watched server's source must not be added to the host's own.
        let of_host = view.counter_where(|source| source == "host", metric, labels, "");
        if let Ok(counter) = of_host.or_else(|_| view.counter(metric, labels, "")) {
            readings.put(name, unit, counter.rate(), *more_is_better);
        }
    }
    let queue = view.gauge_where(|source| source == "host", metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[], "");
    if let Ok(queue) = queue.or_else(|_| view.gauge(metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[], "")) {
        readings.put("connections in accept queues (maximum)", "connections", queue.max, Some(false));
    }
    let throttled = view.counter(metrics::cgroup::CPU_THROTTLED_PERIODS.name, &[], "");
    if let (Ok(throttled), Ok(periods)) = (throttled, view.counter(metrics::cgroup::CPU_PERIODS.name, &[], "")) {
        let ratio = if periods.delta > 0.0 { throttled.delta / periods.delta } else { 0.0 };
        readings.put("throttled CPU periods", "ratio", ratio, Some(false));
    }
    if let Ok(kills) = view.counter(metrics::host::OUT_OF_MEMORY_KILLS.name, &[], "") {
        readings.put("processes killed for want of memory", "processes", kills.delta, Some(false));
    }
    readings.0
}

/// The episode, or without one the time in which requests were due.
fn judged<'c>(case: &'c Case<'_>) -> View<'c> {
    let seconds = &case.client.seconds;
    match (&case.degradation, seconds.first(), seconds.last()) {
        (None, Some(first), Some(last)) => case.view(Window { from: first.window.from, to: last.window.to }),
        _ => case.slow(),
    }
}

struct Readings(Vec<Reading>);

impl Readings {
    fn put(&mut self, indicator: &str, unit: &str, value: f64, more_is_better: Option<bool>) {
        let digits = if unit == "ratio" { 4 } else { 2 };
        self.0.push(Reading {
            indicator: indicator.to_owned(),
            unit: unit.to_owned(),
            value: round(value, digits),
            more_is_better,
        });
    }

    /// Each machine's, by its own CPUs. The sum over machines, or an average of another length, is another figure.
    fn load_averages(&mut self, view: &View<'_>) {
        let sources = view.sources_of(metrics::host::LOAD_AVERAGE_1M.name);
        for source in &sources {
            let of = |metric| view.gauge_where(|other| other == *source, metric, &[], "");
            let Ok(load) = of(metrics::host::LOAD_AVERAGE_1M.name) else { continue };
            let cpus = of(metrics::host::CPU_LOGICAL_COUNT.name).map_or(1.0, |cpus| cpus.mean.max(1.0));
            let whose = if sources.len() > 1 { format!(" of {source}") } else { String::new() };
            self.put(&format!("load average{whose} (1 minute, maximum)"), "a CPU", load.max / cpus, Some(false));
        }
    }

    /// Statements that ended, by the app's count; else those that began, by the server's, including holdup's
    /// own. The mean, and the most of any second.
    fn statements(&mut self, view: &View<'_>) {
        let ended = format!("{}_count", timing::OPERATION);
        let counts = [ended.as_str(), metrics::mysql::GLOBAL_STATUS_QUESTIONS.name];
        let counted = counts.into_iter().find_map(|metric| Some((metric, view.counter(metric, &[], "").ok()?)));
        let Some((metric, counter)) = counted else { return };
        self.put("statements per second", "statements/s", counter.rate(), Some(true));
        let mut by_second: BTreeMap<i64, f64> = BTreeMap::new();
        // Two reads close together say little of a second.
        let growths = view.growths(|_| true, metric, &[]).into_iter().filter(|growth| growth.window.seconds() >= 0.5);
        for growth in growths {
            let first = growth.window.from.div_euclid(SECOND_NS);
            let middles = (first..=growth.window.to.div_euclid(SECOND_NS))
                .map(|second| (second, second * SECOND_NS + SECOND_NS / 2));
            for (second, _) in middles.filter(|(_, middle)| growth.window.contains(*middle)) {
                *by_second.entry(second).or_default() += growth.rate();
            }
        }
        if let Some(most) = by_second.into_values().reduce(f64::max) {
            self.put("statements per second (maximum)", "statements/s", most, Some(true));
        }
    }

    /// The device with the longest queue, which may differ from run to run.
    fn disk(&mut self, view: &View<'_>) {
        let busiest = view
            .label_values(metrics::host::DISK_WEIGHTED_IO_TIME.name, "device")
            .into_iter()
            .filter_map(|device| {
                let labels = [("device", device.as_str())];
                let queue = view.counter(metrics::host::DISK_WEIGHTED_IO_TIME.name, &labels, "").ok()?.rate();
                Some((device, queue))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((device, queue)) = busiest else { return };
        let labels = [("device", device.as_str())];
        let rate = |metric| view.counter(metric, &labels, "").map(|c| c.rate());
        if let Ok(utilization) = rate(metrics::host::DISK_IO_TIME.name) {
            self.put("busiest disk, utilization", "ratio", utilization.min(1.0), None);
        }
        self.put("busiest disk, queue", "requests", queue, Some(false));
        let operations = rate(metrics::host::DISK_OPERATIONS.name);
        if let Ok(bytes) = rate(metrics::host::DISK_IO_BYTES.name) {
            self.put("busiest disk, throughput", "MB/s", bytes / 1e6, None);
            if let Ok(operations) = operations.as_ref().copied()
                && operations > 0.0
            {
                self.put("busiest disk, size of a request", "KiB", bytes / operations / 1024.0, None);
            }
        }
        if let (Ok(operations), Ok(time)) = (operations, rate(metrics::host::DISK_OPERATION_TIME.name)) {
            self.put("busiest disk, operations", "operations/s", operations, None);
            if operations > 0.0 {
                self.put("busiest disk, wait of a request", "ms", time / operations * 1e3, Some(false));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    fn of(made: &SyntheticRecording, name: &str) -> Option<f64> {
        made.with(|case| {
            collect(case).into_iter().find(|reading| reading.indicator == name).map(|reading| reading.value)
        })
    }

    #[test]
    fn the_most_statements_of_a_second_stand_beside_their_mean() {
        // 1,000 a second, and 3,000 in one.
        let count = |s: i64| 1_000.0 * s as f64 + if s >= 6 { 2_000.0 } else { 0.0 };
        let made = SyntheticRecording::new(12).requests(50, 400).counted(
            "mysql://db",
            "mysql_global_status_questions",
            &[],
            count,
        );
        assert_eq!(of(&made, "statements per second (maximum)"), Some(3_000.0));
        assert!(of(&made, "statements per second").is_some_and(|mean| (1_100.0..1_250.0).contains(&mean)));
        assert_eq!(of(&SyntheticRecording::new(12).requests(50, 400), "statements per second (maximum)"), None);
    }

    #[test]
    fn load_averages_of_several_machines_are_not_added_up() {
        let load = |made: SyntheticRecording, source, of, cpus| {
            made.gauge(source, "system_load_average_1m", &[], of).gauge(source, "system_cpu_logical_count", &[], cpus)
        };
        let one = load(SyntheticRecording::new(12).requests(50, 400), "host", 28.0, 14.0);
        assert_eq!(of(&one, "load average (1 minute, maximum)"), Some(2.0));
        let two = load(one, "node:db2", 8.0, 4.0);
        assert_eq!(of(&two, "load average of host (1 minute, maximum)"), Some(2.0));
        assert_eq!(of(&two, "load average of node:db2 (1 minute, maximum)"), Some(2.0));
        assert_eq!(of(&two, "load average (1 minute, maximum)"), None);
    }
}
