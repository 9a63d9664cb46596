//! The load average, explained: the threads that were running, runnable or in uninterruptible sleep
//! meanwhile, by process and by kernel function; whether it rises or falls; and the 1-minute figure
//! recomputed from the samples and compared with the kernel's own.
//!
//! It judges nothing: `rules/uninterruptible_pileup.rs` decides whether such threads delay
//! requests.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::verdict::{HostLoad, HostLoadPart, round};
use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::host::cpu::{CpuMode, CpuTime};
use holdup_signals::view::stretches::within;
use holdup_signals::{View, Window};

/// Seconds between two updates of the kernel's figure (`LOAD_FREQ` in
/// `include/linux/sched/loadavg.h`: 5 s and one tick).
const TICK_SECONDS: f64 = 5.0;

/// The part of the 1-minute figure that survives each update: exp(-5 s / 60 s), in the kernel's
/// fixed point 1884 of 2048 (`EXP_1` in `include/linux/sched/loadavg.h`).
const KEPT_1M: f64 = 1884.0 / 2048.0;

/// A change of less than this share of the larger figure is steady.
const STEADY_RATIO: f64 = 0.1;

/// ... and so is one of less than this per CPU, however large its share.
const STEADY_PER_CPU: f64 = 0.1;

/// Most places of threads to list.
const PARTS: usize = 12;

/// Explains the load average of the watched host; none if it was not recorded.
pub fn explain(case: &Case<'_>) -> Option<HostLoad> {
    let whole = case.view(case.whole());
    let readable = whole.recording.tables.samples.with_columns(&["observed_at", "metric", "labels", "value"]).is_ok();
    let kernel = series(&whole, metrics::host::LOAD_AVERAGE_1M.name, &[]);
    let (first, last) = (*kernel.first()?, *kernel.last()?);
    let at_end = |metric| series(&whole, metric, &[]).last().map_or(0.0, |(_, value)| *value);
    let load_average =
        [last.1, at_end(metrics::host::LOAD_AVERAGE_5M.name), at_end(metrics::host::LOAD_AVERAGE_15M.name)];
    let cpus = at_end(metrics::host::CPU_LOGICAL_COUNT.name);
    if !readable || cpus < 1.0 {
        return None;
    }
    let load_1m_max = kernel.iter().map(|(_, value)| *value).fold(0.0, f64::max);

    let view = case.slow();
    let [running, asleep] = ["R", "D"].map(|state| series(&whole, metrics::host::THREADS.name, &[("state", state)]));
    let mean = |of: &[(i64, f64)]| {
        let within: Vec<f64> = of.iter().filter(|(at, _)| view.window.contains(*at)).map(|(_, v)| *v).collect();
        if within.is_empty() { 0.0 } else { within.iter().sum::<f64>() / within.len() as f64 }
    };
    let (runnable, uninterruptible) = (mean(&running), mean(&asleep));
    let idle = idle(&view);
    let parts = parts(&view, runnable, uninterruptible);
    let active = added(&running, &asleep);
    let reconstructed_1m = replay(&kernel, &active).unwrap_or(last.1);
    let trend = trend(first.1, last.1, load_average, cpus);
    let seen = !active.is_empty();
    let mut load = HostLoad {
        text: String::new(),
        load_average: load_average.map(|v| round(v, 2)),
        load_1m_start: round(first.1, 2),
        load_1m_max: round(load_1m_max, 2),
        cpus,
        per_cpu_max: round(load_1m_max / cpus, 2),
        trend: trend.to_owned(),
        idle_ratio: idle.map(|(idle, _)| round(idle, 3)),
        iowait_ratio: idle.map(|(_, iowait)| round(iowait, 3)),
        runnable: round(runnable, 1),
        uninterruptible: round(uninterruptible, 1),
        reconstructed_1m: round(reconstructed_1m, 2),
        parts,
    };
    let unseen = || disk_root(&view, &load).unwrap_or_else(|| "which threads caused it was not recorded".to_owned());
    load.text = sentence(&load, (!seen).then(unseen).as_deref());
    Some(load)
}

/// Times and values of `metric` with `labels` in time order; series of one instant are added up.
fn series(view: &View<'_>, metric: &str, labels: &[(&str, &str)]) -> Vec<(i64, f64)> {
    let mut by_time = BTreeMap::<i64, f64>::new();
    for (_, samples) in view.index.series(metric, labels) {
        for (at, value) in samples.iter().filter(|(at, _)| view.window.contains(*at)) {
            *by_time.entry(*at).or_default() += value;
        }
    }
    by_time.into_iter().collect()
}

/// Two series that are read together, added up; an instant missing in one counts as zero there.
fn added(a: &[(i64, f64)], b: &[(i64, f64)]) -> Vec<(i64, f64)> {
    let mut sum = BTreeMap::<i64, f64>::new();
    for (at, value) in a.iter().chain(b) {
        *sum.entry(*at).or_default() += value;
    }
    sum.into_iter().collect()
}

/// Shares (0-1) of CPU time that was idle, and idle with I/O in flight; none if it was not recorded.
fn idle(view: &View<'_>) -> Option<(f64, f64)> {
    let cpu = CpuTime::measure(view).ok()?;
    cpu.counter(CpuMode::Idle).map(|_| (cpu.ratio(CpuMode::Idle), cpu.ratio(CpuMode::Iowait)))
}

/// The 1-minute figure at the end, starting from the first value of `kernel` and driven by the
/// `active` threads: at each of the kernel's updates it keeps [`KEPT_1M`] of itself and takes the
/// rest from the number of active threads (`calc_load` in `kernel/sched/loadavg.c`). The updates
/// are where the kernel's figure changes. The number is the mean of the samples around one, because
/// a single sample of a jumping number says little.
fn replay(kernel: &[(i64, f64)], active: &[(i64, f64)]) -> Option<f64> {
    let (start, end) = (kernel.first()?, kernel.last()?);
    let step = (TICK_SECONDS * 1e9) as i64;
    let changed = kernel.windows(2).find(|pair| pair[0].1 != pair[1].1);
    let mut tick = changed.map_or(start.0 + step / 2, |pair| pair[0].0 + (pair[1].0 - pair[0].0) / 2);
    let mut load = start.1;
    active.first()?;
    while tick <= end.0 {
        let near = within(active, Window { from: tick - step / 2, to: tick + step / 2 + 1 });
        // Without samples around an update, the figure itself is the best guess.
        let threads = if near.is_empty() { load } else { near.iter().map(|(_, n)| n).sum::<f64>() / near.len() as f64 };
        load = load * KEPT_1M + threads * (1.0 - KEPT_1M);
        tick += step;
    }
    Some(load)
}

/// `rising`, `falling` or `steady`: over the run, or if it did not move there, over the last
/// minutes.
fn trend(first: f64, last: f64, [one, five, fifteen]: [f64; 3], cpus: f64) -> &'static str {
    let moved = |from: f64, to: f64| (to - from).abs() > (STEADY_RATIO * from.max(to)).max(STEADY_PER_CPU * cpus);
    let pairs = [(first, last), (five, one), (fifteen, five)];
    match pairs.into_iter().find(|(from, to)| moved(*from, *to)) {
        Some((from, to)) if to > from => "rising",
        Some(_) => "falling",
        None => "steady",
    }
}

/// Threads by place, most first: those in uninterruptible sleep from the host's rows, else from
/// watched processes; runnable ones by watched process, and the rest.
fn parts(view: &View<'_>, runnable: f64, uninterruptible: f64) -> Vec<HostLoadPart> {
    let needed = &["observed_at", "source", "process", "state", "wchan"];
    let Ok(rows) = view.recording.tables.threads.with_columns(needed) else { return Vec::new() };
    let within = |at: i64| view.window.contains(at);
    let by_host = rows.iter().any(|r| r.source == "host" && r.state == "D" && within(r.observed_at));
    let instants = |metric, state| series(view, metric, &[("state", state)]).len().max(1) as f64;
    let of_host = instants(metrics::host::THREADS.name, "D");
    let mut threads = BTreeMap::<(String, &str, Option<String>), f64>::new();
    for row in rows.iter().filter(|r| within(r.observed_at) && (r.state == "D" || r.state == "R")) {
        let is_host = row.source == "host";
        if is_host && row.state == "R" || row.state == "D" && is_host != by_host {
            continue;
        }
        let samples = if is_host { of_host } else { source_instants(view, &row.source).max(1) as f64 };
        let state = if row.state == "D" { "D" } else { "R" };
        let place = (state == "D").then(|| row.wchan.clone().or_else(|| innermost(row.stack.as_deref()))).flatten();
        *threads.entry((row.process.clone(), state, place)).or_default() += row.count() as f64 / samples;
    }
    let total = |wanted: &str| threads.iter().filter(|((_, s, _), _)| *s == wanted).map(|(_, n)| n).sum::<f64>();
    let rest = [("R", runnable - total("R")), ("D", uninterruptible - total("D"))];
    let mut parts: Vec<HostLoadPart> = threads
        .into_iter()
        .map(|((process, state, wchan), threads)| HostLoadPart { process, state: state.to_owned(), wchan, threads })
        .collect();
    for (state, threads) in rest.into_iter().filter(|(_, n)| *n >= 0.5) {
        parts.push(HostLoadPart { process: "others".to_owned(), state: state.to_owned(), wchan: None, threads });
    }
    parts.sort_by(|a, b| b.threads.total_cmp(&a.threads));
    parts.truncate(PARTS);
    for part in &mut parts {
        part.threads = round(part.threads, 1);
    }
    parts.retain(|part| part.threads > 0.0);
    parts
}

/// How often the threads of a watched process were read in the window.
fn source_instants(view: &View<'_>, source: &str) -> usize {
    let mut instants: Vec<i64> = view
        .index
        .series(metrics::process::THREADS.name, &[])
        .filter(|((s, _), _)| s == source)
        .flat_map(|(_, samples)| samples.iter().map(|(at, _)| *at).filter(|at| view.window.contains(*at)))
        .collect();
    instants.sort_unstable();
    instants.dedup();
    instants.len()
}

/// The innermost function of a stack.
fn innermost(stack: Option<&str>) -> Option<String> {
    stack.and_then(|s| s.split(" < ").next()).filter(|s| !s.is_empty()).map(str::to_owned)
}

/// A disk with so many requests in its queue that these make up most of the load: each has a thread
/// that waits, because idle CPUs counted iowait meanwhile.
fn disk_root(view: &View<'_>, load: &HostLoad) -> Option<String> {
    const MOST: f64 = 0.5;
    const WAITED: f64 = 0.2;
    let disks = view.disks().ok()?;
    let disk = disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue))?;
    let is_root = disk.queue >= MOST * load.load_1m_max && load.iowait_ratio.is_some_and(|ratio| ratio >= WAITED);
    is_root.then(|| format!("I/O is its root: {:.1} requests were in the queue of {}", disk.queue, disk.name()))
}

/// A summary in one sentence. `unseen` is what to say of its cause if threads were not counted.
fn sentence(load: &HostLoad, unseen: Option<&str>) -> String {
    let HostLoad { cpus, runnable, uninterruptible, .. } = *load;
    let trend = if load.trend == "steady" { String::new() } else { format!(" and {}", load.trend) };
    let head = format!("load average up to {:.1} per CPU{trend}", load.per_cpu_max);
    let idle_ratio = load.idle_ratio.zip(load.iowait_ratio).map(|(idle, iowait)| idle + iowait);
    let idle = idle_ratio.map_or_else(String::new, |ratio| format!(", {} of CPU time idle", percent(ratio)));
    if let Some(unseen) = unseen {
        return format!("{head}{idle}; {unseen}");
    }
    let active = runnable + uninterruptible;
    let largest = |state: &str| {
        let part = load.parts.iter().find(|p| p.state == state && p.process != "others")?;
        let place = part.wchan.as_ref().map_or_else(String::new, |wchan| format!(" in {wchan}"));
        Some(format!(" ({}{place})", part.process))
    };
    let what = if uninterruptible >= 1.0 && uninterruptible >= runnable {
        format!(
            "{uninterruptible:.0} of the {active:.0} threads counted in it were in uninterruptible sleep{}",
            largest("D").unwrap_or_default()
        )
    } else {
        format!(
            "{runnable:.1} threads were running or runnable on average{}, {uninterruptible:.1} in uninterruptible sleep",
            largest("R").unwrap_or_default()
        )
    };
    let so = if uninterruptible >= 1.0 && uninterruptible >= runnable && idle_ratio.is_some_and(|ratio| ratio > 0.1) {
        "; they do not wait for a CPU"
    } else if runnable > cpus.max(uninterruptible) && idle_ratio.is_some_and(|ratio| ratio < 0.1) {
        "; they wait for a CPU"
    } else {
        ""
    };
    // A host shows the load of all its containers; from inside one, the threads of the others are
    // invisible.
    let kernel = load.load_average[0];
    let unseen = if kernel - load.reconstructed_1m > (0.25 * kernel).max(cpus) {
        format!(
            "; the threads seen here account for only {:.1} of the kernel's {kernel:.1}: the others are in another container, or ran between two samples",
            load.reconstructed_1m
        )
    } else {
        String::new()
    };
    format!("{head}: {what}{idle}{so}{unseen}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// What a kernel whose updates come `offset` seconds after the start would show, read once a second.
    fn kernel(active: impl Fn(i64) -> f64, seconds: i64, offset: i64) -> Vec<(i64, f64)> {
        let mut load = 2.0;
        (0..=seconds)
            .map(|s| {
                if s >= offset && (s - offset) % 5 == 0 {
                    load = load * (-5.0_f64 / 60.0).exp() + active(s) * (1.0 - (-5.0_f64 / 60.0).exp());
                }
                (s * SECOND, load)
            })
            .collect()
    }

    #[test]
    fn a_pile_up_is_replayed_as_the_kernel_counts_it() {
        // Two threads run; from the 20th second on 300 more pile up, ten a second.
        let active = |s: i64| 2.0 + (10 * (s - 20)).clamp(0, 300) as f64;
        for offset in 1..=5 {
            let kernel = kernel(active, 120, offset);
            let samples: Vec<(i64, f64)> = (0..=120).map(|s| (s * SECOND, active(s))).collect();
            let (end, replayed) = (kernel.last().unwrap().1, replay(&kernel, &samples).unwrap());
            assert!(end > 150.0, "the example is no pile-up: {end}");
            assert!((replayed - end).abs() < 0.03 * end, "replayed {replayed:.1}, the kernel says {end:.1}");
        }
    }

    #[test]
    fn threads_that_were_not_seen_show_as_a_difference() {
        let kernel = kernel(|_| 100.0, 60, 3);
        let samples: Vec<(i64, f64)> = (0..=60).map(|s| (s * SECOND, 10.0)).collect();
        assert!(replay(&kernel, &samples).unwrap() < 0.2 * kernel.last().unwrap().1);
        assert_eq!(replay(&kernel, &[]), None);
    }

    #[test]
    fn the_trend_is_of_the_run_and_then_of_the_minutes_before() {
        assert_eq!(trend(2.0, 60.0, [60.0, 20.0, 8.0], 2.0), "rising");
        assert_eq!(trend(60.0, 30.0, [30.0, 45.0, 20.0], 2.0), "falling");
        assert_eq!(trend(8.0, 8.05, [8.05, 8.1, 2.0], 2.0), "rising");
        assert_eq!(trend(0.2, 0.3, [0.3, 0.2, 0.2], 2.0), "steady");
    }

    fn load(runnable: f64, uninterruptible: f64, idle_ratio: f64) -> HostLoad {
        let part = |process: &str, state: &str, wchan: Option<&str>, threads| HostLoadPart {
            process: process.into(),
            state: state.into(),
            wchan: wchan.map(str::to_owned),
            threads,
        };
        HostLoad {
            text: String::new(),
            load_average: [129.4, 60.0, 30.0],
            load_1m_start: 2.0,
            load_1m_max: 129.4,
            cpus: 2.0,
            per_cpu_max: 64.7,
            trend: "rising".into(),
            idle_ratio: Some(idle_ratio),
            iowait_ratio: Some(0.0),
            runnable,
            uninterruptible,
            reconstructed_1m: 128.0,
            parts: vec![part("mysqld", "D", Some("do_unlinkat"), uninterruptible), part("app", "R", None, runnable)],
        }
    }

    #[test]
    fn the_sentence_says_what_they_wait_for() {
        assert_eq!(
            sentence(&load(41.0, 547.0, 0.45), None),
            "load average up to 64.7 per CPU and rising: 547 of the 588 threads counted in it were in uninterruptible \
             sleep (mysqld in do_unlinkat), 45 % of CPU time idle; they do not wait for a CPU"
        );
        let busy = sentence(&load(120.0, 0.2, 0.01), None);
        assert!(busy.ends_with("1 % of CPU time idle; they wait for a CPU"), "{busy}");
        // Threads asleep wait for no CPU, however busy the CPUs are.
        let both = sentence(&load(41.0, 547.0, 0.0), None);
        assert!(both.ends_with("0 % of CPU time idle"), "{both}");
        let unknown = HostLoad { idle_ratio: None, iowait_ratio: None, ..load(41.0, 547.0, 0.0) };
        assert!(sentence(&unknown, None).ends_with("(mysqld in do_unlinkat)"), "{}", sentence(&unknown, None));
        let elsewhere = HostLoad { reconstructed_1m: 3.0, ..load(2.0, 0.0, 0.9) };
        assert!(sentence(&elsewhere, None).contains("in another container"));
    }
}
