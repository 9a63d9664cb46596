//! Threads pile up in uninterruptible sleep: the load average is high and CPUs are idle. This alone
//! names no culprit; the reason for their sleep does.

mod signs;

use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Outcome, Role, Source::Of, Source::With, Trait, ms, percent,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::strength::{CERTAIN, STRONG};
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::{CpuMode, CpuTime};
use holdup_signals::{Asleep, Missing, Place, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Queue],
    follows_from: &[Edge::same_time(&[
        &[Of(Cause::DiskSaturated)],
        &[With(Trait::DiskLimit)],
        &[With(Trait::DiskDemand)],
    ])],
    signs: Some(signs::find),
    ..Definition::new(Cause::UninterruptiblePileup, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Threads pile up in uninterruptible sleep",
    what: "Many threads at once are in state D: asleep in the kernel until they get a disk, a file system's lock or memory. Linux counts them in the load average, like running and runnable ones.",
    hurts: "They do nothing meanwhile, and can't be interrupted. The load average is tens of times the number of CPUs, CPUs are idle, and no dashboard says why.",
    needs: "The state of every thread (--watch host or --watch pid:N); to name the place, wait channels, kernel stacks and system calls (root, or CAP_SYS_PTRACE and CAP_SYS_ADMIN).",
    predicts: "More threads in D than half of the CPUs, on average, for a large part of the excess; a load average far above the number of running threads; idle CPU time.",
    clears: "Hardly any thread is in D on average, or the reason for their sleep is a small share of the delay.",
    looks_like: "A high load average from running or runnable threads: CPUs are then busy. `procs_blocked` and iowait do not measure this: both count only threads that wait for a disk's I/O, not those behind a lock.",
    fix: "Fix what they sleep for: the finding that this one follows from.",
    prove: "The same load again: no thread in D on average, and a load average near the number of running threads.",
    references: "proc_loadavg(5); proc_pid_stat(5) (field 3, state); Linux: kernel/sched/loadavg.c; B. Gregg, Linux Load Averages: Solving the Mystery, 2017.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "ps -eTo pid,stat,comm,wchan:32",
    1,
    "in which kernel function the threads sleep (as root: cat /proc/PID/stack)",
);

const HOST: &str = "--watch host";

/// Fewer threads in D on average are not a pile-up, however few CPUs there are.
const LEAST: f64 = 2.0;

/// This many per CPU are one: sleeping threads then make as much of the load as a half-busy
/// machine.
const PER_CPU: f64 = 0.5;

/// Most places to describe.
const PLACES_TOLD: usize = 3;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let asleep = view.asleep()?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let explains_ms = asleep.per_request_ms(asleep.mean, completed);
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST).map_or(0.0, |cpus| cpus.mean);
    let least = LEAST.max(PER_CPU * cpus);
    let counted = asleep.counted(
        format!("{:.1} threads on average", asleep.mean),
        format!("below {least:.0}"),
        format!(
            "{:.1} threads {} were in uninterruptible sleep on average, {:.0} at most, in {} samples: {} per request",
            asleep.mean,
            if asleep.watched { "of the watched processes" } else { "of this machine" },
            asleep.max,
            asleep.instants,
            ms(explains_ms)
        ),
    );
    if asleep.mean < least || is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    let mut evidence = vec![counted];
    evidence.extend(asleep.groups.iter().take(PLACES_TOLD).map(|place| place_of(&asleep, place)));
    evidence.extend(load(&view, &asleep));
    let idle = idle(&view);
    let idle_ratio = idle.as_ref().map_or(0.5, |(ratio, _)| *ratio);
    evidence.extend(idle.map(|(_, evidence)| evidence));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG, CERTAIN * idle_ratio],
        fixes: vec![Fix {
            text: "It disappears with its cause. If that is unknown, see where they sleep:".to_owned(),
            command: Some(
                "ps -eLo state,pid,tid,comm,wchan:32 | awk '$1 == \"D\"' | sort -k5 | uniq -c -f4".to_owned(),
            ),
            keep: None,
            risk: None,
        }],
        prove: "Run the same scenario again: no thread in state D on average.".to_owned(),
        role: Role::Symptom,
    }))
}

fn place_of(asleep: &Asleep, place: &Place) -> Evidence {
    let function = place.function().unwrap_or("a place that could not be read");
    let file = place.path.as_ref().map_or_else(String::new, |path| format!(", on {path}"));
    let text = format!("{:.1} threads of {} slept in {function} on average{file}", place.mean, place.process);
    asleep.at(place, format!("{:.1} threads", place.mean), "0", text)
}

/// The load average compared with the threads that ran.
fn load(view: &View<'_>, asleep: &Asleep) -> Option<Evidence> {
    let load = view.gauge(metrics::host::LOAD_AVERAGE_1M.name, &[], HOST).ok()?;
    let running = view.gauge(metrics::host::THREADS.name, &[("state", "R")], HOST).ok();
    let beside = running
        .map_or_else(String::new, |r| format!(", while {:.1} threads were running or runnable on average", r.mean));
    Some(load.evidence(
        format!("{:.1}", load.max),
        "near the number of running threads",
        format!("the 1-minute load average rose to {:.1}{beside} and {:.1} slept", load.max, asleep.mean),
    ))
}

/// Share (0-1) of CPU time that was idle, and evidence of it.
fn idle(view: &View<'_>) -> Option<(f64, Evidence)> {
    let cpu = CpuTime::measure(view).ok()?;
    let (idle, ratio, waiting) = (cpu.counter(CpuMode::Idle)?, cpu.unused_ratio()?, cpu.ratio(CpuMode::Iowait));
    let text =
        format!("{} of CPU time was idle, of which {} counted as waiting for I/O", percent(ratio), percent(waiting));
    Some((ratio, idle.evidence(percent(ratio), "little, if the load came from CPUs", text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::Answer;

    fn made(asleep: i64) -> SyntheticRecording {
        SyntheticRecording::new(10).requests(100, 1_000).gauge("host", "system_cpu_logical_count", &[], 8.0).asleep(
            asleep,
            "rwsem_down_write_slowpath",
            "rwsem_down_write_slowpath < down_write",
            None,
        )
    }

    #[test]
    fn a_pile_up_is_a_symptom_and_no_culprit() {
        assert!(made(90).explains(&DEFINITION).is_some_and(|ms| (ms - 900.0).abs() < 100.0));
        let diagnosis = made(90).diagnose();
        assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Undecided, None));
        assert!(diagnosis.findings.iter().any(|f| f.cause == DEFINITION.cause && f.role == Role::Symptom));
    }

    #[test]
    fn few_threads_or_little_time_are_none() {
        // 3 of 8 CPUs' worth are no pile-up, though they sleep for 30 ms of each request.
        assert_eq!(made(3).explains(&DEFINITION), Some(0.0));
        assert_eq!(made(90).without("process_threads").explains(&DEFINITION), None);
    }
}
