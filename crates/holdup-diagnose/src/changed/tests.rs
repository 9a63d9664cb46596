//! Changes beside causes: as evidence and as fixes, and never as a cause by themselves.

use holdup_recording::events;

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;

const MYSQL: &str = "mysql://db";
const TEXT: &str = "SELECT id, note FROM orders WHERE customer = ?";

/// 20 s, 50 requests a second of 5 ms, from the 10th second on of 400 ms: the statement examines many rows then.
fn load() -> SyntheticRecording {
    calling(TEXT)
}

fn calling(text: &str) -> SyntheticRecording {
    let each = 395;
    SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|number, request| {
            if number < 500 {
                request.done_at = request.intended_at + 5_000_000;
                request.first_byte_at = Some(request.done_at);
            }
        })
        .digest(text, move |s| {
            let late = (s - 10).max(0);
            (50 * s, 50 * s.min(10) + 50 * each * late, 500 * s.min(10) + 3_000_000 * late, 500 * s, 0)
        })
}

fn set(made: SyntheticRecording, at: i64, name: &str) -> SyntheticRecording {
    let labels = [
        ("what", "setting"),
        ("object", name),
        ("from", "index_merge=on"),
        ("to", "index_merge=off"),
        ("since_ns", "9000000000"),
        ("restore", "SET GLOBAL optimizer_switch = 'index_merge=on';"),
    ];
    made.events(&[(at, MYSQL, events::CHANGED, &labels)])
}

#[test]
fn a_setting_of_the_planner_leads_the_verdict_on_a_changed_plan() {
    let diagnosis = set(load(), 10, "optimizer_switch").diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::PlanChanged), "{}", diagnosis.headline);
    assert!(
        diagnosis.headline.starts_with("Changed at second 10 (changed at 00:00:10 UTC). "),
        "{}",
        diagnosis.headline
    );
    let fix = &diagnosis.findings[0].fixes[0];
    assert_eq!(fix.command.as_deref(), Some("SET GLOBAL optimizer_switch = 'index_merge=on';"));
    assert!(fix.text.starts_with("Set optimizer_switch back: index_merge=on before"), "{}", fix.text);
}

#[test]
fn a_setting_of_something_else_leads_nothing() {
    let diagnosis = set(load(), 10, "max_heap_table_size").diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::PlanChanged));
    assert!(!diagnosis.headline.contains("(changed at"), "{}", diagnosis.headline);
}

#[test]
fn a_change_alone_on_a_healthy_service_is_not_a_cause() {
    let steady = SyntheticRecording::new(40).digest(TEXT, |s| (100 * s, 200 * s, 500 * s, 500 * s, 0));
    let healthy = set(steady, 20, "optimizer_switch").diagnose();
    assert_eq!((healthy.verdict, healthy.culprit), (Answer::Healthy, None), "{}", healthy.headline);
    assert!(healthy.findings.is_empty());
}

#[test]
fn a_change_that_was_undone_before_is_not_told() {
    let back =
        [("what", "setting"), ("object", "optimizer_switch"), ("from", "index_merge=off"), ("to", "index_merge=on")];
    let made = set(load(), 9, "optimizer_switch").events(&[(10, MYSQL, events::CHANGED, &back)]);
    let diagnosis = made.diagnose();
    let told = |of: &RelevantChange| of.change.to == "index_merge=off";
    assert!(!made.with(|case| Changes::for_case(case).0.iter().any(told)), "{}", diagnosis.headline);
}

#[test]
fn a_new_trigger_reads_rows_without_another_plan_of_the_statement() {
    let labels = [
        ("what", "trigger"),
        ("on", "orders"),
        ("object", "recount"),
        ("from", ""),
        ("to", "calls recount"),
        ("since_ns", "9000000000"),
        ("restore", "DROP TRIGGER recount ON orders;"),
    ];
    let of = |text: &str| calling(text).events(&[(10, MYSQL, events::CHANGED, &labels)]).diagnose();
    // It starts no trigger.
    assert_eq!(of(TEXT).culprit, Some(Cause::PlanChanged));
    let diagnosis = of("INSERT INTO orders (customer) VALUES (?)");
    assert_eq!(diagnosis.culprit, Some(Cause::StatementRegression), "{}", diagnosis.headline);
    let fix = &diagnosis.findings[0].fixes[0];
    assert_eq!(fix.command.as_deref(), Some("DROP TRIGGER recount ON orders;"), "{}", fix.text);
}
