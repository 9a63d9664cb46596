//! More rows by the same plan, and what else makes a statement take longer.

use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const TEXT: &str = "SELECT SUM(price) FROM orders WHERE customer = ?";
const PG: &str = "postgresql://db";

/// 20 s, 50 requests a second of 5 ms, from the 10th second on of 400 ms; the statement runs once in each for 3 ms, then for 380. It examines
/// 100 rows, then `rows`, for a result of 1 row, then of `sent`.
fn load(rows: i64, sent: i64) -> SyntheticRecording {
    SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|number, request| {
            if number < 500 {
                request.done_at = request.intended_at + 5_000_000;
                request.first_byte_at = Some(request.done_at);
            }
        })
        .digest(TEXT, move |second| {
            let (early, late) = (50 * second.min(10), 50 * (second - 10).max(0));
            (50 * second, 3 * early + 380 * late, 100 * early + rows * late, early + sent * late, 0)
        })
}

/// The same with plans of these nodes before and during.
fn planned(made: SyntheticRecording, before: &str, during: &str) -> SyntheticRecording {
    let plan = |at_s: i64, kind: &str| {
        let tree = Node { kind: kind.to_owned(), relation: Some("orders".to_owned()), ..Node::default() };
        Plan {
            observed_at: at_s * 1_000_000_000,
            source: "mysql://db".to_owned(),
            kind: "explain".to_owned(),
            digest: TEXT.to_owned(),
            digest_text: TEXT.to_owned(),
            shape: tree.structure(),
            plan: tree.to_json(),
            ..Plan::default()
        }
    };
    let plans = vec![plan(2, before), plan(6, before), plan(12, during), plan(16, during)];
    made.tables(|tables| {
        tables.plans.present = true;
        tables.plans.rows = plans;
    })
}

#[test]
fn more_rows_by_the_same_plan_are_found() {
    let made = planned(load(10_000, 1), "Index Scan", "Index Scan");
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((explained - 377.0).abs() < 30.0, "{explained}");
    assert_eq!(made.diagnose().culprit, Some(DEFINITION.cause));
}

#[test]
fn another_plan_is_not_more_rows_and_without_plans_it_is_open() {
    assert_eq!(planned(load(10_000, 1), "Index Scan", "Seq Scan").explains(&DEFINITION), None);
    assert_eq!(
        planned(load(10_000, 100), "Index Scan", "Seq Scan").explains(&DEFINITION),
        None,
        "nor with more results"
    );
    assert_eq!(load(10_000, 1).explains(&DEFINITION), None, "nothing tells one from the other");
}

#[test]
fn a_result_that_grew_in_proportion_needs_no_plan() {
    let explained = load(10_000, 100).explains(&DEFINITION).unwrap();
    assert!((explained - 377.0).abs() < 30.0, "{explained}");
    assert_eq!(load(10_000, 4).explains(&DEFINITION), None, "rows are discarded");
}

#[test]
fn as_many_rows_clear_it() {
    assert_eq!(load(100, 1).explains(&DEFINITION), Some(0.0));
    assert_eq!(planned(load(100, 1), "Index Scan", "Index Scan").explains(&DEFINITION), Some(0.0));
}

#[test]
fn at_most_three_times_the_share_of_rows_counts() {
    // Ten times the rows take at most thirty times 3 ms.
    let explained = planned(load(1_000, 1), "Index Scan", "Index Scan").explains(&DEFINITION).unwrap();
    assert!((explained - 87.0).abs() < 6.0, "{explained}");
}

#[test]
fn a_table_of_postgresql_that_grew_is_found() {
    let made = |table: f64| {
        let read = |s: i64| 5_000.0 * s.min(10) as f64 + 500_000.0 * (s - 10).max(0) as f64;
        let rows = move |s: i64| if s < 10 { 1_000.0 } else { 1_000.0 * table };
        load(0, 1)
            .counted(PG, "postgresql_stat_tables_seq_tup_read", &[("table", "public.orders")], |_| 0.0)
            .counted(PG, "postgresql_stat_tables_idx_tup_fetch", &[("table", "public.orders")], read)
            .counted(PG, "postgresql_table_rows", &[("table", "public.orders")], rows)
            .tables(|tables| tables.statements.rows.iter_mut().for_each(|row| row.source = PG.to_owned()))
    };
    let explained = made(80.0).explains(&DEFINITION).unwrap();
    assert!((explained - 377.0).abs() < 30.0, "{explained}");
    assert_eq!(made(80.0).diagnose().culprit, Some(DEFINITION.cause), "and not another plan");
    assert_eq!(made(1.0).explains(&DEFINITION), None, "the table did not grow");
    assert_eq!(made(80.0).without("postgresql_table_rows").explains(&DEFINITION), None);
}

#[test]
fn without_a_fact_it_is_not_judged() {
    for column in ["calls", "duration_ns", "digest"] {
        assert_eq!(load(10_000, 100).without_column("statements", column).explains(&DEFINITION), None, "{column}");
    }
}
