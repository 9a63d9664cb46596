//! Runnable threads wait for a CPU.

mod one_core;

use holdup_recording::manifest::Model;
use holdup_recording::{Labels, metrics};

use super::{Doc, Judge, MATTERS, Outcome, Role, Rule, RuleFinding, ms, percent};
use crate::accounts::Owner;
use crate::case::Case;
use crate::resources::{cpu, share};
use crate::strength::STRONG;
use holdup_signals::client::{mean_over, service_ms};
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::{Missing, View};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "cpu_saturated",
    doc: Doc {
        title: "The CPUs are saturated",
        what: "More threads are runnable than there are CPUs: threads of the service stand in the run queue. Or a process whose interpreter has a lock (Ruby, Python, Node.js) uses the one CPU that it can, while others idle: its threads wait for the lock.",
        hurts: "Everything takes longer by the same factor, and tails grow first.",
        needs: "The host's CPU time (--watch host), and to quantify it the run-queue wait of the service's processes (--watch pid:N or server:PORT).",
        predicts: "Run-queue wait per request is a large part of the excess. Or all CPUs are busy, mostly with the service, and fewer requests end than are due, or users who each wait for their response queue: requests then wait in front of the service.",
        clears: "The service's threads waited for a CPU for a small share of the delay, and requests end as fast as they are due; or too much CPU was idle for such a queue.",
        looks_like: "A high load average with idle CPUs is something else: threads in uninterruptible sleep count there too. iowait is idle time.",
        fix: "Find what uses the CPU, then reduce it, or add CPUs.",
        prove: "The same load again: run-queue wait per request is small.",
        references: "B. Gregg, Systems Performance, 2nd ed., ch. 6; kernel documentation: sched-stats, PSI; L. Kleinrock, Queueing Systems, vol. 1 (M/M/1 processor sharing).",
    },
    judge: Judge::Alone(judge),
};

const HOST: &str = "--watch host";

/// Share (0-1) of all CPU time that was not idle.
fn busy_ratio(view: &View<'_>) -> Result<(f64, f64), Missing> {
    let all = view.counter(metrics::host::CPU_TIME.name, &[], HOST)?;
    let mode = |mode| view.counter(metrics::host::CPU_TIME.name, &[("cpu_mode", mode)], HOST);
    let idle = mode("idle")?.delta + mode("iowait").map_or(0.0, |c| c.delta);
    Ok(((1.0 - idle / all.delta.max(1e-9)).clamp(0.0, 1.0), all.delta - idle))
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let (busy, busy_seconds) = busy_ratio(&view)?;
    let cpu = view.counter(metrics::host::CPU_TIME.name, &[], HOST)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let mut evidence = vec![cpu.evidence(
        format!("{} busy", percent(busy)),
        "near 100 %, if CPU were the cause",
        format!("{} of CPU time was idle", percent(1.0 - busy)),
    )];

    // The possible CPU wait per request: as the kernel counted it for the watched processes; else
    // the processor-sharing queue that this utilization makes of the CPU time used.
    let waited = view.counter(metrics::process::RUN_QUEUE.name, &[], "--watch pid:N");
    let waited = waited.or_else(|_| view.counter(metrics::server::RUN_QUEUE_WAIT.name, &[], "--watch server:PORT"));
    let mut explains_ms = match &waited {
        Ok(waited) => {
            let per_request = waited.delta / completed * 1e3;
            evidence.push(waited.evidence(
                format!("{} a request", ms(per_request)),
                "most of the delay, if CPU were the cause",
                format!(
                    "all threads of the watched processes together waited {} per request for a CPU",
                    ms(per_request)
                ),
            ));
            per_request
        }
        Err(_) => {
            let used = busy_seconds / completed * 1e3;
            let queueing = used * busy / (1.0 - busy).max(1e-3);
            evidence.push(cpu.evidence(
                ms(used),
                String::new(),
                format!(
                    "a request used at most {} of CPU: at {} busy, queueing for it makes at most {}",
                    ms(used),
                    percent(busy),
                    ms(queueing)
                ),
            ));
            match running(case, completed) {
                // Other processes may use the CPUs: sessions that wait for one here show it.
                Some((running, piece)) if running < queueing => {
                    evidence.push(piece);
                    running
                }
                _ => queueing,
            }
        }
    };
    if let Some((most, piece)) = at_most(case, completed).filter(|(most, _)| *most < explains_ms) {
        explains_ms = most;
        evidence.push(piece);
    }
    // Threads that wait for an interpreter's lock sleep: the run queue does not show them.
    let one_core = one_core::find(&view, completed).filter(|one| share(case, one.explains_ms) >= MATTERS);
    if let Some(one) = one_core.filter(|one| one.explains_ms > explains_ms) {
        evidence.push(one.evidence);
        return Ok(Outcome::Found(RuleFinding {
            explains_ms: one.explains_ms,
            evidence,
            weights: vec![STRONG],
            fixes: vec![one_core::fix(one.processes)],
            prove: "Run the same scenario again: no process uses all of a CPU.".to_owned(),
            role: Role::Root,
        }));
    }
    if let Some(pieces) = overloaded(case, busy, busy_seconds)? {
        // A few requests run at once and the others are not admitted: the whole delay is theirs.
        explains_ms = explains_ms.max(case.excess_ms());
        evidence.extend(pieces);
    } else if share(case, explains_ms) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    } else if waited.is_err() {
        return Err(Missing::new(
            "run-queue wait of the service's processes",
            "--watch pid:N for the app and the database",
        ));
    }
    if let Ok(load) = view.gauge(metrics::host::LOAD_AVERAGE_1M.name, &[], HOST)
        && let Ok(cpus) = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST)
    {
        let normalised = load.max / cpus.mean.max(1.0);
        evidence.push(load.evidence(
            format!("{normalised:.1} a CPU"),
            "below 1",
            format!("load average was up to {normalised:.1} per CPU"),
        ));
    }
    Ok(Outcome::Found(RuleFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG * busy, STRONG],
        fixes: vec![Fix {
            text: "Profile what uses the CPU (perf top), make it cheaper or run less of it at once; then add CPUs."
                .to_owned(),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "Run the same scenario again: run-queue wait per request is small.".to_owned(),
        role: Role::Root,
    }))
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

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Session;

    use super::RULE;
    use crate::accounts::testing::{ALL, Injected, NONE, made};
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A machine that others keep busy, and 20 statements at a time in PostgreSQL, `running` of them without a wait.
    fn busy(running: i64) -> SyntheticRecording {
        let row = |second: i64, id: i64| Session {
            observed_at: second * 1_000_000_000,
            source: "postgresql://db".into(),
            session_id: id,
            command: "active".into(),
            state: (id >= running).then(|| "IO:DataFileRead".into()),
            true_state: "executing".into(),
            ..Session::default()
        };
        let rows = (0..=12).flat_map(|second| (0..20).map(move |id| row(second, id)));
        let cpu = |mode| [("cpu_mode", mode)];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .by_protocol("postgresql")
            .session_rows(rows.collect())
            .gauge("postgresql://db", "postgresql_sessions", &[("state", "active")], 20.0)
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.99)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.01)
    }

    /// Requests that wait `waits.pool` ms for a connection on a machine whose CPUs others keep busy, and threads of the app's that
    /// wait for a CPU for half a second each second.
    fn busy_beside(waits: Injected) -> SyntheticRecording {
        let cpu = |mode| [("cpu_mode", mode)];
        made(waits, ALL)
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.99)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.01)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 6.0)
    }

    #[test]
    fn who_waits_for_a_connection_does_not_wait_for_a_cpu() {
        let beside = busy_beside(Injected { pool: 150.0, ..NONE });
        let of_a_request = beside.explains(&RULE).expect("judged");
        assert!(of_a_request < 10.0, "{of_a_request}");
        assert_eq!(beside.diagnose().culprit.as_deref(), Some("connection_pool_exhausted"));
        // 40 a second that hold something for 150 ms need six of it: with fewer, that is what others wait for.
        let slow = busy_beside(Injected { pool: 150.0, execution: 150.0, ..NONE }).explains(&RULE).expect("judged");
        assert!((slow - 150.0).abs() < 1.0, "all that threads waited: {slow}");
    }

    /// 50 requests a second are due, of which every `answered`th is; the service uses `own` of two CPUs, others what is left.
    fn overload(answered: i64, own: f64) -> SyntheticRecording {
        let cpu = |mode| [("cpu_mode", mode)];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .each_request(|number, row| row.outcome = if number % answered == 0 { "ok" } else { "timeout" }.into())
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.98)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.02)
            .counter("pid:7", "process_cpu_time_seconds_total", &[("cpu_mode", "user")], own)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 0.1)
    }

    #[test]
    fn more_than_the_cpus_can_do_is_waited_for_wherever_it_stands() {
        assert!(overload(2, 1.5).explains(&RULE).is_some_and(|ms| ms > 300.0));
        assert_eq!(overload(1, 1.5).explains(&RULE), Some(0.0), "all that is due is answered");
        assert_eq!(overload(2, 0.5).explains(&RULE), Some(0.0), "others burn the CPUs");
    }

    #[test]
    fn users_who_wait_for_each_other_wait_for_the_cpus() {
        let closed = |cpus: f64, own: f64| {
            overload(1, own).gauge("host", "system_cpu_logical_count", &[], cpus).closed().explains(&RULE)
        };
        // 50 a second of 400 ms are 20 under way.
        assert!(closed(2.0, 1.5).is_some_and(|ms| ms > 300.0));
        assert_eq!(closed(16.0, 1.5), Some(0.0), "there is a CPU for each but a few");
        assert_eq!(closed(2.0, 0.5), Some(0.0), "others burn the CPUs");
    }

    #[test]
    fn sessions_that_wait_for_something_else_do_not_wait_for_a_busy_cpu() {
        assert_eq!(busy(0).explains(&RULE), Some(0.0));
        assert_eq!(busy(18).explains(&RULE), None, "who burns the CPUs is not known");
    }
}
