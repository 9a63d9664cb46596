//! Statements and their cost by MySQL's own counts: `events_statements_summary_by_digest` of
//! performance_schema, and `sys.statement_analysis`, which writes times with their unit.

use std::collections::BTreeMap;

use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::processlist::SOURCE;
use super::{Context, Kind, Row, Table, number};

pub(super) const KIND: Kind = Kind::table(
    "statements by digest",
    |columns| columns.has_any(&TEXT) && columns.has_any(&CALLS) && !columns.has_any(&["pid", "calls", "state"]),
    read,
);

const TEXT: [&str; 2] = ["DIGEST_TEXT", "query"];
const CALLS: [&str; 2] = ["COUNT_STAR", "exec_count"];
const DATABASE: [&str; 2] = ["SCHEMA_NAME", "db"];
const TOTAL: [&str; 2] = ["SUM_TIMER_WAIT", "total_latency"];
const MEAN: [&str; 2] = ["AVG_TIMER_WAIT", "avg_latency"];
const LOCKED: [&str; 2] = ["SUM_LOCK_TIME", "lock_latency"];

/// Columns that are counts, each with the field that it adds to.
type Field = fn(&mut Statement) -> &mut i64;
const COUNTS: [([&str; 2], Field); 8] = [
    (CALLS, |row| &mut row.calls),
    (["SUM_ROWS_EXAMINED", "rows_examined"], |row| &mut row.rows_examined),
    (["SUM_ROWS_SENT", "rows_sent"], |row| &mut row.rows_sent),
    (["SUM_ROWS_AFFECTED", "rows_affected"], |row| &mut row.rows_affected),
    (["SUM_ERRORS", "err_count"], |row| &mut row.errors),
    (["SUM_NO_INDEX_USED", "no_index_used_count"], |row| &mut row.no_index),
    (["SUM_CREATED_TMP_TABLES", "tmp_tables"], |row| &mut row.temporary_tables),
    (["SUM_CREATED_TMP_DISK_TABLES", "tmp_disk_tables"], |row| &mut row.temporary_disk_tables),
];

/// Nanoseconds of a time: picoseconds, or a number with a unit (`1.52 m`).
fn nanoseconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] =
        [("ps", 1e-3), ("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("d", 86_400e9)];
    let (value, unit) = text.split_once(' ').unwrap_or((text, "ps"));
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    number(value).map(|value| value * factor).filter(|ns| (0.0..9e18).contains(ns))
}

/// The time of all calls, nanoseconds.
fn total_ns(row: &Row<'_, '_>) -> Option<f64> {
    let total = row.text(&TOTAL).and_then(nanoseconds);
    total.or_else(|| Some(row.text(&MEAN).and_then(nanoseconds)? * row.number(&CALLS)?))
}

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of("statements by digest");
    let mut totals: BTreeMap<(Option<String>, String), Statement> = BTreeMap::new();
    for row in table.rows() {
        let (Some(query), Some(duration_ns)) = (row.text(&TEXT), total_ns(&row)) else { continue };
        let text = digest_text(query, Dialect::MySql);
        let database = row.text(&DATABASE).map(str::to_owned);
        let total = totals.entry((database.clone(), text.clone())).or_insert_with(|| Statement {
            observed_at: at,
            source: SOURCE.to_owned(),
            kind: "digest_total".to_owned(),
            digest: digest_of_text(&text),
            digest_text: text,
            database,
            ..Statement::default()
        });
        total.duration_ns = total.duration_ns.saturating_add(duration_ns as i64);
        total.lock_ns += row.text(&LOCKED).and_then(nanoseconds).unwrap_or(0.0) as i64;
        for (names, field) in COUNTS {
            let count = row.number(&names).filter(|count| (0.0..9e18).contains(count)).unwrap_or(0.0) as i64;
            let sum = field(total);
            *sum = sum.saturating_add(count);
        }
        // `sys` marks statements that read whole tables.
        if row.text(&["full_scan"]) == Some("*") && total.no_index == 0 {
            total.no_index = total.calls;
        }
    }
    if totals.is_empty() && !table.is_empty() {
        context.out.note("statements by digest: select sum_timer_wait or avg_timer_wait by its own name");
        return context.unread.extend(0..table.used);
    }
    context.out.batch.statements.extend(totals.into_values());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_and_without_a_unit() {
        for (text, expected) in [
            ("1500000000000", Some(1.5e9)),
            ("1.50 s", Some(1.5e9)),
            ("2.00 m", Some(120e9)),
            ("250 us", Some(250e3)),
            ("1 x", None),
            ("-1 s", None),
            ("", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
