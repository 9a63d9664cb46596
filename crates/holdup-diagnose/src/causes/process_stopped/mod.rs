//! A process of the service is stopped from outside, again and again or once for long.

use super::bound::Bound;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, ms, percent};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::resources::stops::Stops;
use crate::strength::CERTAIN;
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    bound: Some(bound),
    ..Definition::new(Cause::ProcessStopped, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A process is stopped from outside",
    what: "Something keeps all threads of the app or of the database from running: a signal (SIGSTOP), a debugger or tracer that has attached, a paused container (docker pause, the freezer of its cgroup), or a snapshot that freezes the process while it copies it.",
    hurts: "All requests in the process stand still, and those that arrive wait until it goes on. Every other layer looks idle: the process uses no CPU, holds no disk, and its locks and connections are held meanwhile.",
    needs: "The states of the process's threads (--watch pid:N for the app and the database).",
    predicts: "At some instants most threads of the process are in state T (stopped), t (under a debugger), or asleep in the kernel's freezer. The requests in flight at these instants make up the excess, by Little's law. Where nothing outside of the process times requests, two such instants and 5 % of all count by themselves.",
    clears: "No watched process was stopped at any instant, or the requests in flight meanwhile lost a small part of the delay.",
    looks_like: "A pause of the runtime (runtime_pause): the collector's thread runs meanwhile. A CPU quota (cpu_throttled): threads stay runnable and its cgroup counts the throttled periods. A pause of the whole machine: nothing is sampled meanwhile. To the app, a stopped database looks like a slow network.",
    fix: "Find what stops it and move that to a time without load, or to a replica: the parent that sends the signal, the debugger, the backup that freezes the container.",
    prove: "The same load again: no thread of the process is in state T.",
    references: "signal(7), SIGSTOP; ptrace(2); proc_pid_stat(5), field 3; Linux: Documentation/admin-guide/cgroup-v2.rst, cgroup.freeze; Docker documentation: docker container pause; J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "ps -eo pid,stat,comm,wchan:32",
    1,
    "whether a process is stopped (state T or t) or frozen (do_freezer_trap)",
);

/// Intervals between two looks that a stop may have lasted for each look that saw it.
const SEEN_ONCE: f64 = 2.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let stops = Stops::for_case(case)?;
    let explains_ms = stops.explains_ms();
    let during = stops.in_flight.map_or_else(String::new, |n| format!(", with {n:.1} requests in flight"));
    let text = format!(
        "{} was stopped at {} of the instants{during}: {} of a request",
        stops.name,
        percent(stops.ratio),
        ms(stops.request_ms)
    );
    let expected = format!("{} as in the baseline window", percent(stops.baseline_ratio));
    let counted = stops.evidence(percent(stops.ratio), expected, text);
    // Nothing was stopped: however small the delay is, that is not its cause.
    if stops.ratio <= stops.baseline_ratio {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    if is_too_small(case, explains_ms)? {
        // What times requests inside of a process stands still with it.
        let Some(missing) = stops.untimed() else { return Ok(Outcome::Cleared(vec![counted])) };
        let text = format!(
            "{} was stopped at {} of the instants, and requests that came meanwhile waited outside of it",
            stops.name,
            percent(stops.ratio)
        );
        let found = CauseFinding { explains_ms: 0.0, ..found(explains_ms, counted.saying("at none", text)) };
        return Ok(Outcome::Uncounted(found, missing));
    }
    Ok(Outcome::Found(found(explains_ms, counted)))
}

/// A stop that was seen at one instant may have lasted from the instant before to the one after.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let stops = Stops::for_case(case).ok()?;
    let pointer = stops.evidence(percent(stops.ratio), String::new(), String::new());
    Some(Bound::of_stops(SEEN_ONCE * stops.ratio * case.slow().window.seconds(), pointer, "the stops of the process"))
}

fn found(explains_ms: f64, counted: Evidence) -> CauseFinding {
    let look = |text: &str, command: &str| Fix {
        text: text.to_owned(),
        command: Some(command.to_owned()),
        keep: None,
        risk: None,
    };
    CauseFinding {
        explains_ms,
        evidence: vec![counted],
        weights: vec![CERTAIN],
        fixes: vec![
            look("See whether a debugger or tracer is attached.", "grep TracerPid /proc/PID/status"),
            look("See whether its container or group is frozen.", "cat /sys/fs/cgroup/GROUP/cgroup.events"),
            Fix {
                text: "Find the program that stops it, by its schedule or by the audit log, and move that away from the load.".to_owned(),
                command: None,
                keep: None,
                risk: None,
            },
        ],
        prove: "Run the same scenario again: no thread of the process is in state T.".to_owned(),
        role: Role::Root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests a second, of 20 ms and from the twelfth second on of `slow_ms`; from then on the process is in
    /// `state` at every third instant.
    fn made(state: &'static str, slow_ms: i64) -> SyntheticRecording {
        let stopped = |second: i64| if second >= 12 && second % 3 == 0 { 8.0 } else { 0.0 };
        SyntheticRecording::new(24)
            .requests(50, slow_ms)
            .each_request(|n, r| {
                if n < 600 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .counted("pid:7", "process_threads", &[("state", state)], stopped)
            .counted("pid:7", "process_threads", &[("state", "S")], move |second| 8.0 - stopped(second))
    }

    #[test]
    fn requests_in_flight_while_it_is_stopped_lose_that_time() {
        // A third of the time, and 20 in flight then: a third of the 400 ms of each.
        let stopped = made("T", 400).explains(&DEFINITION).unwrap();
        assert!((stopped - 133.0).abs() < 30.0, "{stopped}");
        let diagnosis = made("T", 400).diagnose();
        assert_eq!(diagnosis.findings.first().map(|f| f.cause), Some(DEFINITION.cause));
        assert!(made("t", 400).explains(&DEFINITION).unwrap() > 100.0, "a debugger");
    }

    #[test]
    fn a_process_that_waits_or_works_is_not_stopped() {
        assert_eq!(made("R", 400).explains(&DEFINITION), Some(0.0));
        assert_eq!(made("D", 400).explains(&DEFINITION), Some(0.0));
        assert_eq!(made("T", 400).without("process_threads").explains(&DEFINITION), None);
    }

    /// An app times 50 requests a second of 10 ms each; its database is stopped at the instants of `stopped`.
    fn watched(stopped: fn(i64) -> bool) -> SyntheticRecording {
        let count = move |second: i64| if stopped(second) { 8.0 } else { 0.0 };
        SyntheticRecording::new(24)
            .counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 50.0)
            .counter("prometheus:app", "http_server_request_duration_seconds_sum", &[], 0.5)
            .counted("pid:7", "process_threads", &[("state", "T")], count)
            .counted("pid:7", "process_threads", &[("state", "S")], move |second| 8.0 - count(second))
    }

    #[test]
    fn stops_count_although_what_times_requests_stands_still_too() {
        let diagnosis = watched(|second| second % 4 == 0).diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
        assert!(diagnosis.headline.ends_with("No source shows what it costs requests."), "{}", diagnosis.headline);
        let once = watched(|second| second == 12).diagnose();
        assert_eq!((once.culprit, once.verdict), (None, crate::verdict::Answer::Healthy), "{}", once.headline);
    }
}
