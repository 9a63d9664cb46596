//! A disk or volume moves all the bytes that it may, reads and writes together.

use super::parts::ceiling::level::level_evidence;
use super::parts::ceiling::{self, origin, raise, weights};
use super::{Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Outcome, Source::With, Trait, ms};
use crate::case::Case;
use crate::causes::Role;
use crate::next_command;
use crate::resources::disk::{what_it_does, who};
use crate::resources::volume::level::{at_ceiling, rate};
use crate::resources::{is_felt, volume};
use holdup_signals::Missing;
use holdup_signals::host::flows::FlowSource;
use holdup_signals::host::throttle::Unit;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskLimit, Trait::FullDisk, Trait::LongStatement, Trait::Queue],
    follows_from: &[
        // A rate that steps down under an unchanged demand.
        Edge { from: &[&[With(Trait::DiskBurst)]], magnitude: Magnitude::Own(volume::burst::ended), is_added: false },
        Edge::same_time(&[&[With(Trait::DiskDemand)], &[With(Trait::Load)]]),
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::ThroughputCeiling, DOC, Judge::Alone(judge), &next_command::DISKS)
};

const DOC: Doc = Doc {
    title: "The disk is at its throughput limit",
    what: "Cloud disks, and the instances they are attached to, may move a limited number of bytes per second, reads and writes counted together; a smaller instance is allowed less than its volumes. Many may burst above their baseline for a while.",
    hurts: "The excess waits in the queue: the same statements with the same plans take ten or a hundred times as long, while CPU, memory, connections and operations per second are well below their limits.",
    needs: "The host's disk statistics (--watch host) and the thread states of the service's processes (--watch pid:N); or a cloud database's figures (read and write throughput, IOPS, queue depth). The level shows the limit; class and volume type name it.",
    predicts: "The sum of reads and writes, of one disk or of several together, stays at one level however the parts vary, while operations are in flight all the time and each waits longer than in quiet intervals. Operations per second vary with their size.",
    clears: "Bytes per second follow the demand; nothing is queued; operations per second are level and requests are small; or the waits are a small part of the delay.",
    looks_like: "A limit on operations is a plateau of operations, with small requests. A steady load is level and has no queue, or a queue that follows it. Reads or writes alone look ragged at a limit on both: only the sum is flat. A cgroup's limit on bytes applies above the device; disk_saturated finds it.",
    fix: "Fewer bytes (unchanged values that are sent again, vacuum after them, missing indexes, memory), or an instance and volume with a higher baseline: the smaller of the two counts.",
    prove: "The same load again: bytes per second follow the load, and few operations are in flight.",
    references: "AWS: Amazon EC2 user guide, Amazon EBS-optimized instances (baseline and burst by size); Amazon EBS I/O characteristics and monitoring; J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961.",
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    ceiling::judge(case, Unit::Bytes, host)
}

/// By the kernel's counters of devices.
fn host(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let disks = view.disks()?;
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    if let Some(cleared) = ceiling::no_disk_was_asked(case) {
        return Ok(cleared);
    }
    let (flows, at) = at_ceiling(case, FlowSource::Host)?;
    let Some(at) = at.into_iter().find(|a| a.binding.unit == Unit::Bytes) else {
        let slow = view.window;
        let queued = |f: &&holdup_signals::host::flows::Flow| f.queued(slow).unwrap_or(0.0);
        let busiest = flows.iter().max_by(|a, b| queued(a).total_cmp(&queued(b)));
        let evidence = busiest.and_then(|flow| ceiling::other_unit(case, flow, Unit::Bytes));
        return Ok(Outcome::Cleared(evidence.into_iter().collect()));
    };
    let disk = disks.named(&at.flow.name).or(disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue)));
    let explains_ms = volume::of_requests(&waits, case, waits.disks_ms(disk.map_or(0.0, |d| d.utilization)))?;
    let asleep = waits.asleep.counted(
        format!("{:.2} threads on average", waits.asleep.mean),
        "several, if the disk were the cause",
        format!("waits for disks are at most {} of a request. {}", ms(explains_ms), origin(case, &at)),
    );
    let mut evidence = level_evidence(&at);
    evidence.push(asleep);
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    evidence.extend(ceiling::other_unit(case, &at.flow, Unit::Operations));
    let (mut fix, mut weights) = (raise(case, &at), weights(&at.binding.ceiling));
    if let Some(disk) = disk {
        evidence.push(view.disk_evidence(disk, "below 1", what_it_does(disk))?);
        let who = who(&view, disk);
        if let Some(name) = &who.name {
            fix.text = format!("{} {name} does most of it.", fix.text);
        }
        weights = who.known(weights);
        evidence.extend(who.evidence);
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![fix],
        prove: format!(
            "Run the same scenario again: {} moves more than {}, and few operations wait for it.",
            at.flow.name,
            rate(Unit::Bytes, at.binding.ceiling.level)
        ),
        role: Role::Root,
    }))
}

mod signs;
#[cfg(test)]
mod tests;
