//! `pg_stat_statements`: calls, time and rows by statement, as the collector writes them. Times are
//! in milliseconds. A select that shows no time by its usual name is not read: another name may
//! stand for another unit.

use std::collections::BTreeMap;

use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set::{self, ResultSet};
use super::Kind;
use super::postgresql::SOURCE;

pub(super) const KIND: Kind = Kind { name: "pg_stat_statements", recognises, read };

/// Columns with the statement: whole, or cut by the select.
const QUERY: [&str; 6] = ["query", "query_text", "short_query", "left", "substr", "substring"];

/// Columns with the time of all calls, and of one call, milliseconds.
const TOTAL: [&str; 2] = ["total_exec_time", "total_time"];
const MEAN: [&str; 2] = ["mean_exec_time", "mean_time"];

fn recognises(lines: &[Line]) -> bool {
    result_set::header(lines).is_some_and(|columns| {
        let has = |names: &[&str]| names.iter().any(|name| columns.iter().any(|column| column == name));
        has(&QUERY) && has(&["calls"]) && !has(&["state", "pid"])
    })
}

#[derive(Default)]
struct Counts {
    calls: f64,
    duration_ms: f64,
    rows: f64,
}

/// Calls, milliseconds and rows of a row.
fn counts(set: &ResultSet, row: &[Option<String>]) -> Option<Counts> {
    let value = |names: &[&str]| set.cell(row, names).and_then(number);
    let calls = value(&["calls"]).filter(|calls| *calls >= 0.0)?;
    let executed = value(&TOTAL).or_else(|| Some(value(&MEAN)? * calls))?;
    let duration_ms = executed + value(&["total_plan_time"]).unwrap_or(0.0);
    Some(Counts { calls, duration_ms, rows: value(&["rows"]).unwrap_or(0.0) }).filter(|of| of.duration_ms >= 0.0)
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("pg_stat_statements");
    let mut totals: BTreeMap<(Option<String>, String), Counts> = BTreeMap::new();
    let mut is_known = false;
    for row in &set.rows {
        let Some(counts) = counts(&set, row) else { continue };
        is_known = true;
        let Some(query) = set.cell(row, &QUERY).filter(|query| !query.starts_with('<')) else { continue };
        let database = set.cell(row, &["datname"]).map(str::to_owned);
        let total = totals.entry((database, digest_text(query, Dialect::PostgreSql))).or_default();
        total.calls += counts.calls;
        total.duration_ms += counts.duration_ms;
        total.rows += counts.rows;
    }
    if !is_known && !set.rows.is_empty() {
        context.out.note("pg_stat_statements: select total_exec_time or mean_exec_time by its own name");
        context.unread.extend(0..set.used);
        return set.used;
    }
    if !set.columns.iter().any(|column| column == "query") {
        context.out.note("pg_stat_statements: statements cut by the select are other statements than whole ones");
    }
    for ((database, text), counts) in totals {
        let statement = row(database, text, &counts, at);
        context.out.batch.statements.push(statement);
    }
    set.used
}

fn row(database: Option<String>, text: String, counts: &Counts, at: i64) -> Statement {
    // For a statement that changes data `rows` counts changed rows.
    let changes = ["insert", "update", "delete", "merge"]
        .iter()
        .any(|word| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)));
    let rows = counts.rows as i64;
    Statement {
        observed_at: at,
        source: SOURCE.to_owned(),
        kind: "digest_total".to_owned(),
        digest: digest_of_text(&text),
        digest_text: text,
        database,
        calls: counts.calls as i64,
        duration_ns: (counts.duration_ms * 1e6) as i64,
        rows_affected: if changes { rows } else { 0 },
        rows_sent: if changes { 0 } else { rows },
        ..Statement::default()
    }
}
