//! The app's own code waits: it sleeps while it has a request, alone or under a lock.

mod signs;

use super::{Cause, CauseFinding, Contribution, Definition, Doc, Judge, Occurs, Others, Outcome, Role, Source::Of, ms};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::connections::{ConnectionHold, NAMES};
use crate::resources::is_too_small;
use crate::resources::own_waits::OwnWaits;
use crate::resources::services::Services;
use crate::resources::slow_service::SlowService;
use crate::resources::unowned::UnownedTime;
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    signs: Some(signs::find),
    adds_to: &[
        // A handler that sleeps with a connection of the pool holds it from others: most wait for the pool.
        Contribution { to: &[&[Of(Cause::ConnectionPoolExhausted)]], least: 0.0 },
    ],
    ..Definition::new(Cause::WaitInApp, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The app's own code waits",
    what: "A handler sleeps while it has a request: a fixed pause, a poll of something every few milliseconds, the back-off of a retry, a rate limiter. If it holds a lock meanwhile, one request at a time passes.",
    hurts: "The request takes as long as the sleep, and holds its worker, and perhaps a lock or a pooled connection, for as long. CPU, database and network are idle. Behind a lock the queue grows without bound as soon as requests arrive faster than one sleep after another.",
    needs: "Where the threads of the app sleep (--watch pid:N of the app, as its user or as root), and a baseline window. Or the app's own timing of its requests and of its waits for a pooled connection, beside its port and its process: then what is left without an owner.",
    predicts: "More threads of the app sleep in a timer (hrtimer_nanosleep) than in the baseline window, and by Little's law they are most of the excess. Under a lock at most one more sleeps, for most of the time, while several requests are in flight.",
    clears: "As many threads of the app sleep in a timer as in the baseline window, or by Little's law the growth is a small part of the delay; and the app's own time of a request has owners.",
    looks_like: "Workers that a new configuration parks: they sleep without a request, which the app's own timing of requests shows. Runtimes that sleep in a futex or in epoll (Go, Node.js, JVM) do not show in timers; their spans do.",
    fix: "Find the call with a sampling profiler or a dump of the threads' stacks; wait for an event instead of polling; hold no lock and no pooled connection while waiting.",
    prove: "The same load again: as many threads sleep in timers as in the baseline window.",
    references: "nanosleep(2), clock_nanosleep(2); proc_pid_wchan(5); J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961; L. Kleinrock, Queueing Systems I, 3.2 (M/M/1).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "ps -L -o tid,stat,wchan:32 -p PID",
    1,
    "how many of the app's threads sleep in a timer (hrtimer_nanosleep) or wait for a lock (futex)",
);

/// Causes that let the app's threads stand still in the middle of a request, and that no wait of its
/// own shows.
const STAND_STILL: [Cause; 4] = [Cause::ProcessStopped, Cause::RuntimePause, Cause::CpuThrottled, Cause::CpuSaturated];

/// From this share (0-1) of the sleep, a connection is held for it.
const HELD: f64 = 0.5;

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    if let Some(found) = by_traces(case) {
        return Ok(Outcome::Found(found));
    }
    let seen = by_sleepers(case);
    if matches!(seen, Ok(Outcome::Found(_))) {
        return seen;
    }
    by_exclusion(case, others).map_or(seen, |found| Ok(Outcome::Found(found)))
}

/// By traces alone: the service in front took longer outside of all its calls.
fn by_traces(case: &Case<'_>) -> Option<CauseFinding> {
    let services = Services::measure(case).ok()?;
    let slow = SlowService::find(case, &services).filter(|slow| slow.is_front)?;
    if is_too_small(case, slow.ms).unwrap_or(true) {
        return None;
    }
    Some(CauseFinding {
        explains_ms: slow.ms,
        evidence: slow.evidence,
        weights: slow.weights,
        fixes: vec![see_stacks()],
        prove: format!("Import traces of a later time: {}'s own time is that of the baseline window.", slow.service),
        role: Role::Root,
    })
}

/// By what is left of the app's own time of a request. Idle threads may sleep where busy ones do,
/// and a thread that waits for a lock sleeps like an idle one: then its sleepers do not show it.
fn by_exclusion(case: &Case<'_>, others: &Others) -> Option<CauseFinding> {
    let rest = UnownedTime::measure(case)?;
    let stand_still = |cause: &Cause| match others.get(cause) {
        Some(Ok(Outcome::Found(found))) => found.explains_ms,
        _ => 0.0,
    };
    let explains_ms = rest.ms - STAND_STILL.iter().map(stand_still).sum::<f64>();
    if explains_ms <= 0.0 || is_too_small(case, explains_ms).unwrap_or(true) {
        return None;
    }
    let mut timed = rest.timed;
    timed.text = format!(
        "{}; for {} of it its threads waited for nothing that a source shows: a sleep, a lock, or a call that was not recorded",
        timed.text,
        ms(explains_ms)
    );
    Some(CauseFinding {
        explains_ms,
        evidence: vec![timed, rest.owned],
        weights: vec![FAIR, WEAK],
        fixes: vec![see_stacks()],
        prove: "Run the same scenario again: by its own timing the app has a request for as long as in the baseline window."
            .to_owned(),
        role: Role::Root,
    })
}

fn see_stacks() -> Fix {
    Fix {
        text: "See which code sleeps: a dump of the stacks of its threads.".to_owned(),
        command: Some("py-spy dump --pid PID".to_owned()),
        keep: None,
        risk: None,
    }
}

fn by_sleepers(case: &Case<'_>) -> Result<Outcome, Missing> {
    let waits = OwnWaits::for_case(case)?;
    let explains_ms = waits.explains_ms();
    let text = match waits.grown {
        grown if grown > 0.0 => format!(
            "{grown:.1} more threads of {} slept in a timer than in the baseline window: {} of a request, by Little's law",
            waits.process,
            ms(waits.slept_ms)
        ),
        _ => format!("no more threads of {} slept in a timer than in the baseline window", waits.process),
    };
    let mut evidence = vec![waits.evidence("as in the baseline window", text)];
    if waits.grown <= 0.0 || is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    if let Some(behind_ms) = waits.behind_ms {
        let text = format!(
            "at most one of them slept at a time while more requests were in flight: they sleep under a lock, and a request waited {} for it",
            ms(behind_ms)
        );
        evidence.push(waits.evidence("as many as requests in flight", text));
    }
    let kept_ms = kept_ms(case);
    if kept_ms >= HELD * waits.slept_ms {
        let text = format!("it held a connection of its pool meanwhile, for {} of a request", ms(kept_ms));
        evidence.push(waits.evidence("given back before", text));
    }
    let release = match waits.behind_ms {
        Some(_) => "Release the lock before waiting, or give each key a lock of its own.",
        None => "Wait for the event itself instead of sleeping, with a deadline.",
    };
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG],
        fixes: vec![see_stacks(), Fix { text: release.to_owned(), command: None, keep: None, risk: None }],
        prove: "Run the same scenario again: as many threads sleep in timers as in the baseline window.".to_owned(),
        // If it holds a pooled connection meanwhile, the pool runs out, and most requests wait for that.
        role: if kept_ms >= HELD * waits.slept_ms { Role::Contributor } else { Role::Root },
    }))
}

/// Milliseconds of a request for which the app keeps a pooled connection over other work; 0 if it
/// reports no pool.
fn kept_ms(case: &Case<'_>) -> f64 {
    let hold = NAMES.iter().find_map(|names| ConnectionHold::measure(case, names).ok());
    hold.and_then(|hold| hold.kept_by_app()).map_or(0.0, |kept| kept.request_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Thread;

    /// 40 requests a second, of 2 ms and from the twelfth second on of `slow_ms`; two of the app's threads sleep in
    /// a timer all along, and `more` of them from then on.
    fn made(process: &str, slow_ms: i64, more: impl Fn(i64) -> i64) -> SyntheticRecording {
        let row = |second: i64, wchan: &str, count: i64| Thread {
            observed_at: second * 1_000_000_000,
            source: "pid:7".into(),
            pid: 7,
            process: process.into(),
            state: "S".into(),
            wchan: Some(wchan.into()),
            count,
            ..Thread::default()
        };
        let sleeping = |second: i64| 2 + if second >= 12 { more(second) } else { 0 };
        let rows = (0..=24).flat_map(|s| [row(s, "hrtimer_nanosleep", sleeping(s)), row(s, "futex_do_wait", 8)]);
        SyntheticRecording::new(24)
            .requests(40, slow_ms)
            .each_request(|n, r| {
                if n < 480 {
                    r.done_at = r.intended_at + 2_000_000;
                }
            })
            .setting("pid:7", "comm", process)
            .gauge("pid:7", "process_threads", &[("state", "S")], 16.0)
            .threads(rows.collect())
    }

    #[test]
    fn threads_in_timers_are_milliseconds_of_a_request() {
        // 4 more threads at 40 requests a second are 100 ms of each.
        let slept = made("python3", 110, |_| 4).explains(&DEFINITION).unwrap();
        assert!((slept - 100.0).abs() < 10.0, "{slept}");
        assert_eq!(made("python3", 110, |_| 4).diagnose().culprit, Some(DEFINITION.cause));
        assert_eq!(made("python3", 110, |_| 0).explains(&DEFINITION), Some(0.0));
        // By chance, now and then.
        assert_eq!(made("python3", 110, |s| i64::from(s % 12 == 0)).explains(&DEFINITION), Some(0.0));
        // A server of a database is not the app.
        assert_eq!(made("mariadbd", 110, |_| 4).explains(&DEFINITION), None);
    }

    /// The app has each request for 2 ms by its own timing and from the twelfth second on for 110, of
    /// which `call_ms` are calls of its database; idle threads sleep where busy ones do.
    fn timed(call_ms: f64) -> SyntheticRecording {
        let app = "prometheus:http://app";
        let sum =
            |before: f64, after: f64| move |s: i64| 0.04 * (before * s.min(12) as f64 + after * (s - 12).max(0) as f64);
        let timed = |made: SyntheticRecording, name: &str, after: f64| {
            made.counter(app, &format!("{name}_count"), &[], 40.0).counted(
                app,
                &format!("{name}_sum"),
                &[],
                sum(0.5, after),
            )
        };
        let made = made("python3", 112, |_| 0)
            .target("http://127.0.0.1:8080")
            .gauge("server:8080", "server_accepted_connections", &[("pid", "7")], 8.0)
            .gauge("server:8080", "server_answering_connections", &[("pid", "7")], 4.0)
            .gauge("server:8080", "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(
                "server:8080",
                "server_outgoing_pending_connections",
                &[("peer", "10.0.0.5"), ("peer_port", "9")],
                0.0,
            )
            .counter("pid:7", "process_cpu_time_seconds_total", &[("cpu_mode", "user")], 0.02)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 0.001);
        let made = timed(made, "http_server_request_duration_seconds", 110.0);
        let made = timed(made, "db_client_connection_wait_time_seconds", 0.5);
        timed(made, "db_client_operation_duration_seconds", call_ms)
    }

    #[test]
    fn time_without_an_owner_is_the_apps_own_wait() {
        let found = timed(0.5).explains(&DEFINITION).unwrap();
        assert!((found - 109.0).abs() < 3.0, "{found}");
        assert_eq!(timed(0.5).diagnose().culprit, Some(DEFINITION.cause));
        assert_eq!(timed(108.0).explains(&DEFINITION), Some(0.0), "its calls take the time");
        let unknown = timed(0.5).without("db_client_connection_wait_time_seconds_sum");
        assert_eq!(unknown.explains(&DEFINITION), Some(0.0), "it may wait for a connection");
    }

    #[test]
    fn one_at_a_time_is_a_lock_that_others_wait_for() {
        // A thread sleeps 4 times in 5: 20 ms of a request. 110 ms are 4 requests in flight.
        let locked = made("python3", 110, |s| i64::from(s % 5 != 0));
        let found = locked.explains(&DEFINITION).unwrap();
        assert!((found - 100.0).abs() < 15.0, "{found}");
        // As many sleep as there are requests: nothing waits behind them.
        let alone = made("python3", 24, |s| i64::from(s % 5 != 0)).explains(&DEFINITION).unwrap();
        assert!((alone - 20.0).abs() < 5.0, "{alone}");
        // Rarely held, it makes no queue.
        let rare = made("python3", 110, |s| i64::from(s % 3 == 0)).explains(&DEFINITION).unwrap();
        assert!(rare < 15.0, "{rare}");
    }
}
