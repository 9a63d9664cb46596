//! An index that was lost, and statements that were slow for that or for another reason.

use holdup_recording::events;

use super::super::DEFINITION;
use super::*;
use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};

const TEXT: &str = "SELECT id, note FROM orders WHERE customer = ?";
const MADE: &str = "CREATE INDEX orders_customer ON public.orders USING btree (customer)";
const PG: &str = "postgresql://db";
const SEQUENTIAL: &str = "postgresql_stat_tables_seq_tup_read";

/// 20 s, 50 requests a second of 5 ms, from the 10th second on of 400 ms; the statement runs once in each
/// and takes `times` as long then.
fn load(times: i64) -> SyntheticRecording {
    SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|number, request| {
            if number < 500 {
                request.done_at = request.intended_at + 5_000_000;
                request.first_byte_at = Some(request.done_at);
            }
        })
        .digest(TEXT, move |s| (50 * s, 150 * s.min(10) + 150 * times * (s - 10).max(0), 0, 50 * s, 0))
        .tables(|tables| tables.statements.rows.iter_mut().for_each(|row| row.source = PG.to_owned()))
}

/// An index of `table` went from `in use` to `to` by the second `at`.
fn lost(made: SyntheticRecording, at: i64, table: &str, to: &str) -> SyntheticRecording {
    let since = ((at - 2) * 1_000_000_000).to_string();
    let restore = if to == "none" { format!("{MADE};") } else { "ALTER TABLE …".to_owned() };
    let labels = [
        ("what", "index"),
        ("object", "orders_customer"),
        ("on", table),
        ("from", "in use"),
        ("to", to),
        ("restore", restore.as_str()),
        ("since_ns", since.as_str()),
    ];
    made.events(&[(at, PG, events::CHANGED, &labels)]).tables(|tables| {
        tables.events.rows.iter_mut().for_each(|row| row.text = "index orders_customer is gone".into())
    })
}

#[test]
fn a_dropped_index_leads_the_verdict_with_the_statement_that_makes_it_again() {
    let made = lost(load(100), 11, "public.orders", "none");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("{:?}", made.explains(&DEFINITION)) };
    assert!((found.explains_ms - 297.0).abs() < 30.0, "{}", found.explains_ms);
    let command = "CREATE INDEX CONCURRENTLY orders_customer ON public.orders USING btree (customer);";
    assert_eq!(found.fixes[0].command.as_deref(), Some(command));
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::MissingIndex));
    let begins = "Index orders_customer is gone (changed at 00:00:11 UTC). ";
    assert!(diagnosis.headline.starts_with(begins), "{}", diagnosis.headline);
}

#[test]
fn an_index_hidden_from_the_planner_is_lost_as_well() {
    for state in ["invalid", "invisible", "ignored"] {
        let made = lost(load(100), 10, "public.orders", state);
        assert!(made.explains(&DEFINITION).is_some_and(|ms| ms > 250.0), "{state}");
    }
    let shown = lost(load(100), 10, "public.orders", "in use");
    assert_eq!(shown.explains(&DEFINITION), None, "no index was lost");
}

#[test]
fn a_changed_plan_is_how_a_lost_index_shows() {
    let read = |s: i64| 500.0 * s.min(10) as f64 + 3e6 * (s - 10).max(0) as f64;
    let scans = |made: SyntheticRecording| {
        made.counted(PG, SEQUENTIAL, &[("table", "public.orders")], read).counter(
            PG,
            "postgresql_stat_tables_idx_tup_fetch",
            &[("table", "public.orders")],
            10.0,
        )
    };
    let plan = |made: &SyntheticRecording| {
        let findings = made.diagnose().findings;
        findings.into_iter().find(|found| found.cause == Cause::PlanChanged).map(|found| found.role)
    };
    let dropped = scans(lost(load(100), 11, "public.orders", "none"));
    assert_eq!(dropped.diagnose().culprit, Some(Cause::MissingIndex));
    assert_eq!(plan(&dropped), Some(Role::Symptom));
    assert_eq!(plan(&scans(load(100))), Some(Role::Root), "the index is there: the planner chose so");
}

#[test]
fn a_lost_index_is_not_blamed_for_what_it_cannot_have_done() {
    assert_eq!(lost(load(100), 11, "public.item", "none").explains(&DEFINITION), None, "another table");
    assert_eq!(lost(load(1), 11, "public.orders", "none").explains(&DEFINITION), None, "the statement is as quick");
    assert_eq!(lost(load(100), 18, "public.orders", "none").explains(&DEFINITION), None, "requests were slow before");
    // A call reads as many rows as before: it waits for something else.
    let table = [("table", "public.orders")];
    let waits = lost(load(100), 11, "public.orders", "none").counter(PG, SEQUENTIAL, &table, 500.0).counter(
        PG,
        "postgresql_stat_tables_idx_tup_fetch",
        &table,
        500.0,
    );
    assert!(waits.explains(&DEFINITION).is_none_or(|ms| ms == 0.0));
}
