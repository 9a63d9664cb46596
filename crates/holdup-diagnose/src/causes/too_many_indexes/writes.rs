//! Statements that write a table.

use holdup_signals::database::tables::TableWrites;
use holdup_signals::database::written::{Change, bare, changed};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

use crate::case::Case;

/// Milliseconds of a request that statements writing `table` take longer than in the baseline
/// window, and the one that takes most.
pub(super) fn writes(case: &Case<'_>, table: &TableWrites) -> Result<(f64, Option<Evidence>), Missing> {
    let each = |view: &View<'_>| -> Result<f64, Missing> {
        let completed = case.completed_in(view.window)?.max(1.0);
        let all = view.executed(&["digest_text"])?;
        let own = all.iter().filter(|of| writes_to(&of.text, &table.table));
        Ok(own.map(|of| of.seconds).fold(0.0, |sum, s| sum + s) / completed * 1e3)
    };
    let view = case.slow();
    let before = case.baseline().and_then(|baseline| each(&baseline).ok()).unwrap_or(0.0);
    let now = each(&view)?;
    let all = view.executed(&["digest_text"])?;
    let most = all.iter().find(|of| writes_to(&of.text, &table.table)).map(|of| {
        let text = format!("most of it is: {}", of.text);
        view.digest_evidence(of, "duration_ns", format!("{:.1} s", of.seconds), "", text)
    });
    Ok(((now - before).max(0.0), most))
}

/// Whether a statement adds rows to `table` or changes them.
pub(super) fn writes_to(text: &str, table: &str) -> bool {
    changed(text).is_some_and(|(change, name)| change != Change::Delete && name == bare(table))
}
