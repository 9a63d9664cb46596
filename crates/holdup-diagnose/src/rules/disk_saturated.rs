//! Requests wait for a disk that can't keep up.

use super::{Doc, Found, MATTERS, Outcome, Rule, ms, percent};
use crate::case::Case;
use crate::signals::{Missing, View};
use crate::verdict::{Evidence, Fix, Role};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "disk_saturated",
    doc: Doc {
        title: "The disk is saturated",
        what: "More reads and writes are asked of a disk than it can do; they queue in front of it.",
        hurts: "Threads stand in uninterruptible sleep until their I/O is done.",
        needs: "The host's disk statistics (--watch host), and for the amount the thread states of the service's processes (--watch pid:N).",
        predicts: "Threads of the service sleep uninterruptibly for a large part of what requests are too slow by, and the device has a queue.",
        clears: "All I/O of the machine together took a small share of the delay per request, or the service's threads were hardly ever in uninterruptible sleep.",
        looks_like: "Utilization near 100 % alone is no sign: a disk that serves many at once can be busy all the time with room to spare. A ceiling on throughput shows as a plateau of the sum of reads and writes.",
        fix: "Less I/O (indexes, memory), then a faster disk or a higher limit.",
        prove: "The same load again: queue and wait of the device are small.",
        references: "Kernel documentation: iostats (fields of /proc/diskstats), PSI; B. Gregg, Systems Performance, 2nd ed., ch. 9.",
    },
    judge,
};

const HOST: &str = "--watch host";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let io = view.counter("system_disk_operation_time_seconds_total", &[], HOST)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    // Upper bound: as if every read and write of the machine had been waited for by these requests.
    let all_io = io.delta / completed * 1e3;
    let mut evidence = vec![io.evidence(
        format!("{} a request", ms(all_io)),
        "most of the delay, if the disk were the cause",
        format!("all I/O of this machine, by anyone, took {} per request", ms(all_io)),
    )];
    if case.share(all_io) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    let asleep = uninterruptible_ms(&view, completed)?;
    evidence.push(asleep.1);
    if case.share(asleep.0) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    let busiest = busiest_device(&view)?;
    evidence.push(busiest.1);
    Ok(Outcome::Found(Found {
        explains_ms: asleep.0.min(all_io),
        evidence,
        weights: vec![0.7, 0.8 * busiest.0.min(1.0)],
        fixes: vec![Fix {
            text: "Find who reads or writes (pidstat -d 1), do less of it; then a faster disk or a higher limit."
                .to_owned(),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "Run the same scenario again: the device's queue and wait are small.".to_owned(),
        role: Role::Root,
    }))
}

/// Milliseconds per request in uninterruptible sleep, by Little's law over the sampled threads of watched processes.
fn uninterruptible_ms(view: &View<'_>, completed: f64) -> Result<(f64, Evidence), Missing> {
    let threads = view.gauge("process_threads", &[("state", "D")], "--watch pid:N for the app and the database")?;
    let per_request = threads.mean / (completed / view.window.seconds()) * 1e3;
    let evidence = threads.evidence(
        format!("{:.2} threads on average", threads.mean),
        "several, if the disk were the cause",
        format!(
            "{:.2} threads of the service were in uninterruptible sleep on average: {} per request",
            threads.mean,
            ms(per_request)
        ),
    );
    Ok((per_request, evidence))
}

/// Utilization (0-1) of the busiest device, and evidence of it.
fn busiest_device(view: &View<'_>) -> Result<(f64, Evidence), Missing> {
    let mut devices: Vec<String> = view
        .index
        .series("system_disk_io_time_seconds_total", &[])
        .filter_map(|((_, l), _)| l.get("device").map(str::to_owned))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    let mut best: Option<(f64, Evidence)> = None;
    for device in devices {
        let labels = [("device", device.as_str())];
        let busy = view.counter("system_disk_io_time_seconds_total", &labels, HOST)?;
        if best.as_ref().is_none_or(|(ratio, _)| busy.rate() > *ratio) {
            let text = format!("{device} was busy for {} of the time", percent(busy.rate()));
            best = Some((busy.rate(), busy.evidence(percent(busy.rate()), String::new(), text)));
        }
    }
    best.ok_or_else(|| Missing::new("samples of any disk", HOST))
}
