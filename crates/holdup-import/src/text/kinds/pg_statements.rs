//! `pg_stat_statements`: calls, time and rows by statement, as the collector writes them. Times are
//! in milliseconds. A select that shows no time by its usual name is not read: another name may
//! stand for another unit.

use std::collections::BTreeMap;

use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::postgresql::SOURCE;
use super::{Context, Kind, Row, Table};

pub(super) const KIND: Kind = Kind::table(
    "pg_stat_statements",
    |columns| columns.has_any(&QUERY) && columns.has(&["calls"]) && !columns.has_any(&["state", "pid"]),
    read,
);

/// Columns with the statement: whole, or cut by the select.
const QUERY: [&str; 6] = ["query", "query_text", "short_query", "left", "substr", "substring"];

/// Columns with the time of all calls, and of one call, milliseconds.
const TOTAL: [&str; 2] = ["total_exec_time", "total_time"];
const MEAN: [&str; 2] = ["mean_exec_time", "mean_time"];

#[derive(Default)]
struct Counts {
    calls: f64,
    duration_ms: f64,
    rows: f64,
}

/// Calls, milliseconds and rows of a row.
fn counts(row: &Row<'_, '_>) -> Option<Counts> {
    let calls = row.number(&["calls"]).filter(|calls| *calls >= 0.0)?;
    let executed = row.number(&TOTAL).or_else(|| Some(row.number(&MEAN)? * calls))?;
    let duration_ms = executed + row.number(&["total_plan_time"]).unwrap_or(0.0);
    Some(Counts { calls, duration_ms, rows: row.number(&["rows"]).unwrap_or(0.0) }).filter(|of| of.duration_ms >= 0.0)
}

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of("pg_stat_statements");
    let mut totals: BTreeMap<(Option<String>, String), Counts> = BTreeMap::new();
    let mut is_known = false;
    for row in table.rows() {
        let Some(counts) = counts(&row) else { continue };
        is_known = true;
        let Some(query) = row.text(&QUERY).filter(|query| !query.starts_with('<')) else { continue };
        let database = row.text(&["datname"]).map(str::to_owned);
        let total = totals.entry((database, digest_text(query, Dialect::PostgreSql))).or_default();
        total.calls += counts.calls;
        total.duration_ms += counts.duration_ms;
        total.rows += counts.rows;
    }
    if !is_known && !table.is_empty() {
        context.out.note("pg_stat_statements: select total_exec_time or mean_exec_time by its own name");
        return context.unread.extend(0..table.used);
    }
    if !table.columns.has(&["query"]) {
        context.out.note("pg_stat_statements: statements cut by the select are other statements than whole ones");
    }
    for ((database, text), counts) in totals {
        let statement = row(database, text, &counts, at);
        context.out.batch.statements.push(statement);
    }
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
