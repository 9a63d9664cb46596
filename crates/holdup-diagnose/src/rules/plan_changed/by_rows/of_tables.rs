//! Rows that PostgreSQL's scans read of the table that a statement is on.

use holdup_recording::metrics;
use holdup_recording::words::thousands;
use holdup_signals::View;
use holdup_signals::written::bare;

use super::{AT_ONCE, ENABLE, RowsRead, first_part};
use crate::case::Case;
use crate::resources::newcomers::Newcomers;
use crate::rules::plan_changed::Slowdown;

/// By PostgreSQL's counts of the rows that scans read of the table. None if other work that began
/// reads it, too.
pub(super) fn of_tables(case: &Case<'_>, of: &Slowdown<'_>) -> Option<RowsRead> {
    let (slow, calm) = (case.slow(), case.calm()?);
    let new = Newcomers::for_case(case).ok()?;
    let names = slow.label_values(SEQUENTIAL, "table");
    let own = |name: &&String| mentions(&of.now.text, name);
    let per_call = |view: &View<'_>, table: &str| rows_read(view, table).map(|rows| rows * of_window(view));
    let mut widest: Option<(String, (f64, f64))> = None;
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
        let each = (per_call(&calm, table)? / calls(&calm)?, per_call(&slow, table)? / calls(&slow)?);
        if widest.as_ref().is_none_or(|(_, other)| each.1 - each.0 > other.1 - other.0) {
            widest = Some((table.clone(), each));
        }
    }
    let (table, each) = widest?;
    let first = first_part(&slow);
    let early = rows_read(&first, &table).zip(rows_read(&slow, &table));
    let at_once = early.is_none_or(|(early, all)| early >= AT_ONCE * all);
    let text = format!(
        "scans of {table} read {} rows per call of the statements on it, {} in the baseline window; slower since: {}",
        thousands(each.1),
        thousands(each.0),
        of.now.text
    );
    let read = slow.counter(source(&slow, &table), &[("table", table.as_str())], ENABLE).ok()?;
    let evidence = read.evidence(format!("{} a call", thousands(each.1)), thousands(each.0), text);
    Some(RowsRead { each, at_once, evidence })
}

const SEQUENTIAL: &str = metrics::postgresql::STAT_TABLES_SEQ_TUP_READ.name;
const BY_INDEX: &str = metrics::postgresql::STAT_TABLES_IDX_TUP_FETCH.name;

fn of_window(view: &View<'_>) -> f64 {
    view.window.seconds().max(1e-9)
}

/// Rows of `table` that scans read per second.
fn rows_read(view: &View<'_>, table: &str) -> Option<f64> {
    let rows = |metric| view.counter(metric, &[("table", table)], ENABLE).ok();
    let read = [rows(SEQUENTIAL), rows(BY_INDEX)];
    // A dropped index takes its count with it: a fall is not a negative number of rows.
    let sum = read.iter().flatten().map(|counter| counter.delta.max(0.0)).sum::<f64>();
    read.iter().any(Option::is_some).then(|| sum / of_window(view))
}

/// The metric that counts most of these rows.
fn source(view: &View<'_>, table: &str) -> &'static str {
    let rows = |metric| view.counter(metric, &[("table", table)], ENABLE).map_or(0.0, |c| c.delta);
    if rows(SEQUENTIAL) >= rows(BY_INDEX) { SEQUENTIAL } else { BY_INDEX }
}

/// Whether a statement's text names the table.
fn mentions(text: &str, table: &str) -> bool {
    let table = bare(table);
    text.split_whitespace().any(|word| bare(word) == table || bare(word.split('(').next().unwrap_or(word)) == table)
}
