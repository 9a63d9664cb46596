//! Requests wait for a CPU, or compute for longer.

mod cpu_taken_by_others;
mod dearer;
mod generator;
mod one_core;
mod overloaded;
mod signs;
#[cfg(test)]
mod tests;

use crate::change::Fix;
use holdup_recording::{Labels, metrics};

use super::parts::cloud;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::Of, Source::With, Trait, ms,
    percent,
};
use crate::case::Case;
use crate::next_command;
use crate::resources::cpu::{CpuUse, HOST};
use crate::resources::{is_too_small, share};
use crate::strength::{STRONG, Strength};
use holdup_signals::app::accounts::Owner;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View};

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
            &[Of(Cause::StatementMixChanged)],
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
    looks_like: "A high load average with idle CPUs is something else: threads in uninterruptible sleep count there too. iowait is idle time. CPUs full of niced work are not short for others: it makes way, unless it is in another cgroup, whose weight counts then.",
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
        return Ok(found(one.explains_ms, evidence, vec![STRONG], one_core::fix(one.processes), prove));
    }
    let dearer = dearer::find(case, &view).filter(|dearer| share(case, dearer.explains_ms) >= MATTERS);
    if let Some(dearer) = dearer.filter(|dearer| dearer.explains_ms > explains_ms || !cpus.is_short()) {
        evidence.insert(0, dearer.evidence);
        let prove = "Run the same scenario again: a request uses as little CPU time as before.";
        return Ok(found(dearer.explains_ms, evidence, vec![STRONG], dearer::fix(), prove));
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
    let fix = Fix {
        text: "Profile what uses the CPU (perf top), make it cheaper or run less of it at once; then add CPUs."
            .to_owned(),
        command: None,
        keep: None,
        risk: None,
    };
    let weights = vec![STRONG * cpus.busy.max(cpus.full), STRONG];
    let prove = "Run the same scenario again: run-queue wait per request is small.";
    Ok(found(explains_ms, evidence, weights, fix, prove))
}

fn found(explains_ms: f64, evidence: Vec<Evidence>, weights: Vec<Strength>, fix: Fix, prove: &str) -> Outcome {
    let prove = prove.to_owned();
    Outcome::Found(CauseFinding { explains_ms, evidence, weights, fixes: vec![fix], prove, role: Role::Root })
}

/// Time for which threads of the watched processes stood in the run queue.
struct RunQueue {
    waited: Counter,
    /// For a request, milliseconds.
    request_ms: f64,
}

impl RunQueue {
    fn measure(view: &View<'_>, completed: f64) -> Result<Self, Missing> {
        let waited = view.counter(metrics::process::RUN_QUEUE.name, &[], "--watch pid:N");
        let waited =
            waited.or_else(|_| view.counter(metrics::server::RUN_QUEUE_WAIT.name, &[], "--watch server:PORT"))?;
        Ok(Self { request_ms: waited.delta / completed * 1e3, waited })
    }

    fn evidence(&self, baseline: Option<&Self>) -> Evidence {
        let before = baseline.map_or_else(String::new, |c| format!(", {} in the baseline window", ms(c.request_ms)));
        let text = format!(
            "all threads of the watched processes together waited {} per request for a CPU{before}",
            ms(self.request_ms)
        );
        let observed = format!("{} a request", ms(self.request_ms));
        self.waited.evidence(observed, "most of the delay, if CPU were the cause", text)
    }
}

/// The most that waiting for a CPU can be if no kernel counted it, milliseconds of a request: the
/// processor-sharing queue that this utilization makes of the CPU time used.
fn unmeasured(case: &Case<'_>, cpus: &CpuUse, completed: f64, evidence: &mut Vec<Evidence>) -> f64 {
    let used = cpus.seconds / completed * 1e3;
    let queueing = used * cpus.busy / (1.0 - cpus.busy).max(1e-3);
    let text = format!(
        "a request used at most {} of CPU: at {} busy, queueing for it makes at most {}",
        ms(used),
        percent(cpus.busy),
        ms(queueing)
    );
    evidence.push(cpus.time.evidence(ms(used), String::new(), text));
    match running(case, completed) {
        // Other processes may use the CPUs: sessions that wait for one here show it.
        Some((running, piece)) if running < queueing => {
            evidence.push(piece);
            running
        }
        _ => queueing,
    }
}

/// Waits for what another request holds, without running.
const HELD: [Owner; 2] = [Owner::PoolWait, Owner::LockWait];

/// The most milliseconds of a mean request that waiting for a CPU can account for, from its
/// accounts: a process's threads also wait for other things than requests. For held resources, at
/// most the waiting that requests of this length cause each other over a single one (M/M/1: ρ/(1-ρ)
/// times as long). None without accounts.
fn at_most(case: &Case<'_>, completed: f64) -> Option<(f64, Evidence)> {
    let view = case.slow();
    let of = |owner: Owner| case.accounts().mean_ms_of_app(owner);
    let of_generator = |owner: &Owner| *owner as usize <= Owner::SendLag as usize;
    let runs = Owner::ALL.into_iter().filter(|owner| !HELD.contains(owner) && !of_generator(owner));
    let runs_ms: f64 = runs.map(of).sum::<Option<f64>>()?;
    let busy = completed / view.window.seconds() * runs_ms / 1e3;
    let behind_ms = if busy < 1.0 { runs_ms * busy / (1.0 - busy) } else { f64::INFINITY };
    let held_ms: f64 = HELD.into_iter().map(|owner| of(owner).map(|ms| ms.min(behind_ms))).sum::<Option<f64>>()?;
    let most = runs_ms + held_ms;
    let text = format!(
        "by its own spans a request was running, or could wait for a CPU, for {}: with the waits that causes, at most {}",
        ms(runs_ms),
        ms(most)
    );
    let labels = Labels::new([("resource", "request")]);
    Some((most, Evidence::new("spans", "duration_ns", labels, view.window, ms(most), "most of the delay", text)))
}

/// Milliseconds of a statement for which sessions were runnable, because they had nothing to wait
/// for; none if statements are not the client's requests, or the server does not report waits.
fn running(case: &Case<'_>, completed: f64) -> Option<(f64, Evidence)> {
    let view = case.slow();
    let waits = view.server_waits().ok().flatten().filter(|_| case.asks_statements())?;
    let running_ms = waits.running * view.window.seconds() / completed * 1e3;
    let text = format!(
        "{:.1} of {:.1} active sessions on average waited only for a CPU: at most {} per request",
        waits.running,
        waits.active,
        ms(running_ms)
    );
    let counted = view.gauge(metrics::postgresql::SESSIONS.name, &[], HOST).ok()?;
    Some((running_ms, counted.evidence(format!("{:.1} sessions", waits.running), "most of them", text)))
}
