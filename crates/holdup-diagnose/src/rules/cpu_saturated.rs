//! Requests wait for a CPU, or compute for longer.

mod dearer;
mod one_core;
#[cfg(test)]
mod tests;

use holdup_recording::manifest::Model;
use holdup_recording::{Labels, metrics};

use super::{Doc, Judge, MATTERS, Outcome, Role, Rule, RuleFinding, ms, percent};
use crate::accounts::Owner;
use crate::case::Case;
use crate::resources::cpu::{self, CpuUse, HOST};
use crate::resources::share;
use crate::strength::{STRONG, Strength};
use holdup_signals::client::{mean_over, service_ms};
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::{Counter, Missing, View};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "cpu_saturated",
    doc: Doc {
        title: "The CPU holds requests up",
        what: "More threads are runnable than there are CPUs: threads of the service stand in the run queue. Or a process whose interpreter has a lock (Ruby, Python, Node.js) uses the one CPU that it can, while others idle: its threads wait for the lock. Or each request computes longer than before.",
        hurts: "Everything takes longer by the same factor, and tails grow first.",
        needs: "The host's CPU time (--watch host), and to quantify it the run-queue wait of the service's processes (--watch pid:N or server:PORT).",
        predicts: "CPUs are full, on average or again and again, and run-queue wait per request grew by a large part of the excess. Or all CPUs are busy, mostly with the service, and fewer requests end than are due, or users who each wait for their response queue: requests then wait in front of the service. Or the app's CPU time per request grew by a large part of the excess.",
        clears: "CPUs were idle at all times: a thread that is woken waits a little then, too. Or the service's threads waited for a CPU for a small share of the delay, and requests end as fast as they are due.",
        looks_like: "A high load average with idle CPUs is something else: threads in uninterruptible sleep count there too. iowait is idle time.",
        fix: "Find what uses the CPU, then reduce it, or add CPUs.",
        prove: "The same load again: run-queue wait per request is small.",
        references: "B. Gregg, Systems Performance, 2nd ed., ch. 6; kernel documentation: sched-stats, PSI; L. Kleinrock, Queueing Systems, vol. 1 (M/M/1 processor sharing).",
    },
    judge: Judge::Alone(judge),
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let cpus = CpuUse::measure(&view)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let mut evidence = vec![says_how_busy(&cpus)];
    let waited = RunQueue::measure(&view, completed);
    let mut explains_ms = match &waited {
        Ok(waited) => {
            // A thread that is woken waits a little for a CPU on a healthy day, too.
            let calm = case.calm().and_then(|calm| {
                let completed = case.completed_in(calm.window).ok()?.max(1.0);
                RunQueue::measure(&calm, completed).ok()
            });
            evidence.push(waited.evidence(calm.as_ref()));
            (waited.request_ms - calm.map_or(0.0, |calm| calm.request_ms)).max(0.0)
        }
        Err(_) => unmeasured(case, &cpus, completed, &mut evidence),
    };
    if let Some((most, piece)) = at_most(case, completed).filter(|(most, _)| *most < explains_ms) {
        explains_ms = most;
        evidence.push(piece);
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
    if let Some(pieces) = overloaded(case, cpus.busy, cpus.seconds)? {
        // A few requests run at once and the others are not admitted: the whole delay is theirs.
        explains_ms = explains_ms.max(case.excess_ms());
        evidence.extend(pieces);
    } else if share(case, explains_ms) < MATTERS || !cpus.is_short() {
        return Ok(Outcome::Cleared(evidence));
    } else if waited.is_err() {
        return Err(Missing::new(
            "run-queue wait of the service's processes",
            "--watch pid:N for the app and the database",
        ));
    }
    evidence.extend(load_average(&view));
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
    Outcome::Found(RuleFinding { explains_ms, evidence, weights, fixes: vec![fix], prove, role: Role::Root })
}

fn says_how_busy(cpus: &CpuUse) -> Evidence {
    let text = if cpus.is_short() {
        format!("CPUs were {} busy, and all of them full in {} of the samples", percent(cpus.busy), percent(cpus.full))
    } else {
        format!("{} of CPU time was idle", percent(1.0 - cpus.busy))
    };
    cpus.evidence("near 100 %, if CPU were the cause", text)
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

    fn evidence(&self, calm: Option<&Self>) -> Evidence {
        let before = calm.map_or_else(String::new, |c| format!(", {} in the baseline window", ms(c.request_ms)));
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

fn load_average(view: &View<'_>) -> Option<Evidence> {
    let load = view.gauge(metrics::host::LOAD_AVERAGE_1M.name, &[], HOST).ok()?;
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST).ok()?;
    let normalised = load.max / cpus.mean.max(1.0);
    let text = format!("load average was up to {normalised:.1} per CPU");
    Some(load.evidence(format!("{normalised:.1} a CPU"), "below 1", text))
}

/// CPUs count as fully used from this share (0-1): between two requests there is always a moment.
const ALL_BUSY: f64 = 0.95;

/// Fewer requests end than are due below this share (0-1): some are in flight at the end.
const KEEPS_UP: f64 = 0.95;

/// Whether the demand exceeds the CPUs: all are busy, mostly with the service, and fewer requests
/// end than are due, or users queue. A service completes at most CPUs over CPU time per request
/// (utilization law), whatever waits in front.
///
/// # Errors
/// If it is unknown which processes used the CPU time.
fn overloaded(case: &Case<'_>, busy: f64, busy_seconds: f64) -> Result<Option<[Evidence; 2]>, Missing> {
    let Some(complaint) = case.degradation.as_ref().filter(|c| c.is_slow && busy >= ALL_BUSY) else { return Ok(None) };
    let (view, window) = (case.slow(), complaint.slow);
    let Ok(requests) = case.requests_in(view.window) else { return Ok(None) };
    let answered = requests.iter().filter(|r| r.outcome == "ok" && window.contains(r.done_at));
    let answered = answered.map(|r| r.count()).sum::<u64>() as f64 / window.seconds();
    let queue = match case.recording.manifest.load.as_ref().map(|load| load.model) {
        Some(Model::Closed) => queue_of_users(case, answered),
        _ => {
            let due = case.due_per_second(window)?;
            let text = format!("{due:.0} requests/s were due, and with all CPUs busy {answered:.0} were answered");
            (answered < KEEPS_UP * due).then(|| (format!("{due:.0}/s"), text))
        }
    };
    let Some((expected, text)) = queue.filter(|_| answered > 0.0) else { return Ok(None) };
    let own = [metrics::process::CPU_TIME.name, metrics::server::THREAD_CPU_TIME.name];
    let own = own.into_iter().find_map(|metric| view.counter(metric, &[], "").ok());
    let own =
        own.ok_or_else(|| Missing::new("CPU time of the service's processes", "--watch pid:N for each of them"))?;
    if own.delta < cpu::OWN * busy_seconds {
        return Ok(None);
    }
    let each_ms = own.delta / view.window.seconds() / answered * 1e3;
    let used = format!(
        "{} of the CPU time in use was the service's: {} per answered request",
        percent(own.delta / busy_seconds),
        ms(each_ms)
    );
    let used = own.evidence(ms(each_ms), "less", used);
    let observed = format!("{answered:.0}/s");
    let kept_up = Evidence::new("requests", "done_at", Labels::none(), window, observed, expected, text);
    Ok(Some([used, kept_up]))
}

/// Users queue for CPUs with this many requests in flight per CPU.
const QUEUED: f64 = 2.0;

/// Whether users who each wait for their response queue: a new request starts only when one ends,
/// so all due requests are answered, later. Returns the expectation and the observation.
fn queue_of_users(case: &Case<'_>, answered: f64) -> Option<(String, String)> {
    let view = case.slow();
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST).ok()?.mean.max(1.0);
    let requests = case.requests_in(view.window).ok()?;
    let service_s = mean_over(requests, |r| Some(service_ms(r)? / 1e3))?;
    let under_way = answered * service_s;
    let text = format!(
        "{under_way:.0} requests were in flight at a time, and with all CPUs busy {answered:.0}/s were answered: more users only wait longer"
    );
    (under_way >= QUEUED * cpus).then(|| (format!("up to {cpus:.0} in flight"), text))
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
