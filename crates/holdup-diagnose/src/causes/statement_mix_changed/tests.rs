//! Statements that joined, that took the place of others, and mixes that stayed.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

/// 100 requests a second that take 10 ms, and 400 from 30 to 60 s of 90; a statement of 1 ms for each, and another at `more` a second
/// of `ms` from then on.
fn made(more: i64, ms: i64) -> SyntheticRecording {
    let slow = |second: i64| (30..60).contains(&second);
    let grown = |s: i64| (s - 30).clamp(0, 30);
    SyntheticRecording::new(90)
        .requests(100, 400)
        .each_request(move |n, r| {
            if !slow(n / 100) {
                r.done_at = r.intended_at + 10_000_000;
            }
        })
        .digest("SELECT name FROM item WHERE id = ?", |s| (100 * s, 100 * s, 0, 0, 0))
        .digest("SELECT report FROM item", move |s| (more * grown(s), more * ms * grown(s), 0, 0, 0))
}

#[test]
fn a_statement_that_joined_is_found_with_its_time() {
    let made = made(50, 600);
    // 50 a second of 600 ms for 100 requests.
    assert!((made.explains(&DEFINITION).unwrap() - 300.0).abs() < 15.0, "{:?}", made.explains(&DEFINITION));
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
    let text = &diagnosis.findings[0].evidence[0].text;
    assert!(text.contains(" calls/s, never outside; 600 ms each"), "{text}");
}

#[test]
fn the_same_mix_and_what_takes_no_time_clear_it() {
    let Ok(Outcome::Cleared(evidence)) = made(0, 0).judge(&DEFINITION) else { panic!("not cleared") };
    let text = &evidence.last().unwrap().text;
    assert!(text.contains("the mix is the same: 1 statements, shares differ by at most 0.0 points"), "{text}");
    assert_eq!(made(50, 1).explains(&DEFINITION), Some(0.0));
    // Slower, and no more often: another plan, not another mix.
    let slower = made(0, 0)
        .digest("SELECT total FROM day WHERE id = ?", |s| (100 * s, 100 * s + 40_000 * (s - 30).clamp(0, 30), 0, 0, 0));
    assert_eq!(slower.explains(&DEFINITION), Some(0.0));
}

#[test]
fn more_requests_call_it_more_often_and_it_has_not_joined() {
    // A hundred times as many requests, each with a call of 20 ms, beside a call every tenth of a second of something else.
    let per_second = |second: i64| if (30..60).contains(&second) { 100 } else { 1 };
    let calls = move |s: i64| (0..s).map(per_second).sum::<i64>();
    let spike = SyntheticRecording::new(90)
        .requests(100, 400)
        .each_request(move |n, r| {
            if per_second(n / 100) == 1 {
                r.done_at = r.intended_at + 10_000_000;
            }
        })
        .tables(move |t| {
            t.requests
                .rows
                .retain(|r| per_second(r.intended_at / 1_000_000_000) > 1 || r.intended_at % 1_000_000_000 == 0)
        })
        .digest("SELECT name FROM item WHERE id = ?", move |s| (calls(s), 200 * calls(s), 0, 0, 0))
        .digest("SELECT 1", |s| (10 * s, s, 0, 0, 0));
    assert_eq!(spike.explains(&DEFINITION), Some(0.0));
}

#[test]
fn without_a_fact_it_is_not_judged() {
    assert_eq!(made(50, 600).tables(|t| t.statements.rows.clear()).explains(&DEFINITION), None);
    let always_slow = SyntheticRecording::new(30).requests(100, 400).digest("SELECT 1", |s| (100 * s, s, 0, 0, 0));
    assert_eq!(always_slow.explains(&DEFINITION), None, "nothing to compare with");
}

/// The same, where `SELECT name` takes 5 ms and, from 30 s on, another text of `each_ms` is sent instead.
fn released(each_ms: i64, text: &'static str) -> SyntheticRecording {
    let (until, since) = (|s: i64| s.min(30) + (s - 60).max(0), |s: i64| (s - 30).clamp(0, 30));
    made(0, 0)
        .digest("SELECT name, price FROM item WHERE id = ?", move |s| (100 * until(s), 500 * until(s), 0, 0, 0))
        .digest(text, move |s| (100 * since(s), 100 * each_ms * since(s), 0, 0, 0))
}

const RELEASED: &str = "SELECT name, price FROM item JOIN stock ON item = item.id WHERE item.id = ?";

#[test]
fn a_statement_in_place_of_another_is_a_release_and_costs_the_difference() {
    let made = released(205, RELEASED);
    // 205 ms for each request less 5 ms; a hundredth of the requests have not called it yet at the end.
    assert!((195.0..=200.0).contains(&made.explains(&DEFINITION).unwrap()), "{:?}", made.explains(&DEFINITION));
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
    let finding = &diagnosis.findings[0];
    let text = &finding.evidence[0].text;
    assert!(text.contains("; in place of one of 5.00 ms: SELECT name, price FROM item WHERE id = ?"), "{text}");
    assert!(finding.fixes[0].text.starts_with("A release changed the statement"), "{:?}", finding.fixes);
}

#[test]
fn a_release_that_is_as_cheap_and_a_new_report_do_not_pass_for_it() {
    assert_eq!(released(6, RELEASED).explains(&DEFINITION), Some(0.0), "as cheap as before");
    let Ok(Outcome::Found(report)) = released(205, "SELECT sum(total) FROM day GROUP BY month").judge(&DEFINITION)
    else {
        panic!("not found")
    };
    assert!(!report.evidence[0].text.contains("in place of"), "{:?}", report.evidence);
}
