//! The suspects of an instant. Each sign is a way in which a system works: who sleeps where, which
//! queue is full, what sessions say they wait for. Signs of one cause from several sources add up;
//! the time before and after is not known, so no suspect becomes certain.

use crate::resources::full_disk::ShownBy;
use holdup_recording::words::bytes;
use holdup_signals::Disk;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{Wait, wait_of};
use holdup_signals::host::threads::Place;

use super::facts::Facts;
use super::signs::Signs;
use crate::resources::disk::{MAYBE_AMPLIFIED as AMPLIFIED, what_it_does};
use crate::rules::disk_full;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength, WEAK};

/// The most (0-1) that one instant can show: the same state may be usual here.
const INSTANT: f64 = 0.8;

/// A disk is full if it was busy for this share (0-1) of the time, with this many in its queue.
const BUSY: f64 = 0.9;
const QUEUED: f64 = 4.0;

/// Requests up to this size are random: a disk takes them one by one, bytes.
const SMALL_BYTES: f64 = 32.0 * 1024.0;

/// A readahead of this many bytes reads data that random access does not need.
const WIDE_BYTES: f64 = 64.0 * 1024.0;

/// As many threads or sessions in one state stand out.
const MANY: f64 = 4.0;

/// Share (0-1) of the active sessions that makes a state the one that matters.
const MOST: f64 = 0.5;

/// A share (0-1) of the active sessions that is more than chance.
const SOME: f64 = 0.1;

/// CPUs with less idle time than this share (0-1) are full.
const FULL: f64 = 0.05;

/// As many idle sessions for each active one, and as many at least, may hide queued ones.
const ASLEEP_PER_ACTIVE: f64 = 10.0;
const ASLEEP: f64 = 20.0;

/// Without a disk's own figures, this share (0-1) of iowait shows that threads wait for one.
const WAITED: f64 = 0.2;

/// Memory with less available than this share (0-1) is short.
const SHORT: f64 = 0.05;

/// A possible cause of what the instant shows.
pub(super) struct Suspect {
    pub cause: &'static str,
    /// 0-1.
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
}

/// The suspects, the likeliest first.
pub(super) fn suspects(facts: &Facts<'_>) -> Vec<Suspect> {
    let mut signs = Signs::default();
    by_threads(facts, &mut signs);
    by_disk(facts, &mut signs);
    by_sessions(facts, &mut signs);
    by_cpus_and_memory(facts, &mut signs);
    by_room(facts, &mut signs);
    facts.pods.suspect(&mut signs);
    by_accept_queue(facts, &mut signs);
    let suspect = |(cause, signs): (&'static str, Vec<(Strength, Option<Evidence>)>)| {
        let missed: f64 = signs.iter().map(|(strength, _)| 1.0 - strength.chance()).product();
        let mut sorted = signs;
        sorted.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
        let mut evidence: Vec<Evidence> = sorted.into_iter().filter_map(|(_, evidence)| evidence).collect();
        evidence.dedup_by(|a, b| a.text == b.text);
        Suspect { cause, confidence: INSTANT * (1.0 - missed), evidence }
    };
    let mut all: Vec<Suspect> = signs.by_cause().map(suspect).collect();
    all.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    all
}

/// A full accept queue shows that a server takes connections more slowly than they come, and not why. One
/// that stands while CPUs idle has workers behind it that wait, for whatever it is; one that a burst fills
/// drains at once. To name the workers takes a source that saw all of them busy; else it stays open.
fn by_accept_queue(facts: &Facts<'_>, signs: &mut Signs) {
    const ROOM: f64 = 0.2;
    let Some(queue) = &facts.accept_queue else { return };
    let has_room = facts.idle.as_ref().is_some_and(|(idle, waiting, _)| idle + waiting + facts.niced >= ROOM);
    if queue.stands && has_room {
        signs.add("worker_pool_exhausted", FAIR, Some(queue.evidence.clone()));
        if let Some(busy) = &queue.busy_workers {
            signs.add("worker_pool_exhausted", STRONG, Some(busy.clone()));
        }
        signs.add("accept_queue_overflow", WEAK, Some(queue.evidence.clone()));
    } else {
        signs.add("accept_queue_overflow", FAIR, Some(queue.evidence.clone()));
    }
}

/// Whether a disk has no time left: then waits for it are settled, and their reason is not.
pub(super) fn is_disk_full(facts: &Facts<'_>) -> bool {
    facts.disk.as_ref().is_some_and(|disk| disk.utilization >= BUSY && disk.queue >= QUEUED)
}

/// Causes whose threads sleep in the kernel.
fn by_threads(facts: &Facts<'_>, signs: &mut Signs) {
    let Some(asleep) = &facts.asleep else { return };
    let least = MANY.max(0.5 * facts.cpus.unwrap_or(0.0));
    for place in asleep.groups.iter().filter(|place| place.mean >= least) {
        let function = place.function().unwrap_or("an unknown function");
        let text = format!("{:.0} threads of {} slept in {function}", place.mean, place.process);
        let evidence = asleep.at(place, format!("{:.0} threads", place.mean), "0", text);
        match wait_of(place) {
            Wait::Directory if is_removed(place) => {
                // Files that come and go by the hundred are temporary. They are slow to remove
                // because of the directory's lock, or because the disk is.
                let is_lock = facts.is_no_disk_waited_for() || facts.idle_disk().is_some();
                signs.add("on_disk_temporary_tables", if is_lock { STRONG } else { FAIR }, Some(evidence.clone()));
                if !is_lock {
                    let strength = if is_disk_full(facts) { FAIR } else { WEAK };
                    signs.add("disk_saturated", strength, Some(evidence));
                }
            }
            Wait::Swap | Wait::Reclaim => signs.add("memory_pressure", STRONG, Some(evidence)),
            Wait::Write if is_flush(place) => signs.add("commit_log_bound", FAIR, Some(evidence)),
            _ => {}
        }
    }
}

fn is_removed(place: &Place) -> bool {
    ["unlinkat", "do_unlinkat", "filename_create", "path_openat", "open_last_lookups"].iter().any(|f| place.passes(f))
}

fn is_flush(place: &Place) -> bool {
    place.passes("jbd2_log_wait_commit") || place.functions().any(|f| f.contains("fsync") || f.contains("log_force"))
}

/// What fills a disk: its reads, their size, and the settings that make them.
fn by_disk(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((_, waiting, evidence)) = facts.idle.as_ref().filter(|_| facts.disk.is_none())
        && *waiting >= WAITED
    {
        signs.add("disk_saturated", FAIR, Some(evidence.clone()));
    }
    let Some(disk) = facts.disk.as_ref().filter(|_| is_disk_full(facts)) else { return };
    let evidence = || facts.view.disk_evidence(disk, "below 1", what_it_does(disk)).ok();
    let reads = disk.read.seconds >= disk.write.seconds;
    if reads {
        by_faults(facts, disk, signs);
        by_asked(facts, disk, signs);
    }
    match () {
        () if reads && disk.bytes_each() <= SMALL_BYTES => {
            if let Some((window, setting)) = facts.readahead(disk).filter(|(window, _)| *window >= WIDE_BYTES) {
                let text = format!(
                    "{}; reads are small and random, so that most of {} is not needed",
                    setting.text,
                    bytes(window)
                );
                signs.add("readahead_too_large", FAIR, Some(setting.saying("8 to 16 KiB", text)));
            }
            signs.add("working_set_exceeds_memory", FAIR * 0.9, evidence());
        }
        () if reads && of_readahead(facts, disk, signs) => signs.add("working_set_exceeds_memory", FAIR, evidence()),
        () if reads => {
            signs.add("backup_or_bulk_load", WEAK, evidence());
            signs.add("missing_index", WEAK, evidence());
        }
        () => {
            signs.add("flush_storm", WEAK, evidence());
            signs.add("commit_log_bound", WEAK, evidence());
        }
    }
}

/// What the disk read for each page that a thread waited for: that page alone if data does not fit in
/// memory, and a window of readahead if that is what fills the disk.
fn by_faults(facts: &Facts<'_>, disk: &Disk, signs: &mut Signs) {
    const PAGE_BYTES: f64 = 8.0 * 1024.0;
    const OF_WINDOW: std::ops::RangeInclusive<f64> = 0.5..=2.0;
    let Some((each, evidence)) = &facts.read_per_fault else { return };
    let window = facts.readahead(disk).map(|(window, _)| window).filter(|window| *window >= WIDE_BYTES);
    match window {
        _ if *each <= PAGE_BYTES => signs.add("working_set_exceeds_memory", STRONG, Some(evidence.clone())),
        Some(window) if OF_WINDOW.contains(&(each / window)) => {
            signs.add("readahead_too_large", STRONG, Some(evidence.clone()));
        }
        _ => {}
    }
}

/// What the disk read beyond what MongoDB's storage engine asked of files: that is readahead. The
/// other way round nothing follows, because the kernel's page cache answers some of it.
fn by_asked(facts: &Facts<'_>, disk: &Disk, signs: &mut Signs) {
    let Some((ratio, evidence)) = facts.documents.read_per_asked.as_ref().filter(|(ratio, _)| *ratio >= AMPLIFIED)
    else {
        return;
    };
    if facts.readahead(disk).is_some_and(|(window, _)| window >= WIDE_BYTES) {
        signs.add("readahead_too_large", STRONG * (1.0 - 1.0 / ratio), Some(evidence.clone()));
    }
}

/// Many threads that each wait for a page read at random. If a read then brings about a window of
/// readahead, most of it is what nothing asked for. Whether that is what `disk` does.
fn of_readahead(facts: &Facts<'_>, disk: &Disk, signs: &mut Signs) -> bool {
    /// A read of at least this share (0-1) of the window is one by readahead.
    const OF_WINDOW: f64 = 0.5;
    let Some((window, setting)) = facts.readahead(disk).filter(|(window, _)| *window >= WIDE_BYTES) else {
        return false;
    };
    let is_page = |place: &&Place| matches!(wait_of(place), Wait::Fault | Wait::Page) && place.mean >= MANY;
    let Some(asleep) = &facts.asleep else { return false };
    let Some(place) = asleep.groups.iter().find(is_page).filter(|_| disk.bytes_each() >= OF_WINDOW * window) else {
        return false;
    };
    let text = format!("{:.0} threads of {} waited for a page of a file, each for its own", place.mean, place.process);
    signs.add("readahead_too_large", FAIR, Some(asleep.at(place, format!("{:.0} threads", place.mean), "0", text)));
    let text = format!("{}, and a read brought {}", setting.text, bytes(disk.bytes_each()));
    signs.add("readahead_too_large", FAIR, Some(setting.saying("8 to 16 KiB", text)));
    true
}

/// What the database's sessions say.
fn by_sessions(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some(queue) = facts.pool_queue.as_ref().filter(|queue| queue.max >= MANY) {
        let text = format!("{:.0} requests waited in the thread pool's queues", queue.max);
        signs.add("thread_pool_queue", CERTAIN, Some(queue.evidence(format!("{:.0}", queue.max), "0", text)));
    }
    if let Some((_, evidence)) = facts.documents.queued.as_ref().filter(|(count, _)| *count >= MANY) {
        signs.add("tickets_exhausted", CERTAIN, Some(evidence.clone()));
    }
    let Some(sessions) = &facts.sessions else { return };
    let active = sessions.active();
    let share = |count: f64| count / active.max(1.0);
    let mut state =
        |cause: &'static str, strength: Strength, least: f64, what: &str, is: &dyn Fn(&str, &str) -> bool| {
            let count = sessions.count(is);
            if count >= MANY.min(active) && count >= 2.0 && share(count) >= least {
                let text = format!("{count:.0} of {active:.0} active sessions {what}");
                signs.add(cause, strength, sessions.evidence(is, "few", text));
            }
        };
    let has = |part: &'static str| move |state: &str| state.to_lowercase().contains(part);
    let (temporary, opening, closing) = (has("tmp table"), has("opening table"), has("closing table"));
    match facts.documents.is_there {
        true => state("tickets_exhausted", CERTAIN, SOME, "waited for a ticket", &|_, s| s == "waiting for a ticket"),
        false => state("thread_pool_queue", CERTAIN, SOME, "waited for a thread of the pool", &|of, _| of == "queued"),
    }
    state("missing_index", FAIR, MOST, "read a whole collection", &|_, s| s == "COLLSCAN");
    state("lock_contention", STRONG, MOST, "waited for a lock", &|of, _| of == "lock_wait");
    state("on_disk_temporary_tables", FAIR, SOME, "made or removed a temporary table", &|_, s| temporary(s));
    state("table_cache_small", FAIR, SOME, "opened or closed tables", &|_, s| opening(s) || closing(s));
    let reads = |s: &str| s.starts_with("IO:") || s.starts_with("IO/");
    // WALWrite's holder writes and syncs the log; the others wait until it is on the disk (PostgreSQL
    // documentation, "Wait Events").
    let commits = |s: &str| s.ends_with("WALWrite") || s.ends_with("WALSync");
    if facts.is_postgresql {
        state("throughput_ceiling", FAIR * 0.9, MOST, "waited for the disk", &|_, s| reads(s) || commits(s));
        state("commit_log_bound", FAIR * 0.9, MOST, "waited until the log was on the disk", &|_, s| commits(s));
    }
    if let Some(vacuums) = facts.vacuums.as_ref().filter(|_| sessions.count(|_, s| reads(s)) >= MOST * active) {
        let text = format!("{:.0} workers of autovacuum ran, beside sessions that wait for the disk", vacuums.max);
        signs.add("autovacuum_pressure", WEAK, Some(vacuums.evidence(format!("{:.0}", vacuums.max), "0", text)));
    }
    hidden_queue(facts, active, signs);
}

/// Connections of a MySQL that look idle while hardly one works: they may wait for a thread of the
/// pool, or the app may hold them without a statement.
fn hidden_queue(facts: &Facts<'_>, active: f64, signs: &mut Signs) {
    let Some(sessions) = facts.sessions.as_ref().filter(|_| !facts.is_postgresql) else { return };
    let is_idle = |of: &str, _: &str| of == "idle";
    let idle = sessions.count(is_idle);
    let is_calm = facts.idle.as_ref().is_none_or(|(idle, waiting, _)| idle + waiting > FULL) && !is_disk_full(facts);
    let may_queue = facts.pool_queue.is_none() && !facts.has_no_pool && !facts.documents.is_there;
    if idle >= ASLEEP.max(ASLEEP_PER_ACTIVE * active) && is_calm && may_queue {
        let text = format!(
            "{idle:.0} sessions looked idle and {active:.0} worked: a queue in front of execution shows as Sleep"
        );
        signs.add("thread_pool_queue", FAIR, sessions.evidence(is_idle, "few", text));
        let text = format!("{idle:.0} of the app's connections had no statement: it may wait for something else");
        signs.add("connection_pool_exhausted", WEAK, sessions.evidence(is_idle, "few", text));
    }
}

/// Disks without room, and sessions that stand at the end of a write meanwhile.
fn by_room(facts: &Facts<'_>, signs: &mut Signs) {
    let cause = disk_full::RULE.cause;
    for full in &facts.full {
        // A full file system alone may hold nothing that is written.
        let is_write = matches!(full.shown_by, ShownBy::Write | ShownBy::Cloud);
        let strength = if is_write { disk_full::strength(full.shown_by) } else { FAIR };
        signs.add(cause, strength, Some(full.evidence.clone()));
    }
    let Some(sessions) = facts.sessions.as_ref().filter(|_| !facts.full.is_empty()) else { return };
    let writes = |of: &str, state: &str| of == "executing" && disk_full::is_write(state);
    let count = sessions.count(writes);
    if count >= 2.0 {
        let text = format!("{count:.0} of {:.0} active sessions stood at the end of a write", sessions.active());
        signs.add(cause, STRONG, sessions.evidence(writes, "few", text));
    }
}

/// CPUs without idle time, and memory that runs short. Niced threads make way for others. Full CPUs
/// may be a burst, or the work that they are for. So it takes a line of threads that has been there
/// for a minute, or threads of the service that wait.
fn by_cpus_and_memory(facts: &Facts<'_>, signs: &mut Signs) {
    if let (Some((idle, waiting, evidence)), Some(runnable), Some(cpus)) = (&facts.idle, &facts.runnable, facts.cpus)
        && idle + waiting + facts.niced <= FULL
        && runnable.mean > cpus
    {
        signs.add("cpu_saturated", FAIR, Some(evidence.clone()));
        let lasts = facts.load.as_ref().filter(|load| load.max > cpus);
        if let Some(load) = lasts {
            let text = format!(
                "{:.0} threads were running or runnable on {cpus:.0} CPUs, and {:.1} on average over the last minute",
                runnable.mean, load.max
            );
            signs.add(
                "cpu_saturated",
                STRONG,
                Some(load.evidence(format!("{:.1}", load.max), "fewer than CPUs", text)),
            );
        }
        if let Some((_, piece)) = facts.waits_for_cpu.as_ref().filter(|(threads, _)| *threads >= 1.0) {
            signs.add("cpu_saturated", STRONG, Some(piece.clone()));
        }
    }
    if let (Some((rate, swapped)), Some((share, available))) = (&facts.swapped, &facts.available)
        && *rate >= 1.0
        && *share <= SHORT
    {
        signs.add("memory_pressure", STRONG, Some(swapped.clone()));
        signs.add("memory_pressure", FAIR, Some(available.clone()));
    }
}
