//! Requests wait for a disk that can't keep up.

mod got_slow;
mod io_taken_by_others;
mod signs;

use super::parts::cgroup_limit;
use super::parts::slow_device::slowed_evidence;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::With, Trait, bytes_per_second,
    ms, percent,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::disk::{what_it_does, who};
use crate::resources::volume::level::{self, rate};
use crate::resources::{is_felt, volume};
use crate::strength::{CERTAIN, STRONG, WEAK};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{DiskWaits, Wait};
use holdup_signals::host::throttle::Throttle;
use holdup_signals::{Disk, Disks, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::FullDisk, Trait::LongStatement, Trait::Queue],
    follows_from: &[Edge::same_time(&[&[With(Trait::DiskLimit)], &[With(Trait::DiskDemand)], &[With(Trait::Load)]])],
    traces: &[io_taken_by_others::PATTERN],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::DISK_BUSY, crate::strength::FAIR)],
    ..Definition::new(Cause::DiskSaturated, DOC, Judge::Alone(judge), &next_command::DISKS)
};

const DOC: Doc = Doc {
    title: "The disk is saturated",
    what: "A disk gets more reads and writes than it can do, and they queue in front of it. Or the disk itself got slow, and each takes many times as long as before. Or a cgroup's I/O limit delays its requests before they reach a disk that looks idle.",
    hurts: "Threads stand in uninterruptible sleep until their I/O is done.",
    needs: "The host's disk statistics (--watch host), and to quantify it the thread states and cgroup of the service's processes (--watch pid:N).",
    predicts: "Threads of the service sleep uninterruptibly for a large part of the excess, and the device has a queue, or a cgroup's I/O limit is reached; or as many operations as in the baseline window each take many times as long.",
    clears: "All I/O of the machine together took a small share of the delay per request and no cgroup's limit is reached; or the service's threads were hardly ever in uninterruptible sleep; or the device had no queue; or it got slow and only commits wait for it, which is their own cause.",
    looks_like: "Utilization near 100 % alone proves nothing: a disk that serves many operations at once can be busy all the time with room to spare. A throughput limit shows as a plateau of the sum of reads and writes. Threads that wait for a directory's lock sleep uninterruptibly as well.",
    fix: "Less I/O (indexes, memory), then a faster disk or a higher limit.",
    prove: "The same load again: queue and wait of the device are small.",
    references: "Linux: Documentation/admin-guide/iostats.rst (fields of /proc/diskstats), accounting/psi.rst, cgroup-v1/blkio-controller.rst (throttle), cgroup-v2.rst (io.max); B. Gregg, Systems Performance, 2nd ed., ch. 9.",
};

const HOST: &str = "--watch host";

/// With fewer operations queued or in service on average, and below this utilization, a device has
/// room: a wait is the time of one operation.
const QUEUE: f64 = 1.0;
const BUSY: f64 = 0.9;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let disks = view.disks()?;
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    if let Some(throttle) = view.throttles()?.into_iter().next().filter(Throttle::is_reached) {
        return throttled(case, &view, &disks, &waits, &throttle);
    }
    let Some(disk) = disks.tops().max_by(|a, b| a.operation_seconds().total_cmp(&b.operation_seconds())) else {
        let none = view.counter(metrics::host::DISK_OPERATIONS.name, &[], HOST)?;
        return Ok(Outcome::Cleared(vec![none.evidence("0", "many", "no disk did any I/O")]));
    };
    let slowed = level::slowed(case);
    let disk = slowed.as_ref().and_then(|(flow, _)| disks.named(&flow.name)).unwrap_or(disk);
    let asked_ms = waits.disks_ms(disk.utilization);
    let explains_ms = volume::of_requests(&waits, case, asked_ms)?;
    let all_io = view.counter(metrics::host::DISK_OPERATION_TIME.name, &[], HOST)?.evidence(
        format!("{} a request", ms(waits.io_ms())),
        "most of the delay, if the disk were the cause",
        format!("all I/O of this machine together took {} per request", ms(waits.io_ms())),
    );
    let asleep = asleep_evidence(&waits);
    if !is_felt(case, explains_ms)? {
        if case.share_inside(waits.asleep_ms()) >= MATTERS
            && waits.mean_of(&[Wait::Unknown]) > 0.0
            && !view.knows_throttles()
        {
            // Threads sleep for something that no device counts: a limit above the device would
            // look like this.
            return Err(Missing::new(
                "limits on I/O of the service's cgroups",
                "--watch pid:N for the app and the database",
            ));
        }
        return Ok(Outcome::Cleared(vec![all_io, asleep]));
    }
    let does = view.disk_evidence(disk, "below 1", what_it_does(disk))?;
    if let Some((flow, slowed)) = &slowed {
        let seen = vec![slowed_evidence(&view, flow, slowed), does, asleep];
        return got_slow::judge(case, &waits, disk, explains_ms, seen);
    }
    if disk.queue < QUEUE && disk.utilization < BUSY {
        return Ok(Outcome::Cleared(vec![does, asleep]));
    }
    let mut evidence = vec![does, asleep, all_io];
    evidence.extend(place_evidence(&waits));
    let who = who(&view, disk);
    evidence.extend(who.evidence);
    let text = format!(
        "Reduce the I/O first: {} does {} of it. Then a faster disk, or a higher limit than {:.0} operations/s and {}.",
        who.name.as_deref().unwrap_or("the process that pidstat -d 1 shows"),
        who.share.map_or_else(|| "most".to_owned(), percent),
        disk.operations_per_second(),
        bytes_per_second(disk.bytes_per_second()),
    );
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        // Unwatched threads may belong to the service or to others.
        weights: vec![if waits.asleep.watched { STRONG } else { WEAK }, STRONG * disk.utilization],
        fixes: vec![Fix { text, command: None, keep: None, risk: None }],
        prove: format!(
            "Run the same scenario again: the queue of {} (iostat -x 1: aqu-sz) and its waits are small.",
            disk.device
        ),
        role: Role::Root,
    }))
}

fn asleep_evidence(waits: &DiskWaits) -> Evidence {
    waits.asleep.counted(
        format!("{:.2} threads on average", waits.asleep.mean),
        "several, if the disk were the cause",
        format!("{:.2} {} on average: {} per request", waits.asleep.mean, waits.asleep.who(), ms(waits.asleep_ms())),
    )
}

/// Where most of the threads sleep, and in which process.
fn place_evidence(waits: &DiskWaits) -> Option<Evidence> {
    let place = waits.asleep.groups.first()?;
    let function = place.function().unwrap_or("an unknown function");
    let file = place.path.as_deref().map_or_else(String::new, |path| format!(", at {path}"));
    let text = format!("{:.1} of them on average are {}'s in {function}{file}", place.mean, place.process);
    Some(waits.asleep.at(place, format!("{:.1} threads", place.mean), "none", text))
}

/// A cgroup's limit is reached: it explains the sleep of threads, while the device may be idle.
fn throttled(
    case: &Case<'_>,
    view: &View<'_>,
    disks: &Disks,
    waits: &DiskWaits,
    throttle: &Throttle,
) -> Result<Outcome, Missing> {
    let explains_ms = volume::of_requests(waits, case, waits.disks_ms(0.0))?;
    let asleep = asleep_evidence(waits);
    let limit = throttle.evidence(view, limit_text(throttle));
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![asleep, limit]));
    }
    let setting = view.setting_evidence(
        &throttle.source,
        &throttle.setting,
        "no limit, or a higher one",
        format!("{} of {} is {:.0}", throttle.setting, throttle.source, throttle.limit),
    );
    let mut evidence = vec![limit, setting, asleep];
    if let Some(disk) = disks.named(&throttle.device) {
        evidence.push(view.disk_evidence(disk, "a queue, if the device itself were the limit", idle_text(disk))?);
        evidence.extend(who(view, disk).evidence);
    }
    evidence.extend(place_evidence(waits));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![CERTAIN * throttle.reached_ratio, STRONG],
        fixes: vec![cgroup_limit::raise(view, throttle)],
        prove: "Run the same scenario again: the cgroup stays below its limit, and its threads hardly ever sleep uninterruptibly.".to_owned(),
        role: Role::Root,
    }))
}

fn limit_text(throttle: &Throttle) -> String {
    let (done, limit) = (rate(throttle.unit, throttle.rate), cgroup_limit::limit_words(throttle));
    format!(
        "the cgroup of {} did {done} of {}s on {}; its limit is {limit}, which it reached for {} of the time",
        throttle.source,
        throttle.direction,
        throttle.device,
        percent(throttle.reached_ratio)
    )
}

fn idle_text(disk: &Disk) -> String {
    if disk.utilization >= 0.5 {
        return what_it_does(disk);
    }
    format!("the device looks idle meanwhile, because delayed requests do not reach it. {}", what_it_does(disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const READ: &str = "io_schedule < __iomap_dio_rw < ext4_file_read_iter < vfs_read < __x64_sys_pread64";
    const IDLE: (f64, f64, f64) = (10.0, 4096.0, 0.5);

    fn base() -> SyntheticRecording {
        SyntheticRecording::new(12).requests(100, 200).setting("host", "cgroup.path", "/").setting(
            "pid:7",
            "cgroup.path",
            "/db",
        )
    }

    fn text(made: &SyntheticRecording) -> (String, String) {
        match made.judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => {
                let texts: Vec<&str> = found.evidence.iter().map(|e| e.text.as_str()).collect();
                (texts.join("\n"), format!("{:?}", found.fixes))
            }
            Ok(Outcome::Cleared(evidence)) => (format!("cleared: {evidence:?}"), String::new()),
            _ => ("not judged".to_owned(), String::new()),
        }
    }

    #[test]
    fn a_queue_that_threads_sleep_behind_is_found_once_a_stack() {
        let made = base()
            .disk("loop0", (400.0, 16_384.0, 50.0), (0.0, 0.0, 0.0))
            .disk("vda", (400.0, 16_384.0, 49.0), (0.0, 0.0, 0.0))
            .setting("host", "block.loop0.backing", "/image")
            .setting("host", "mount[/].fstype", "ext4")
            .setting("host", "mount[/].device", "vda")
            .setting("pid:7", "comm", "mariadbd")
            .counter("pid:7", "process_disk_io_bytes_total", &[("direction", "read")], 400.0 * 16_384.0)
            .asleep(20, "io_schedule", READ, Some("/data/t.ibd"));
        assert!((made.explains(&DEFINITION).unwrap() - 200.0).abs() < 5.0);
        let (evidence, fix) = text(&made);
        for part in [
            "loop0 (on vda): 400 reads",
            "20.0 in the queue",
            "mariadbd (pid 7) read and wrote 6.5 MB/s, 100 % of the I/O of loop0",
            "store's in io_schedule, at /data/t.ibd",
        ] {
            assert!(evidence.contains(part), "{part}: {evidence}");
        }
        assert!(fix.contains("mariadbd"), "{fix}");
    }

    #[test]
    fn a_cgroups_limit_above_an_idle_disk_is_named() {
        let labels = [("device", "vda"), ("direction", "read")];
        let made = base()
            .disk("vda", IDLE, IDLE)
            .asleep(15, "io_schedule", READ, None)
            .setting("pid:7", "cgroup.disk_limit[vda].read_bytes_per_second", "20000000")
            .counter("pid:7", "cgroup_disk_io_bytes_total", &labels, 19_900_000.0);
        let (evidence, fix) = text(&made);
        assert!(evidence.contains("its limit is 20 MB/s") && evidence.contains("looks idle"), "{evidence}");
        assert!(fix.contains("/blkio/db/blkio.throttle.read_bps_device"), "{fix}");
        assert_eq!(made.clone().without("cgroup_disk_io_bytes_total").explains(&DEFINITION), None);
        let lowered = made.tables(|tables| {
            let limit = "cgroup.disk_limit[vda].read_bytes_per_second";
            let now = tables.settings.rows.iter().find(|row| row.name == limit).unwrap().clone();
            let before = holdup_recording::rows::Setting { value: "40000000".into(), observed_at: -1, ..now };
            tables.settings.rows.push(before);
        });
        let (evidence, _) = text(&lowered);
        assert!(evidence.contains("its limit is 20 MB/s, lowered from 40 MB/s"), "{evidence}");
    }

    #[test]
    fn threads_behind_a_lock_while_the_disk_rests_clear_it() {
        let lock = "rwsem_down_write_slowpath < do_unlinkat < __x64_sys_unlink";
        let made = base().disk("vda", (0.0, 0.0, 0.0), (300.0, 4096.0, 1.0)).asleep(20, "do_unlinkat", lock, None);
        assert_eq!(made.explains(&DEFINITION), Some(0.0));
        let busy = base().disk("vda", (0.0, 0.0, 0.0), (500.0, 4096.0, 2.0)).asleep(20, "do_unlinkat", lock, None);
        assert!(
            busy.explains(&DEFINITION).unwrap() > 150.0,
            "a device that never rests is what the lock's holder waits for"
        );
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        let made = base().disk("vda", (400.0, 16_384.0, 50.0), IDLE).asleep(20, "io_schedule", READ, None);
        for metric in [
            "system_disk_operations_total",
            "system_disk_operation_time_seconds_total",
            "system_disk_io_time_seconds_total",
            "process_threads",
            "system_disk_weighted_io_time_seconds_total",
        ] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }
}
