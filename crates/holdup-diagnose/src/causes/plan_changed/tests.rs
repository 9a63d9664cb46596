//! Found, cleared, not judged.

use crate::cause::Cause;
use holdup_recording::plan::Node;
use holdup_recording::rows::{Plan, Session};

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const TEXT: &str = "SELECT note FROM orders WHERE customer = ?";
const SOURCE: &str = "postgresql://db";
const S: i64 = 1_000_000_000;

/// 20 s, 50 requests a second of 5 ms, from the 10th second on of 400 ms; the statement runs once in each, `times` longer then.
fn load(times: i64) -> SyntheticRecording {
    SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|number, request| {
            if number < 500 {
                request.done_at = request.intended_at + 5_000_000;
                request.first_byte_at = Some(request.done_at);
            }
        })
        .digest(TEXT, move |second| {
            let calls = 50 * second;
            (calls, 3 * 50 * second.min(10) + 3 * times * 50 * (second - 10).max(0), 0, calls, 0)
        })
}

fn plan(at_s: i64, kind: &str, relation: &str, index: Option<&str>) -> Plan {
    let tree = Node {
        kind: "Limit".to_owned(),
        children: vec![Node {
            kind: kind.to_owned(),
            relation: Some(relation.to_owned()),
            schema: Some("public".to_owned()),
            index: index.map(str::to_owned),
            rows_estimated: Some(3.0),
            rows_actual: index.is_none().then_some(600.0),
            ..Node::default()
        }],
        ..Node::default()
    };
    Plan {
        observed_at: at_s * S,
        source: "mysql://db".to_owned(),
        kind: "explain".to_owned(),
        digest: TEXT.to_owned(),
        digest_text: TEXT.to_owned(),
        shape: tree.structure(),
        plan: tree.to_json(),
        ..Plan::default()
    }
}

fn with(made: SyntheticRecording, plans: Vec<Plan>) -> SyntheticRecording {
    made.tables(|tables| {
        tables.plans.present = true;
        tables.plans.rows = plans;
    })
}

fn dropped() -> Vec<Plan> {
    let index = |at| plan(at, "Index Scan", "orders", Some("orders_customer"));
    vec![index(2), index(6), plan(12, "Seq Scan", "orders", None), plan(16, "Seq Scan", "orders", None)]
}

#[test]
fn another_shape_that_takes_longer_is_found_with_its_node() {
    let made = with(load(100), dropped());
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("{:?}", made.explains(&DEFINITION)) };
    assert!((found.explains_ms - 297.0).abs() < 30.0, "{}", found.explains_ms);
    let told = &found.evidence[0].text;
    assert!(
        told.starts_with("Index Scan orders by orders_customer became Seq Scan orders, 3 rows expected, 600 came"),
        "{told}"
    );
    assert!(found.evidence.iter().any(|piece| piece.text.contains("a factor of 200")), "{:?}", found.evidence);
    assert!(found.fixes[0].text.contains("orders_customer"));
    assert_eq!(found.fixes[1].command.as_deref(), Some("ANALYZE TABLE public.orders;"));
    assert_eq!(made.diagnose().culprit, Some(Cause::PlanChanged));
}

#[test]
fn the_same_plan_and_a_hundred_times_the_time_clears_it() {
    let same = (1..10).map(|at| plan(2 * at, "Index Scan", "orders", Some("orders_customer"))).collect();
    let made = with(load(100), same);
    let Ok(Outcome::Cleared(evidence)) = made.judge(&DEFINITION) else { panic!("{:?}", made.explains(&DEFINITION)) };
    let told = &evidence[0].text;
    let said = "same plan before and during, in 9 of 9 samples: a call takes 300 ms instead of 3.00 ms";
    assert!(told.starts_with(said) && !told.contains("because"), "{told}");
}

#[test]
fn waits_of_the_statement_s_own_sessions_say_why_it_takes_longer() {
    let told = |event: &'static str, statement: &'static str| {
        let session = |at: i64, id: i64| Session {
            observed_at: at * S,
            source: SOURCE.into(),
            session_id: id,
            command: "active".into(),
            state: Some(event.into()),
            true_state: "executing".into(),
            digest_text: Some(statement.into()),
            ..Session::default()
        };
        let plans = (1..10).map(|at| plan(2 * at, "Index Scan", "orders", Some("orders_customer"))).collect();
        let made = with(load(100), plans)
            .session_rows((0..20).flat_map(|at| (0..8).map(move |id| session(at, id))).collect())
            .tables(|tables| {
                tables.plans.rows.iter_mut().for_each(|plan| plan.source = SOURCE.into());
                tables.statements.rows.iter_mut().for_each(|row| row.source = SOURCE.into());
            });
        match made.judge(&DEFINITION) {
            Ok(Outcome::Cleared(evidence)) => evidence[0].text.clone(),
            _ => panic!("{:?}", made.explains(&DEFINITION)),
        }
    };
    assert!(told("IO:DataFileRead", TEXT).contains("3.00 ms because it waits for the disk: SELECT"));
    assert!(told("Lock:transactionid", TEXT).contains("because it waits for a lock"));
    // Sessions that run, and those of other statements, say nothing of it.
    assert!(!told("", TEXT).contains("because"));
    assert!(!told("IO:DataFileRead", "SELECT 1").contains("because"));
}

#[test]
fn a_changed_plan_of_equal_speed_clears_it() {
    // Another plan, as quick as the one before.
    assert_eq!(with(load(1), dropped()).explains(&DEFINITION), Some(0.0));
    // Another plan that was usual before: made for other values.
    let mut plans = dropped();
    plans.push(plan(4, "Seq Scan", "orders", None));
    assert_eq!(with(load(100), plans).explains(&DEFINITION), Some(0.0));
}

#[test]
fn the_same_plan_of_a_few_does_not_clear_that_of_most() {
    // Most of what takes longer has another plan, though each call takes less than twice as long; a few have theirs.
    const FEW: &str = "SELECT 1 FROM item WHERE id = ?";
    let made = SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|number, request| {
            if number < 500 {
                request.done_at = request.intended_at + 5_000_000;
                request.first_byte_at = Some(request.done_at);
            }
        })
        .digest(TEXT, |s| (50 * s, 200 * 50 * s.min(10) + 300 * 50 * (s - 10).max(0), 0, 50 * s, 0))
        .digest(FEW, |s| (50 * s, 20 * 50 * s.min(10) + 40 * 50 * (s - 10).max(0), 0, 50 * s, 0));
    let mut plans = dropped();
    let few = |at| Plan {
        digest: FEW.to_owned(),
        digest_text: FEW.to_owned(),
        ..plan(at, "Index Scan", "item", Some("item_pkey"))
    };
    plans.extend([few(3), few(13)]);
    assert_eq!(with(made, plans).explains(&DEFINITION), None);
}

#[test]
fn without_a_fact_it_is_not_judged() {
    assert_eq!(load(100).explains(&DEFINITION), None, "no plans");
    let late: Vec<Plan> = dropped().into_iter().filter(|plan| plan.observed_at > 10 * S).collect();
    assert_eq!(with(load(100), late).explains(&DEFINITION), None, "none from the baseline window");
    let other: Vec<Plan> = dropped().into_iter().map(|plan| Plan { digest: "other".to_owned(), ..plan }).collect();
    assert_eq!(with(load(100), other).explains(&DEFINITION), None, "those of another statement");
    let kinds: Vec<Plan> = dropped()
        .into_iter()
        .map(|plan| if plan.observed_at > 10 * S { Plan { kind: "auto_explain".to_owned(), ..plan } } else { plan })
        .collect();
    assert_eq!(with(load(100), kinds).explains(&DEFINITION), None, "kinds are not mixed");
    let always = SyntheticRecording::new(20).requests(50, 400).digest(TEXT, |s| (50 * s, 50 * 300 * s, 0, 50 * s, 0));
    assert_eq!(with(always, dropped()).explains(&DEFINITION), None, "it was never healthy");
    assert_eq!(with(load(100), dropped()).without_column("statements", "calls").explains(&DEFINITION), None);
}
