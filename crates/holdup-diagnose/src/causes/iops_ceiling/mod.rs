//! A disk does all the operations per second that it may: a limit on their number, whatever their
//! size.

mod signs;

use super::parts::ceiling::level::level_evidence;
use super::parts::ceiling::{self, weights};
use super::parts::cgroup_limit;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Outcome, Role, Source::With, Trait, bytes, ms,
    percent, thousands,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::disk::{what_it_does, who};
use crate::resources::volume::level::{AtCeiling, at_ceiling};
use crate::resources::{is_felt, volume};
use crate::strength::{CERTAIN, STRONG};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::flows::{FlowSource, SMALL_BYTES};
use holdup_signals::host::throttle::{Throttle, Unit};
use holdup_signals::{Disk, Missing};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskLimit, Trait::FullDisk, Trait::LongStatement, Trait::Queue],
    follows_from: &[
        // A rate that steps down under an unchanged demand.
        Edge { from: &[&[With(Trait::DiskBurst)]], magnitude: Magnitude::Own(volume::burst::ended), is_added: false },
        Edge::same_time(&[&[With(Trait::DiskDemand)], &[With(Trait::Load)]]),
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::IopsCeiling, DOC, Judge::Alone(judge), &next_command::DISKS)
};

const DOC: Doc = Doc {
    title: "The disk is at its IOPS limit",
    what: "Cloud disks and cgroups have a limit on reads and writes per second, counted together. Small requests reach it long before the limit on bytes.",
    hurts: "Every operation beyond it waits in the queue, and the threads that requested it sleep uninterruptibly, while throughput in MB/s looks harmless.",
    needs: "The host's disk statistics (--watch host), and to quantify it the thread states and cgroup of the service's processes (--watch pid:N); or a cloud database's figures (IOPS, throughput, queue depth).",
    predicts: "The sum of reads and writes stays at one level, whatever their mix, while operations are small and queued, and each waits longer than in quiet intervals; threads of the service sleep uninterruptibly for a large part of the excess.",
    clears: "Operations per second follow the demand; the queue is sometimes empty; requests are large, so that bytes are the limit; or threads hardly ever slept for the disk.",
    looks_like: "A steady load on a fast disk is level too, but has no queue. A limit on bytes is a plateau of bytes, with large requests. A plateau of reads alone, with writes on top, is not a limit.",
    fix: "Fewer operations (memory, indexes, group commit), larger ones where adjacent data is wanted anyway, or a higher limit.",
    prove: "The same load again: operations per second follow the load, and the queue is short.",
    references: "AWS: Amazon EBS I/O characteristics and monitoring (I/O size, merging, queue length); Linux: Documentation/admin-guide/iostats.rst, cgroup-v1/blkio-controller.rst, cgroup-v2.rst (io.max).",
};

const HOST: &str = "--watch host";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    ceiling::judge(case, Unit::Operations, host)
}

/// By the kernel's counters of devices, and by cgroups' limits.
fn host(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let disks = view.disks()?;
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    let reached: Vec<Throttle> = view.throttles()?.into_iter().filter(Throttle::is_reached).collect();
    let device = reached.first().and_then(|limit| disks.named(&limit.device));
    let limit = reached.into_iter().find(|t| t.unit == Unit::Operations);
    let device = limit.as_ref().and_then(|limit| disks.named(&limit.device)).or(device);
    let busiest = disks.tops().max_by(|a, b| a.operation_seconds().total_cmp(&b.operation_seconds()));
    let Some(disk) = device.or(busiest) else {
        let none = view.counter(metrics::host::DISK_OPERATIONS.name, &[], HOST)?;
        return Ok(Outcome::Cleared(vec![none.evidence("0", "many", "no disk did any I/O")]));
    };
    let asleep_ms = volume::of_requests(&waits, case, waits.disks_ms(disk.utilization))?;
    let asleep = waits.asleep.counted(
        format!("{:.2} threads on average", waits.asleep.mean),
        "several, if the disk were the cause",
        format!("waits for disks are at most {} of a request", ms(asleep_ms)),
    );
    if !is_felt(case, asleep_ms)? {
        return Ok(Outcome::Cleared(vec![asleep]));
    }
    let who = who(&view, disk);
    let (mut evidence, weights, fix) = match &limit {
        Some(limit) => {
            let text = format!(
                "the limit of the cgroup of {} on {}s of {} is {}, and was reached for {} of the time",
                limit.source,
                limit.direction,
                limit.device,
                cgroup_limit::limit_words(limit),
                percent(limit.reached_ratio)
            );
            (
                vec![limit.evidence(&view, text)],
                vec![CERTAIN * limit.reached_ratio, STRONG],
                cgroup_limit::raise(&view, limit),
            )
        }
        None => match level(case, disk)? {
            Ok(at) => {
                let text = format!(
                    "Fewer operations, or a disk that may do more than {} per second: {} does most of them.",
                    thousands(at.binding.ceiling.level),
                    who.name.as_deref().unwrap_or("the process that pidstat -d 1 shows")
                );
                let fix = Fix { text, command: None, keep: None, risk: None };
                (level_evidence(&at), who.known(weights(&at.binding.ceiling)), fix)
            }
            Err(cleared) => return Ok(Outcome::Cleared(cleared)),
        },
    };
    evidence.push(view.disk_evidence(disk, "below 1", what_it_does(disk))?);
    evidence.push(asleep);
    evidence.extend(who.evidence);
    Ok(Outcome::Found(CauseFinding {
        explains_ms: asleep_ms,
        evidence,
        weights,
        fixes: vec![fix],
        prove: "Run the same scenario again: operations per second follow the load, and the queue is short.".to_owned(),
        role: Role::Root,
    }))
}

/// The limit on operations that `disk` has reached, or evidence that it has reached none.
fn level(case: &Case<'_>, disk: &Disk) -> Result<Result<AtCeiling, Vec<Evidence>>, Missing> {
    let view = case.slow();
    let labels = [("device", disk.device.as_str())];
    let operations = view.counter(metrics::host::DISK_OPERATIONS.name, &labels, HOST)?;
    let size = operations.evidence(
        bytes(disk.bytes_each()),
        format!("above {}, if bytes were the limit", bytes(SMALL_BYTES)),
        format!("a read or write of {} was {} on average", disk.name(), bytes(disk.bytes_each())),
    );
    if disk.bytes_each() > SMALL_BYTES {
        return Ok(Err(vec![size]));
    }
    let (flows, at) = at_ceiling(case, FlowSource::Host)?;
    let here = at.into_iter().find(|a| a.binding.unit == Unit::Operations && a.flow.name == disk.device);
    Ok(here.ok_or_else(|| {
        let flow = flows.iter().find(|f| f.name == disk.device);
        flow.and_then(|f| ceiling::other_unit(case, f, Unit::Operations)).into_iter().chain([size]).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

    fn made(bytes: f64, await_ms: f64) -> SyntheticRecording {
        SyntheticRecording::new(14)
            .requests(100, 200)
            .disk("vda", (400.0, bytes, await_ms), (100.0, bytes, await_ms))
            .asleep(20, "io_schedule", READ, None)
    }

    #[test]
    fn a_level_with_a_queue_is_a_limit() {
        assert!((made(8_192.0, 40.0).explains(&DEFINITION).unwrap() - 200.0).abs() < 5.0);
    }

    #[test]
    fn large_requests_and_a_demand_that_is_followed_are_not() {
        assert_eq!(made(120_000.0, 40.0).explains(&DEFINITION), Some(0.0));
        let operations = [("device", "vda"), ("direction", "read")];
        let rising = made(8_192.0, 40.0).without("system_disk_operations_total").counted(
            "host",
            "system_disk_operations_total",
            &operations,
            |s| (100 * s * s) as f64,
        );
        let rising =
            rising.counter("host", "system_disk_operations_total", &[("device", "vda"), ("direction", "write")], 0.0);
        assert_eq!(rising.explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn a_cgroups_limit_is_known() {
        let read = [("device", "vda"), ("direction", "read")];
        let made = SyntheticRecording::new(14)
            .requests(100, 200)
            .disk("vda", (200.0, 4096.0, 0.3), (1.0, 4096.0, 0.3))
            .asleep(20, "io_schedule", READ, None)
            .setting("pid:7", "cgroup.path", "/db")
            .setting("pid:7", "cgroup.disk_limit[vda].read_operations_per_second", "200")
            .counter("pid:7", "cgroup_disk_operations_total", &read, 199.0);
        assert!(made.explains(&DEFINITION).unwrap() > 190.0);
        assert_eq!(made.without("cgroup_disk_operations_total").explains(&DEFINITION), None);
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        let made = made(8_192.0, 40.0);
        for metric in [
            "system_disk_operations_total",
            "system_disk_io_bytes_total",
            "system_disk_weighted_io_time_seconds_total",
            "process_threads",
        ] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }

    #[test]
    fn a_clouds_volume_is_known_by_its_provision() {
        let labels = [("db_instance", "db")];
        let mut made =
            SyntheticRecording::new(60).requests(100, 500).gauge("cw", "aws_disk_queue_depth", &labels, 45.0);
        for (direction, share) in [("read", 0.8), ("write", 0.2)] {
            made = made.gauge("cw", &format!("aws_{direction}_iops"), &labels, share * 3_000.0).counted(
                "cw",
                &format!("aws_{direction}_throughput_bytes_per_second"),
                &labels,
                move |s| share * 30e6 * (1.0 + 0.3 * (s as f64 * 1.9).sin()),
            );
        }
        let known =
            made.clone().setting("aws", "volume.type", "gp3").setting("aws", "volume.size_bytes", "107374182400");
        let Ok(Outcome::Found(found)) = known.judge(&DEFINITION) else { panic!("not found") };
        let texts: Vec<&str> = found.evidence.iter().map(|e| e.text.as_str()).collect();
        assert!(texts.join("\n").contains("It is the baseline of the gp3 volume (3,000 operations/s"), "{texts:?}");
        // The same level without a known volume has no origin.
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.evidence.iter().any(|e| e.text.contains("origin is unknown")));
        assert_eq!(
            made.without("aws_disk_queue_depth").explains(&DEFINITION),
            None,
            "without a queue a level says nothing"
        );
    }
}
