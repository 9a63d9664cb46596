//! Requests wait for a CPU, or compute for longer.

mod bound;
mod cpu_taken_by_others;
mod dearer;
mod generator;
mod one_core;
mod overloaded;
mod run_queue;
mod signs;
mod taken;
#[cfg(test)]
mod tests;

use self::bound::at_most;
use self::run_queue::{RunQueue, unmeasured};
use super::parts::cloud;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::Of, Source::With, Trait,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::cpu::CpuUse;
use crate::resources::{is_too_small, share};
use crate::strength::{STRONG, Strength};
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::FullCpu, Trait::Queue],
    follows_from: &[
        // Threads of a group that has used up its quota stand in the run queue until its next period.
        // Opening and closing tables is CPU work, so are statements that run once for each row, temporary
        // tables, and the dump of a backup: where CPUs mostly do that, it explains most of the shortage.
        Edge::same_time(&[
            &[Of(Cause::CpuThrottled)],
            &[
                Of(Cause::TableCacheSmall),
                Of(Cause::PlanChanged),
                Of(Cause::MissingIndex),
                Of(Cause::StatementRegression),
                Of(Cause::NPlusOneQueries),
                Of(Cause::OnDiskTemporaryTables),
                Of(Cause::BackupOrBulkLoad),
                Of(Cause::OldSnapshot),
                Of(Cause::ConnectionStorm),
            ],
            &[Of(Cause::StatementMixChanged), Of(Cause::CacheMisses)],
            &[With(Trait::Load)],
        ]),
    ],
    traces: &[cpu_taken_by_others::PATTERN],
    signs: Some(signs::find),
    ..Definition::new(Cause::CpuSaturated, DOC, Judge::Alone(judge), &next_command::CPUS_AND_MEMORY)
};

const DOC: Doc = Doc {
    title: "The CPU holds requests up",
    what: "More threads are runnable than there are CPUs: threads of the service stand in the run queue. Or a process whose interpreter has a lock (Ruby, Python, Node.js) uses the one CPU that it can, while others idle: its threads wait for the lock. Or each request computes longer than before.",
    hurts: "Everything takes longer by the same factor, and tails grow first.",
    needs: "The host's CPU time (--watch host), and to quantify it the run-queue wait of the service's processes (--watch pid:N or server:PORT).",
    predicts: "CPUs are full, on average or again and again, and run-queue wait per request grew by a large part of the excess. Or all CPUs are busy, mostly with the service, and fewer requests end than are due, or users who each wait for their response queue: requests then wait in front of the service. Or the app's CPU time per request grew by a large part of the excess.",
    clears: "CPUs were idle at all times: a thread that is woken waits a little then, too. (Niced work is neither: the service's own run-queue wait decides.) Or the service's threads waited for a CPU for a small share of the delay, and requests end as fast as they are due.",
    looks_like: "A high load average with idle CPUs is something else: threads in uninterruptible sleep count there too. Time in iowait is not work either, and says what the idle CPU waits for. Time that packets (softirq) or other guests (steal) take is not the service's: the evidence says who takes it. CPUs full of niced work are not short for others: it makes way, unless it is in another cgroup, whose weight counts then.",
    fix: "Find what uses the CPU, then reduce it, or add CPUs.",
    prove: "The same load again: run-queue wait per request is small.",
    references: "B. Gregg, Systems Performance, 2nd ed., ch. 6; kernel documentation: sched-stats, PSI; L. Kleinrock, Queueing Systems, vol. 1 (M/M/1 processor sharing).",
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(cleared) = cloud::cpus(case) {
        return Ok(cleared);
    }
    let view = case.slow();
    let cpus = CpuUse::measure(&view)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let mut evidence = vec![cpus.says_how_busy()];
    let waited = RunQueue::measure(&view, completed);
    let mut explains_ms = match &waited {
        Ok(waited) => {
            // A thread that is woken waits a little for a CPU on a healthy day, too.
            let baseline = case.baseline().and_then(|baseline| {
                let completed = case.completed_in(baseline.window).ok()?.max(1.0);
                RunQueue::measure(&baseline, completed).ok()
            });
            evidence.push(waited.evidence(baseline.as_ref()));
            (waited.request_ms - baseline.map_or(0.0, |baseline| baseline.request_ms)).max(0.0)
        }
        Err(_) => unmeasured(case, &cpus, completed, &mut evidence),
    };
    if let Some((most, piece)) = at_most(case, completed).filter(|(most, _)| *most < explains_ms) {
        explains_ms = most;
        evidence.push(piece);
    }
    // holdup's own loop stands in the same run queue.
    if let Some((late_ms, piece)) = generator::find(case, &view, &cpus, completed) {
        explains_ms += late_ms;
        evidence.insert(usize::from(late_ms >= explains_ms - late_ms), piece);
    }
    // Threads that wait for an interpreter's lock sleep, and a thread that computes does not wait:
    // the run queue shows neither.
    let one_core = one_core::find(case, completed).filter(|one| share(case, one.explains_ms) >= MATTERS);
    if let Some(one) = one_core.filter(|one| one.explains_ms > explains_ms || !cpus.is_short()) {
        evidence.insert(0, one.evidence);
        let prove = "Run the same scenario again: no process uses all of a CPU.";
        return Ok(found(one.explains_ms, evidence, vec![STRONG], vec![one_core::fix(one.processes)], prove));
    }
    let dearer = dearer::find(case, &view).filter(|dearer| share(case, dearer.explains_ms) >= MATTERS);
    if let Some(dearer) = dearer.filter(|dearer| dearer.explains_ms > explains_ms || !cpus.is_short()) {
        evidence.insert(0, dearer.evidence);
        let prove = "Run the same scenario again: a request uses as little CPU time as before.";
        return Ok(found(dearer.explains_ms, evidence, vec![STRONG], vec![dearer::fix()], prove));
    }
    if let Some(pieces) = overloaded::find(case)? {
        // A few requests run at once and the others are not admitted: the whole delay is theirs.
        explains_ms = explains_ms.max(case.excess_ms());
        evidence.extend(pieces);
    } else if !cpus.may_be_short() || (cpus.is_short() || waited.is_ok()) && is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    } else if waited.is_err() {
        return Err(Missing::new(
            "run-queue wait of the service's processes",
            "--watch pid:N for the app and the database",
        ));
    }
    evidence.extend(overloaded::load_average(&view));
    let (taken, fixes): (Vec<_>, Vec<_>) = taken::find(&view, case.baseline().as_ref()).into_iter().unzip();
    evidence.extend(taken);
    let weights = vec![STRONG * cpus.busy.max(cpus.full), STRONG];
    let prove = "Run the same scenario again: run-queue wait per request is small.";
    let fixes = fixes.into_iter().chain([profile()]).collect();
    Ok(found(explains_ms, evidence, weights, fixes, prove))
}

fn profile() -> Fix {
    let text = "Profile what uses the CPU (perf top), make it cheaper or run less of it at once; then add CPUs.";
    Fix { text: text.to_owned(), command: None, keep: None, risk: None }
}

fn found(explains_ms: f64, evidence: Vec<Evidence>, weights: Vec<Strength>, fixes: Vec<Fix>, prove: &str) -> Outcome {
    let prove = prove.to_owned();
    Outcome::Found(CauseFinding { explains_ms, evidence, weights, fixes, prove, role: Role::Root })
}
