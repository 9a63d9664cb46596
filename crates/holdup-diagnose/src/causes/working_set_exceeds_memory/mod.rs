//! Data that requests need repeatedly do not fit in memory, so they are read from a disk.

mod advice;
mod innodb;
mod postgresql;
mod signs;
mod small_buffer_pool;
mod wired_tiger;

use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Magnitude, Outcome, Role, Source::Of, Trait, bytes, ms,
    percent,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::disk::{is_oversized, read_device, what_it_does};
use crate::resources::{is_felt, volume};
use crate::strength::{FAIR, STRONG, Strength};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::DiskWaits;
use holdup_signals::host::memory::{HOST, Memory, PAGE_BYTES};
use holdup_signals::{Disk, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::Standing, Trait::Size, Trait::LongStatement],
    follows_from: &[
        // Data that is read once pushes out what requests need: they read as much again.
        Edge { from: &[&[Of(Cause::BackupOrBulkLoad)]], magnitude: Magnitude::PartOfOwn(0.5), is_added: false },
    ],
    traces: &[small_buffer_pool::PATTERN],
    signs: Some(signs::find),
    is_answered: |facts| facts.read_per_fault.is_some(),
    ..Definition::new(Cause::WorkingSetExceedsMemory, DOC, Judge::Alone(judge), &next_command::READ_PER_FAULT)
};

const DOC: Doc = Doc {
    title: "The working set does not fit in memory",
    what: "Requests use more data than fits in memory: each pushes out what the next one needs.",
    hurts: "A read that memory would answer in microseconds waits for a disk, and the disk serves the same data over and over.",
    needs: "The host's disk, memory and paging counters (--watch host), the thread states and memory cgroup of the service's processes (--watch pid:N); for a database with its own cache also its status (--watch mysql://…, mongodb://…, postgresql://… with the sizes of its tables).",
    predicts: "Memory (the machine's, or the cgroup's) is full of file pages, or the database's own cache is full; threads sleep in reads; the pages read had been in memory recently (refaults), in reads about as small as requested.",
    clears: "Memory has room; reads fetch new data; hardly any request has to read; threads hardly ever slept for reads; or most of the data read was never requested, which is readahead's doing.",
    looks_like: "Readahead that is too large pushes out needed data as well: reads are then large and mostly unused. A cold cache after a restart reads as much, once. A full page cache alone proves nothing: it is meant to be full.",
    fix: "More memory for it (a higher cgroup limit, a larger buffer pool), less data accessed (an index, a covering index, smaller rows), or a disk that is fast enough.",
    prove: "The same load again: hardly a major fault or a read per request.",
    references: "Linux: mm/workingset.c (refault distance), Documentation/admin-guide/cgroup-v2.rst (memory.stat: workingset_refault_file), cgroup-v1/memory.rst; MySQL and MariaDB manuals: innodb_buffer_pool_size, Innodb_buffer_pool_reads; MongoDB manual: WiredTiger Storage Engine, Memory Use; LMDB: the map is the page cache.",
};

/// If fewer reads than this happen per request, requests find their data in memory.
const READS_A_REQUEST: f64 = 0.3;

/// Share (0-1) of the pages read that had been in memory recently, from which the data do not fit.
/// The kernel forgets pages after a memory's worth of reads, so it undercounts.
const READ_AGAIN: f64 = 0.2;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let disks = view.disks()?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let waits = view.disk_waits(&disks, completed)?;
    let reading_ms = volume::of_requests(&waits, case, waits.reading_ms())?;
    let text = format!(
        "{:.2} {} on average: waits for reads are at most {} of a request",
        waits.asleep.mean,
        waits.asleep.who(),
        ms(reading_ms)
    );
    let asleep = waits.asleep.counted(format!("{:.2} threads on average", waits.asleep.mean), "several", text);
    let Some(disk) = read_device(&view, &disks, &waits).filter(|_| case.share_inside(reading_ms) >= MATTERS) else {
        return Ok(Outcome::Cleared(vec![asleep]));
    };
    let own = match (innodb::cache(case, &view, disk, completed)?, wired_tiger::cache(&view, disk, completed)?) {
        (None, None) => postgresql::cache(&view, disk, completed)?,
        (innodb, wired_tiger) => innodb.or(wired_tiger),
    };
    let full = match own {
        Some(full) => full,
        None => match page_cache(&view, disk, &waits, completed)? {
            Ok(full) => full,
            Err(cleared) => return Ok(Outcome::Cleared(cleared)),
        },
    };
    let explains_ms = reading_ms * full.share;
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(full.evidence));
    }
    let mut evidence = full.evidence;
    evidence.push(view.disk_evidence(disk, "a short queue", what_it_does(disk))?);
    evidence.push(asleep);
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: full.weights,
        fixes: full.fixes,
        prove: "Run the same scenario again: hardly a page fault that reads, or a read of the database's cache, per request."
            .to_owned(),
        role: Role::Root,
    }))
}

/// A cache that is full.
struct FullCache {
    /// Its share (0-1) of the waits for reads.
    share: f64,
    evidence: Vec<Evidence>,
    weights: Vec<Strength>,
    fixes: Vec<Fix>,
}

/// The kernel's page cache, or the evidence that clears it.
fn page_cache(
    view: &View<'_>,
    disk: &Disk,
    waits: &DiskWaits,
    completed: f64,
) -> Result<Result<FullCache, Vec<Evidence>>, Missing> {
    let memory = view.memory()?;
    let in_use = in_use(view, &memory);
    if !memory.is_full() {
        return Ok(Err(vec![in_use]));
    }
    let useful = view.useful_reads(disk, waits)?;
    // A read call of a few pages is one read.
    let reads =
        (useful.faults.delta + useful.call_bytes / useful.read_each().max(PAGE_BYTES)).min(disk.read.operations);
    let a_request = reads / completed;
    let faults = useful.faults.evidence(
        format!("{a_request:.2} a request"),
        format!("below {READS_A_REQUEST}"),
        format!(
            "a request had to read {a_request:.2} times; {:.0} page faults/s waited for a disk",
            useful.faults.rate()
        ),
    );
    if a_request < READS_A_REQUEST {
        return Ok(Err(vec![faults, in_use]));
    }
    let again = view.refaults(&memory, "file")?;
    let ratio = (again.delta * PAGE_BYTES / useful.read_bytes.max(1.0)).min(1.0);
    let refaults = again.evidence(
        format!("{} read again", percent(ratio)),
        "little, if they were read for the first time",
        format!("{} of the pages read had been in memory recently ({:.0}/s)", percent(ratio), again.rate()),
    );
    if ratio < READ_AGAIN {
        return Ok(Err(vec![refaults, in_use]));
    }
    let oversized = is_oversized(&useful);
    let share = if oversized { useful.own() / useful.ratio() } else { useful.own() };
    let labels = [("device", disk.device.as_str()), ("direction", "read")];
    let size = view.counter(metrics::host::DISK_IO_BYTES.name, &labels, HOST)?.evidence(
        format!("{} a read", bytes(useful.read_each())),
        "about as much as requested",
        format!(
            "a read of {} was {}, of which {} were requested{}",
            disk.name(),
            bytes(useful.read_each()),
            bytes(useful.useful_each()),
            if oversized { ": the rest is readahead" } else { "" }
        ),
    );
    let mut fixes = vec![advice::more_memory(view, disk, &memory, again.delta * PAGE_BYTES)];
    fixes.push(less_data());
    Ok(Ok(FullCache {
        share,
        evidence: vec![faults, refaults, in_use, size],
        weights: vec![STRONG, STRONG * ratio.max(0.5), FAIR],
        fixes,
    }))
}

fn in_use(view: &View<'_>, memory: &Memory) -> Evidence {
    let whose = if memory.is_cgroup() { "the cgroup's memory" } else { "the machine's memory" };
    let ratio = percent(memory.in_use_ratio);
    let text = format!(
        "{ratio} of {whose} ({}) was in use{}",
        bytes(memory.limit_bytes),
        memory.file_bytes.map_or_else(String::new, |file| format!(", {} of it by files", bytes(file)))
    );
    memory.evidence(view, format!("{ratio} in use"), "room for more", text)
}

fn less_data() -> Fix {
    Fix {
        text: "Or access less data: an index that covers the query, smaller rows, or rarely used data moved elsewhere."
            .to_owned(),
        command: None,
        keep: None,
        risk: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_signals::host::memory::LIMIT;

    const FAULT: &str = "folio_wait_bit_common < filemap_fault < __do_fault < exc_page_fault";

    /// 250 requests a second of 100 ms, with 24 threads asleep behind small reads; memory of the cgroup in use by `used`.
    fn made(used: f64, refaults: f64) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(250, 100)
            .disk("loop0", (2_000.0, 8_192.0, 12.0), (0.0, 0.0, 0.0))
            .asleep(24, "folio_wait_bit_common", FAULT, None)
            .counter("host", "system_paging_faults_total", &[("type", "major")], 2_000.0)
            .counter("pid:7", "process_io_calls_bytes_total", &[("direction", "read")], 30_000.0)
            .counter("pid:7", "cgroup_memory_refaults_total", &[("type", "file")], refaults)
            .gauge("pid:7", "cgroup_memory_usage_bytes", &[], used * 100e6)
            .gauge("host", "system_memory_total_bytes", &[], 8e9)
            .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 4e9)
            .setting("pid:7", LIMIT, "100000000")
            .setting("pid:7", "cgroup.path", "/store")
            .setting("host", "block.loop0.read_ahead_kb", "8")
    }

    #[test]
    fn small_reads_of_what_was_there_before_are_found() {
        let made = made(0.99, 3_000.0);
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 96.0).abs() < 3.0, "{}", found.explains_ms);
        let command = found.fixes[0].command.as_deref().unwrap();
        assert!(command.ends_with("> /sys/fs/cgroup/memory/store/memory.limit_in_bytes"), "{command}");
        let known = made
            .clone()
            .setting("host", "mount[/data].fstype", "ext4")
            .setting("host", "mount[/data].device", "loop0")
            .setting("host", "mount[/data].size_bytes", "2000000000")
            .setting("host", "mount[/data].free_bytes", "1000000000");
        let Ok(Outcome::Found(found)) = known.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.fixes[0].text.contains("to 1088 MiB: "), "{}", found.fixes[0].text);
        assert_eq!(made.explains(&super::super::readahead_too_large::DEFINITION), Some(0.0));
    }

    /// As in the incident with a load average of 30: reads of 15 kB that each fault on a page, into memory that is full. Either a
    /// window of 128 KiB is read in parts, or the pages beside are used as well.
    #[test]
    fn reads_of_a_few_pages_leave_it_and_readahead_open() {
        let both = made(0.99, 330.0)
            .without("system_paging_faults_total")
            .without("system_disk_operations_total")
            .without("system_disk_io_bytes_total")
            .without("system_disk_io_time_seconds_total")
            .without("system_disk_operation_time_seconds_total")
            .without("system_disk_weighted_io_time_seconds_total")
            .disk("loop0", (330.0, 15_200.0, 24.0 / 330.0 * 1e3), (0.0, 0.0, 0.0))
            .counter("host", "system_paging_faults_total", &[("type", "major")], 330.0)
            .setting("host", "block.loop0.read_ahead_kb", "128");
        let diagnosis = crate::diagnose(both.recording(), None);
        let mut named: Vec<Cause> = diagnosis.findings.iter().map(|finding| finding.cause).collect();
        named.sort_unstable();
        assert!(
            named.contains(&Cause::ReadaheadTooLarge) && named.contains(&Cause::WorkingSetExceedsMemory),
            "{named:?}"
        );
        assert!(diagnosis.cleared.iter().all(|cleared| !named.contains(&cleared.cause)));
    }

    #[test]
    fn room_and_first_reads_clear_it() {
        assert_eq!(made(0.5, 3_000.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(made(0.99, 10.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        for metric in [
            "cgroup_memory_refaults_total",
            "system_paging_faults_total",
            "process_threads",
            "system_disk_io_bytes_total",
            "cgroup_memory_usage_bytes",
        ] {
            assert_eq!(made(0.99, 3_000.0).without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }

    #[test]
    fn a_full_buffer_pool_that_is_read_past_is_found() {
        let pool = |free| {
            made(0.5, 0.0)
                .setting("mysql://x", "innodb_page_size", "8192")
                .counter("mysql://x", "mysql_global_status_innodb_buffer_pool_reads", &[], 1_900.0)
                .counter("mysql://x", "mysql_global_status_innodb_buffer_pool_read_requests", &[], 19_000.0)
                .gauge("mysql://x", "mysql_global_status_innodb_buffer_pool_pages_free", &[], free)
                .gauge("mysql://x", "mysql_global_status_innodb_buffer_pool_pages_total", &[], 8_192.0)
        };
        assert!(pool(10.0).explains(&DEFINITION).is_some_and(|ms| ms > 80.0));
        for name in ["reads", "pages_free", "pages_total"] {
            let less = pool(10.0).without(&format!("mysql_global_status_innodb_buffer_pool_{name}"));
            assert_eq!(less.explains(&DEFINITION), None, "{name}");
        }
        assert_eq!(pool(4_000.0).explains(&DEFINITION), Some(0.0));
    }
}
