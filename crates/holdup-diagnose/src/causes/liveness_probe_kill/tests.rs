//! A server that is killed, or not, by a probe or by somebody else.

use super::*;
use crate::testing::{EventRow, Judged as _, SyntheticRecording};

const PROBE: &str = "probe:http://127.0.0.1:8080/health";
const SERVER: &str = "server:8080";

const THREE: [EventRow<'static>; 3] = [
    (10, PROBE, "probe_failed", &[("reason", "timeout"), ("in_a_row", "1")]),
    (11, PROBE, "probe_failed", &[("reason", "timeout"), ("in_a_row", "2")]),
    (12, PROBE, "probe_failed", &[("reason", "timeout"), ("in_a_row", "3")]),
];
const STOPPED: [EventRow<'static>; 2] = [
    (14, SERVER, "server_stopped", &[("port", "8080"), ("pids", "7")]),
    (18, SERVER, "server_started", &[("port", "8080"), ("pids", "9"), ("absent_ms", "4000")]),
];

/// 50 requests a second that take 30 ms; those due while the server is gone are refused.
fn made(events: &[EventRow<'_>]) -> SyntheticRecording {
    SyntheticRecording::new(30)
        .requests(50, 30)
        .refused(14 * 50..18 * 50)
        .gauge(PROBE, "probe_success", &[], 1.0)
        .setting(PROBE, "probe.failures", "3")
        .setting(PROBE, "probe.timeout_s", "1")
        .gauge("puma:app", "puma_max_threads", &[], 5.0)
        .events(events)
}

#[test]
fn a_kill_after_failures_in_a_row_is_why_requests_fail_and_why_figures_have_a_hole() {
    let events = [&THREE[..], &STOPPED[..]].concat();
    let made = made(&events).tables(|tables| {
        let in_hole = |at: i64| (14_000_000_000..18_000_000_000).contains(&at);
        tables.samples.rows.retain(|s| s.source != "puma:app" || !in_hole(s.observed_at));
    });
    assert!(made.fails(&DEFINITION).unwrap() > 0.95);
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
    let texts: Vec<&str> = diagnosis.findings[0].evidence.iter().map(|e| e.text.as_str()).collect();
    let said = |what: &str| texts.iter().any(|text| text.contains(what));
    assert!(
        said("failed 3 times in a row, the last time at second 12") && said("listened again 4,000 ms later"),
        "{texts:?}"
    );
    assert!(said("puma:app was silent for 5.0 s then"), "{texts:?}");
}

#[test]
fn other_restarts_are_not_it() {
    // A deploy or a crash: no failed probe before it, and three after it.
    let after: Vec<EventRow<'_>> = [(14, "1"), (15, "2"), (16, "3")]
        .into_iter()
        .map(|(at, n)| {
            (
                at,
                PROBE,
                "probe_failed",
                if n == "1" {
                    THREE[0].3
                } else if n == "2" {
                    THREE[1].3
                } else {
                    THREE[2].3
                },
            )
        })
        .collect();
    for events in [STOPPED.to_vec(), [after, STOPPED.to_vec()].concat()] {
        let outcome = made(&events).judge(&DEFINITION);
        assert_eq!(made(&events).fails(&DEFINITION), Some(0.0), "{}", matches!(outcome, Ok(Outcome::Found(_))));
    }
    // The kernel's kill.
    let killed =
        made(&[&THREE[..], &STOPPED[..]].concat())
            .counted("host", "system_out_of_memory_kills_total", &[], |s| if s < 14 { 0.0 } else { 1.0 });
    assert_eq!(killed.fails(&DEFINITION), Some(0.0));
    let kubernetes = |reason: &'static [(&'static str, &'static str)]| {
        made(&[&THREE[..], &[(14, "kubernetes:shop/orders", "container_restarted", reason), STOPPED[1]]].concat())
    };
    assert_eq!(kubernetes(&[("container", "app"), ("reason", "OOMKilled")]).fails(&DEFINITION), Some(0.0));
    assert!(kubernetes(&[("container", "app"), ("reason", "Error")]).fails(&DEFINITION).unwrap() > 0.95);
}

#[test]
fn a_kill_is_seen_coming() {
    let Ok(Outcome::Found(found)) = made(&THREE).judge(&DEFINITION) else { panic!("not seen") };
    assert_eq!((found.explains_ms, found.role), (0.0, Role::Symptom));
    assert!(found.evidence[0].text.contains("3 timeout), at most 3 in a row"), "{:?}", found.evidence);
    let Ok(Outcome::Cleared(evidence)) = made(&THREE[..2]).judge(&DEFINITION) else { panic!("not cleared") };
    assert!(evidence[0].text.contains("at most 2 in a row of the 3"), "{evidence:?}");
    let Ok(Outcome::Cleared(evidence)) = made(&[]).judge(&DEFINITION) else { panic!("not cleared") };
    assert_eq!(evidence[0].text, "the liveness probe did not fail");
}

#[test]
fn kubernetes_says_itself_why_it_killed() {
    let made = SyntheticRecording::new(30)
        .requests(50, 30)
        .refused(14 * 50..18 * 50)
        .setting("kubernetes:shop/orders", "container.app.liveness_probe", "http-get :8080/health every=10s")
        .events(&[(14, "kubernetes:shop/orders", "container_killed", &[("container", "app")]), STOPPED[1]])
        .tables(|tables| {
            for event in tables.events.rows.iter_mut().filter(|e| e.kind == "container_killed") {
                event.text = "Container app failed liveness probe, will be restarted".into();
            }
        });
    assert!(made.fails(&DEFINITION).unwrap() > 0.95);
}

#[test]
fn without_a_fact_it_is_not_judged() {
    let events = [&THREE[..], &STOPPED[..]].concat();
    assert_eq!(made(&events).without("probe_success").fails(&DEFINITION), None);
    assert_eq!(made(&events).without_column("events", "kind").fails(&DEFINITION), None);
    assert_eq!(made(&events).without_column("requests", "outcome").fails(&DEFINITION), None);
}
