//! Workers that no source counts, by the app's own timing of its requests: clients wait beyond it
//! while the server has their requests.

use crate::case::Case;
use crate::causes::{MATTERS, ms};
use crate::resources::share;
use crate::resources::workers::{Pool, WorkerHold};
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength};
use holdup_signals::evidence::Evidence;

/// Accepted requests beyond those of workers prove the queue from this share (0-1) of it: arrivals
/// and departures are counted at other times than the wait.
const PROVEN: f64 = 0.5;

/// The app's timing, and the requests that the server has beyond its workers'.
pub(super) fn evidence(pool: &Pool) -> Vec<Evidence> {
    let Some(timing) = &pool.timing else { return Vec::new() };
    let before = pool
        .baseline_timing
        .as_ref()
        .map_or_else(String::new, |baseline| format!(", {} in the baseline window", ms(baseline.before_ms)));
    let text = format!(
        "clients waited {} beyond the app's own timing of a request{before}: its workers had {:.1} requests at a time",
        ms(timing.before_ms),
        timing.busy
    );
    let mut evidence = vec![timing.evidence("near 0 ms", text)];
    let beyond = pool.outside.as_ref().zip(pool.beyond_workers_ms()).filter(|_| pool.most.is_none());
    if let Some((outside, beyond_ms)) = beyond {
        let answering = outside.answering.unwrap_or(0.0);
        let text = format!(
            "the server had accepted {answering:.1} requests on average: {} of a request beyond its workers'",
            ms(beyond_ms)
        );
        evidence.push(outside.hand_evidence(format!("{answering:.1}"), format!("{:.1}", timing.busy), text));
    }
    evidence
}

/// Worth of these pieces, in their order.
pub(super) fn weights(case: &Case<'_>, pool: &Pool) -> Vec<Strength> {
    let Some(timing) = &pool.timing else { return Vec::new() };
    let Some(timed_ms) = pool.timed_ms() else {
        return vec![if share(case, timing.before_ms) >= MATTERS { FAIR } else { NONE }];
    };
    if !pool.is_timed_queue() {
        return vec![NONE, NONE];
    }
    // Seen from both sides, the wait is neither on the way nor in the work.
    match pool.beyond_workers_ms() {
        Some(beyond) if beyond >= PROVEN * timed_ms => vec![STRONG, CERTAIN],
        Some(_) => vec![FAIR, FAIR],
        None => vec![FAIR],
    }
}

/// Hold time against the baseline window's: longer, or the same with too few workers.
pub(super) fn against_baseline(
    case: &Case<'_>,
    pool: &Pool,
    held: &WorkerHold,
    pointer: Option<&Evidence>,
) -> Option<Evidence> {
    let pointer = pointer?.clone();
    if let Some(fewer_by) = pool.fewer_by {
        let text = format!("there were {fewer_by:.0} more workers in the baseline window");
        return Some(pointer.saying("as many", text));
    }
    if let Some(before) = held.was_enough_at_ms(case) {
        let text = format!(
            "in the baseline window a request held a worker for {}, at which they would suffice for all due requests: they are busy because each is held longer",
            ms(before)
        );
        return Some(Evidence { observed: ms(held.ms), ..pointer.saying(ms(before), text) });
    }
    let before = held.baseline_ms.filter(|_| held.is_as_before())?;
    let text = format!(
        "a request held a worker for {}, about as long as in the baseline window ({}): there are too few workers for the load",
        ms(held.ms),
        ms(before)
    );
    Some(Evidence { observed: ms(held.ms), ..pointer.saying(ms(before), text) })
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use crate::causes::worker_pool_exhausted::DEFINITION;
    use crate::causes::{Outcome, Role};
    use crate::testing::{Judged as _, SyntheticRecording};

    const SERVER: &str = "server:8080";
    const APP: &str = "prometheus:http://app";
    const SLOW_FROM: i64 = 12;

    /// 100 requests a second of 20 ms, from the twelfth second on of 500 ms. The app holds each for 15 ms by its own timing, and for
    /// `held_ms` then; it has `answering` of them.
    fn made(held_ms: f64, answering: f64) -> SyntheticRecording {
        let sum = move |s: i64| 0.1 * (15.0 * s.min(SLOW_FROM) as f64 + held_ms * (s - SLOW_FROM).max(0) as f64);
        SyntheticRecording::new(24)
            .requests(100, 500)
            .each_request(|n, r| {
                if n < SLOW_FROM * 100 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .target("http://127.0.0.1:8080/orders")
            .gauge(SERVER, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(SERVER, "tcp_accept_queue_limit", &[("port", "8080")], 64.0)
            .counted(SERVER, "server_answering_connections", &[("pid", "7")], move |s| {
                if s < SLOW_FROM { 2.0 } else { answering }
            })
            .gauge(SERVER, "server_accepted_connections", &[("pid", "7")], 100.0)
            .counter(APP, "http_server_request_duration_seconds_count", &[], 100.0)
            .counted(APP, "http_server_request_duration_seconds_sum", &[], sum)
    }

    fn role(made: &SyntheticRecording) -> Role {
        match made.judge(&DEFINITION) {
            Ok(Outcome::Fails(found, _)) => found.role,
            other => panic!("not found: {:?}", other.map(|_| ())),
        }
    }

    #[test]
    fn workers_that_are_held_as_long_as_before_are_too_few() {
        let few = made(15.0, 50.0);
        // 485 ms in front of a worker, and 5 in the baseline window.
        assert!((few.explains(&DEFINITION).unwrap() - 480.0).abs() < 10.0, "{:?}", few.explains(&DEFINITION));
        assert_eq!(role(&few), Role::Root);
        let diagnosis = few.diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
        let said = |what: &str| diagnosis.findings[0].evidence.iter().any(|e| e.text.contains(what));
        assert!(said("its workers had 1.5 requests at a time"), "{:?}", diagnosis.findings[0].evidence);
        assert!(said("about as long as in the baseline window"), "{:?}", diagnosis.findings[0].evidence);
    }

    #[test]
    fn workers_that_are_held_longer_are_a_symptom() {
        let longer = made(100.0, 50.0);
        assert_eq!(role(&longer), Role::Symptom);
        let unseen = longer.diagnose();
        assert_eq!(unseen.culprit, None, "no source shows for what");
        assert!(unseen.headline.contains("what it follows from is not visible"), "{}", unseen.headline);
        // 80 of the 85 ms more are for a neighbour.
        let neighbour = |more_s: f64| {
            longer.clone().counter(APP, "http_client_request_duration_seconds_count", &[], 100.0).counted(
                APP,
                "http_client_request_duration_seconds_sum",
                &[],
                move |s| 100.0 * (0.002 * s as f64 + more_s * (s - SLOW_FROM).max(0) as f64),
            )
        };
        let diagnosis = neighbour(0.08).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::DownstreamSlow), "{:#?}", diagnosis.findings);
        let pool = diagnosis.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
        assert_eq!(pool.follows_from, Some(Cause::DownstreamSlow));
        // 30 of the 85 ms are not most of it, and the queue is theirs in that part: 30 + 30 / 85 x 395.
        let diagnosis = neighbour(0.03).diagnose();
        assert_eq!(diagnosis.culprit, None, "{:#?}", diagnosis.findings);
        let slow = diagnosis.findings.iter().find(|f| f.cause == Cause::DownstreamSlow).unwrap();
        assert!((slow.explains_ms - 169.0).abs() < 10.0, "{}", slow.explains_ms);
    }

    /// All of its 16 threads write to a slow disk, and 40 requests are with it; it says nothing.
    #[test]
    fn threads_that_all_sleep_in_the_kernel_are_its_workers() {
        let asleep = |threads: f64| {
            made(100.0, 40.0).tables(|t| t.samples.rows.retain(|row| row.source != APP)).counted(
                "pid:7",
                "process_threads",
                &[("state", "D")],
                move |s| {
                    if s < SLOW_FROM { 0.0 } else { threads - f64::from(u8::from(s % 5 == 0)) }
                },
            )
        };
        // 24 of the 40 wait, at 100 a second.
        let explained = asleep(16.0).explains(&DEFINITION).unwrap();
        assert!((explained - 240.0).abs() < 30.0, "{explained}");
        assert_eq!(role(&asleep(16.0)), Role::Symptom, "each is held longer");
        assert_eq!(asleep(40.0).explains(&DEFINITION), None, "as many as there are requests");
    }

    /// It accepts 50 requests and works on ten: what it accepts is not what its workers take.
    #[test]
    fn requests_that_are_accepted_and_not_in_work_wait_for_a_worker() {
        let (baseline, others_wait) = (|s: i64| s < SLOW_FROM, |s: i64| s % 5 < 2);
        let accepting = |held_ms: f64| {
            made(held_ms, 50.0)
                .without("tcp_accept_queue_length")
                .without("server_answering_connections")
                .counted(SERVER, "tcp_accept_queue_length", &[("port", "8080")], move |s| {
                    f64::from(u8::from(others_wait(s)))
                })
                .counted(SERVER, "server_answering_connections", &[("pid", "7")], move |s| match () {
                    () if baseline(s) => 2.0,
                    () if others_wait(s) => 70.0,
                    () => 40.0,
                })
        };
        assert!(
            accepting(100.0).explains(&DEFINITION).unwrap() > 350.0,
            "{:?}",
            accepting(100.0).explains(&DEFINITION)
        );
    }

    #[test]
    fn a_wait_without_busy_workers_is_not_for_one() {
        // A twentieth of a worker: the server does not get to its requests.
        assert_eq!(made(0.5, 50.0).explains(&DEFINITION), Some(0.0));
        // It has hardly any of them: they are still on their way.
        assert_eq!(made(15.0, 3.0).explains(&DEFINITION), Some(0.0));
    }
}
