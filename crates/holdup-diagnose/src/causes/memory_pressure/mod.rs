//! Requests wait for memory: for pages to be freed, or for swapped-out pages to come back.

mod signs;

use super::parts::cloud;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Outcome, Role, Source::Of, Trait, bytes, ms, percent,
};
use crate::case::Case;
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit, host};
use crate::next_command;
use crate::resources::reclaim::Reclaim;
use crate::resources::{is_too_small, volume};
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::Wait;
use holdup_signals::host::memory::{HOST, Memory, PROCESS};
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::Standing, Trait::LongStatement],
    follows_from: &[
        // Data that is read once pushes out what requests need: they read as much again.
        Edge { from: &[&[Of(Cause::BackupOrBulkLoad)]], magnitude: Magnitude::PartOfOwn(0.5), is_added: false },
    ],
    signs: Some(signs::find),
    errors: &[
        (holdup_recording::events::OUT_OF_MEMORY, crate::strength::FAIR),
        (holdup_recording::events::RECLAIMING, crate::strength::FAIR),
    ],
    ..Definition::new(Cause::MemoryPressure, DOC, Judge::Alone(judge), &next_command::CPUS_AND_MEMORY)
};

const DOC: Doc = Doc {
    title: "Requests wait for memory",
    what: "The demand for memory exceeds what is free: a thread that needs a page has to free one first (direct reclaim), or finds its own swapped out.",
    hurts: "Any access to memory may take milliseconds, anywhere in the code. What looks like a slow CPU or slow disks is the kernel freeing memory.",
    needs: "The host's paging counters and pressure stall information (--watch host; PSI needs Linux 4.20 with it enabled), and for the place the thread states of the service's processes (--watch pid:N).",
    predicts: "Tasks stall for memory for a large part of the time (PSI); allocations stall, or pages are swapped in; threads sleep in reclaim or swap-in.",
    clears: "Hardly any task stalled for memory; or stalled tasks waited for dropped pages of files, while no allocation had to wait and nothing came back from swap.",
    looks_like: "A page cache that is too small for the data read stalls too, but for file pages: that is a working set that does not fit. Used swap alone proves nothing: pages that are never needed again belong there.",
    fix: "Less memory for other programs on the machine, or more of it; free memory earlier (vm.min_free_kbytes); a higher limit of the cgroup.",
    prove: "The same load again: no allocation stalls, nothing swapped in, hardly any time stalled for memory.",
    references: "Linux: Documentation/accounting/psi.rst, admin-guide/sysctl/vm.rst (min_free_kbytes, watermark_scale_factor, swappiness), admin-guide/mm/concepts.rst (direct reclaim); /proc/vmstat: allocstall, pgscan_direct, pswpin.",
};

/// The kernel may keep up to this share (0-1) of all memory free; with more, programs are killed
/// for lack of memory.
const KEPT_FREE_MOST: f64 = 0.05;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(cleared) = cloud::memory(case) {
        return Ok(cleared);
    }
    let view = case.slow();
    let stall = view.memory_stall();
    let mean_ms = case.degradation.as_ref().map_or(0.0, |c| c.slow_mean_ms);
    // At most: as if every request in flight stood still whenever any task stalled.
    let most = stall.as_ref().map(|stall| stall.rate().min(1.0) * mean_ms);
    let mut evidence = Vec::new();
    if let (Ok(stall), Ok(most)) = (&stall, &most) {
        evidence.push(stall.evidence(
            format!("{} of the time", percent(stall.rate())),
            "most of it, if memory were the cause",
            format!(
                "tasks stalled for memory in {} of the time: at most {} of a request",
                percent(stall.rate()),
                ms(*most)
            ),
        ));
        if is_too_small(case, *most)? {
            evidence.extend(room(&view));
            return Ok(Outcome::Cleared(evidence));
        }
    }
    let memory = view.memory()?;
    let reclaim = Reclaim::measure(&view, &memory)?;
    let disks = view.disks()?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let waits = view.disk_waits(&disks, completed)?;
    let asleep_ms = volume::of_requests(&waits, case, waits.ms(waits.mean_of(&[Wait::Reclaim, Wait::Swap])))?;
    let explains_ms = match most {
        Ok(most) => (most * reclaim.ratio()).max(asleep_ms),
        Err(_) if reclaim.is_none() => asleep_ms,
        Err(missing) => return Err(missing.clone()),
    };
    evidence.extend(reclaim.evidence());
    if is_too_small(case, explains_ms)? {
        evidence.extend(reclaim.dropped_evidence());
        return Ok(Outcome::Cleared(evidence));
    }
    let mut weights = vec![STRONG, FAIR];
    if let Some(place) = waits.place(&[Wait::Reclaim, Wait::Swap]) {
        let text = format!(
            "{:.1} threads of {} on average slept in it ({})",
            place.mean,
            place.process,
            place.function().unwrap_or("?")
        );
        evidence.push(waits.asleep.at(place, format!("{:.1} threads", place.mean), "none", text));
        weights.push(FAIR);
    }
    evidence.extend(room(&view));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: fixes(&view, &memory, reclaim.is_swapping()),
        prove: "Run the same scenario again: no allocation stalls (allocstall in /proc/vmstat), nothing swapped in, hardly any time stalled for memory."
            .to_owned(),
        role: Role::Root,
    }))
}

/// How much memory was available.
fn room(view: &View<'_>) -> Option<Evidence> {
    let available = view.gauge(metrics::host::MEMORY_AVAILABLE_BYTES.name, &[], HOST).ok()?;
    let total = view.gauge(metrics::host::MEMORY_TOTAL_BYTES.name, &[], HOST).ok()?;
    let text = format!("at least {1} of {0} of memory were available", bytes(total.mean), bytes(available.min));
    Some(available.evidence(bytes(available.min), "", text))
}

fn fixes(view: &View<'_>, memory: &Memory, is_swapping: bool) -> Vec<Fix> {
    let mut largest: Vec<(f64, &str, String)> = Vec::new();
    for process in view.processes_with(metrics::process::MEMORY_USAGE_BYTES.name) {
        if let Ok(size) =
            view.gauge_where(|s| s == process.source, metrics::process::MEMORY_USAGE_BYTES.name, &[], PROCESS)
        {
            largest.push((size.max, process.name, process.pid().to_owned()));
        }
    }
    largest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let who = largest.first().map_or_else(String::new, |(size, name, pid)| {
        format!(" Of the watched processes, {name} (pid {pid}) uses most: {}.", bytes(*size))
    });
    let short = view.gauge(metrics::host::PAGING_USAGE_BYTES.name, &[("state", "used")], HOST).map_or(0.0, |g| g.max);
    let by = if short > 0.0 { format!(" by the {} that are swapped out", bytes(short)) } else { String::new() };
    let whose = if memory.is_cgroup() { "the cgroup's limit" } else { "the machine" };
    let mut fixes = vec![Fix {
        text: format!("Use less memory{by}, or give {whose} more.{who}"),
        command: None,
        keep: None,
        risk: None,
    }];
    if !is_swapping && !memory.is_cgroup() {
        fixes.extend(reclaim_earlier(view));
    }
    fixes
}

/// Twice the memory that the kernel keeps free, up to the share of all that it may keep itself.
fn reclaim_earlier(view: &View<'_>) -> Option<Fix> {
    const NAME: &str = "vm.min_free_kbytes";
    let now = view.setting(NAME, HOST).ok().and_then(|value| value.parse::<f64>().ok())?;
    let total = view.gauge(metrics::host::MEMORY_TOTAL_BYTES.name, &[], HOST).ok().map(|total| total.mean);
    let most = total.or_else(|| host::memory_bytes(view)).map_or(f64::MAX, |bytes| KEPT_FREE_MOST * bytes / 1024.0);
    let bounds = Bounds { least: 1_024.0, most: most.floor().max(1_024.0) };
    Some(match SettingChange::new(Direction::Raise, NAME, Unit::Kibibytes, Some(now), 2.0 * now, bounds) {
        Ok(change) => {
            let risk = format!("{} more stay unused.", bytes(1024.0 * (change.to - now)));
            let why = "the kernel then frees memory earlier, in the background";
            change.fix(why, Place::find(view, "host").sysctl(&change), &risk)
        }
        Err(stay) => stay.fix("The kernel cannot free memory much earlier."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const PSI: [(&str, &str); 2] = [("resource", "memory"), ("kind", "some")];

    fn made(stalled: f64, stalls: f64, swapped: f64, refaults: f64) -> SyntheticRecording {
        let reclaim = "reclaim_throttle < shrink_node < try_to_free_pages < filemap_fault";
        let base = SyntheticRecording::new(12)
            .requests(100, 200)
            .disk("vda", (100.0, 4096.0, 1.0), (0.0, 0.0, 0.0))
            .counter("host", "system_pressure_seconds_total", &PSI, stalled)
            .counter("host", "system_allocation_stalls_total", &[], stalls)
            .counter("host", "system_paging_operations_total", &[("direction", "in")], swapped)
            .counter("host", "system_paging_refaults_total", &[("type", "file")], refaults)
            .gauge("host", "system_memory_total_bytes", &[], 8e9)
            .gauge("host", "system_memory_available_bytes", &[], 1e8)
            .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 5e7)
            .setting("host", "vm.min_free_kbytes", "67584");
        if stalls > 0.0 {
            base.asleep(8, "reclaim_throttle", reclaim, None)
        } else {
            base.gauge("pid:7", "process_threads", &[("state", "D")], 0.0)
        }
    }

    #[test]
    fn stalls_of_allocations_and_pages_from_swap_are_found() {
        let made_room = made(0.8, 500.0, 0.0, 100.0);
        assert!(made_room.explains(&DEFINITION).unwrap() > 150.0);
        let Ok(Outcome::Found(found)) = made_room.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.fixes.iter().any(|f| f.command.as_deref() == Some("sysctl -w vm.min_free_kbytes=135168")));
        assert!(made(0.8, 0.0, 5_000.0, 100.0).explains(&DEFINITION).unwrap() > 100.0);
    }

    #[test]
    fn no_stall_and_stalls_for_file_pages_clear_it() {
        assert_eq!(made(0.01, 0.0, 0.0, 0.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(made(0.9, 0.0, 0.0, 5_000.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        let made = made(0.8, 500.0, 300.0, 100.0);
        for metric in [
            "system_pressure_seconds_total",
            "system_allocation_stalls_total",
            "system_paging_operations_total",
            "process_threads",
            "system_memory_usage_bytes",
        ] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }
}
