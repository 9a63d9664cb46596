//! Rows that PostgreSQL's scans read of the table that a statement is on.

use holdup_recording::metrics;
use holdup_recording::words::thousands;
use holdup_signals::View;
use holdup_signals::database::written::bare;

use super::{AT_ONCE, ENABLE, RowsRead, first_part};
use crate::case::Case;
use crate::resources::newcomers::Newcomers;
use crate::resources::slower::Slowdown;

/// By PostgreSQL's counts of the rows that scans read of the table, from it or along an index. Each
/// way alone: a statement that reads the whole table all along hides another that now follows an
/// index through it. None if other work that began reads it, too.
pub(super) fn of_tables(case: &Case<'_>, of: &Slowdown<'_>) -> Option<RowsRead> {
    let (slow, baseline) = (case.slow(), case.baseline()?);
    let new = Newcomers::for_case(case).ok()?;
    let names = slow.label_values(SEQUENTIAL, "table");
    let own = |name: &&String| mentions(&of.now.text, name);
    let mut widest: Option<(String, &'static str, (f64, f64))> = None;
    for table in names.iter().filter(own) {
        if new.reads(table) {
            return None;
        }
        let calls = |view: &View<'_>| {
            let all = view.executed(&["digest_text"]).ok()?;
            let reads = all.iter().filter(|of| mentions(&of.text, table) && !of.text.starts_with("INSERT"));
            Some(reads.map(|of| of.calls).sum::<f64>()).filter(|calls| *calls > 0.0)
        };
        // All readers of the table together: the counters do not tell them apart.
        let called = (calls(&baseline)?, calls(&slow)?);
        for way in WAYS {
            let (Some(before), Some(now)) = (rows_read(&baseline, table, way), rows_read(&slow, table, way)) else {
                continue;
            };
            let each = (before * of_window(&baseline) / called.0, now * of_window(&slow) / called.1);
            if widest.as_ref().is_none_or(|(.., other)| each.1 - each.0 > other.1 - other.0) {
                widest = Some((table.clone(), way, each));
            }
        }
    }
    let (table, way, each) = widest?;
    let first = first_part(&slow);
    let early = rows_read(&first, &table, way).zip(rows_read(&slow, &table, way));
    let at_once = early.is_none_or(|(early, all)| early >= AT_ONCE * all);
    let what = if way == BY_INDEX { "scans of indexes of" } else { "scans of" };
    let text = format!(
        "{what} {table} read {} rows per call of the statements on it, {} in the baseline window; slower since: {}",
        thousands(each.1),
        thousands(each.0),
        of.now.text
    );
    let read = slow.counter(way, &[("table", table.as_str())], ENABLE).ok()?;
    let evidence = read.evidence(format!("{} a call", thousands(each.1)), thousands(each.0), text);
    let table_grew = table_grew(&baseline, &slow, &table);
    Some(RowsRead { each, used: None, at_once, table_grew, evidence })
}

const SEQUENTIAL: &str = metrics::postgresql::STAT_TABLES_SEQ_TUP_READ.name;
const BY_INDEX: &str = metrics::postgresql::STAT_TABLES_IDX_TUP_FETCH.name;
const WAYS: [&str; 2] = [SEQUENTIAL, BY_INDEX];

fn of_window(view: &View<'_>) -> f64 {
    view.window.seconds().max(1e-9)
}

/// Rows of `table` that scans read per second that way; none if they were not counted.
fn rows_read(view: &View<'_>, table: &str, way: &str) -> Option<f64> {
    let read = view.counter(way, &[("table", table)], ENABLE).ok()?;
    // A dropped index takes its count with it: a fall is not a negative number of rows.
    Some(read.delta.max(0.0) / of_window(view))
}

/// How many times the rows the table has, by the server's estimate; none if it gives none.
fn table_grew(baseline: &View<'_>, slow: &View<'_>, table: &str) -> Option<f64> {
    let rows = |view: &View<'_>| view.gauge(metrics::postgresql::TABLE_ROWS.name, &[("table", table)], ENABLE).ok();
    let (before, now) = (rows(baseline)?, rows(slow)?);
    Some(now.max / before.mean).filter(|grew| grew.is_finite())
}

/// Whether a statement's text names the table.
pub(crate) fn mentions(text: &str, table: &str) -> bool {
    let table = bare(table);
    text.split_whitespace().any(|word| bare(word) == table || bare(word.split('(').next().unwrap_or(word)) == table)
}
