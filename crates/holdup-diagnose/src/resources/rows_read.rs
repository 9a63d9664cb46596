//! Rows that a statement reads for each call, in the baseline window and now. MySQL counts the rows
//! that each statement examines, PostgreSQL those that scans read of each table.

mod of_tables;

use holdup_recording::words::thousands;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View, Window};

pub(crate) use self::of_tables::mentions;
use self::of_tables::of_tables;
use super::slower::Slowdown;
use crate::case::Case;

/// From this share (0-1) of the additional rows in the first part of the episode, they came at once.
const AT_ONCE: f64 = 0.5;

/// Part of the episode that is its first part.
const FIRST: i64 = 3;

/// What to record for it.
pub const ENABLE: &str = "--watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE";

/// Rows that a statement reads.
pub struct RowsRead {
    /// Per call, in the baseline window and now.
    pub each: (f64, f64),
    /// Rows that a call sends or changes, in the baseline window and now; none where rows are counted by table.
    pub used: Option<(f64, f64)>,
    /// Whether they came at once.
    pub at_once: bool,
    /// How many times the rows the table has, by the server's estimate; none if that is not known.
    pub table_grew: Option<f64>,
    /// The count.
    pub evidence: Evidence,
}

impl RowsRead {
    /// Of a statement that takes longer than `before`; none if no source counts them.
    pub fn of(case: &Case<'_>, slower: &Slowdown<'_>, before: &[DigestUse]) -> Option<Self> {
        let is_postgresql = slower.now.source.starts_with("postgres");
        if is_postgresql { of_tables(case, slower) } else { examined(case, slower, before) }
    }

    /// How many times the rows of the baseline window a call reads; less than one row counts as one.
    pub fn factor(&self) -> f64 {
        self.each.1 / self.each.0.max(1.0)
    }
}

/// By MySQL's count of examined rows.
fn examined(case: &Case<'_>, of: &Slowdown<'_>, before: &[DigestUse]) -> Option<RowsRead> {
    let (slow, now) = (case.slow(), of.now);
    let is_same =
        |other: &&DigestUse| other.digest == now.digest && other.database == now.database && other.source == now.source;
    let then = before.iter().find(is_same)?;
    if now.rows_examined <= 0.0 {
        return None;
    }
    let used_each = |of: &DigestUse| of.rows_used / of.calls.max(1.0);
    let (each, used) = ((then.examined_each(), now.examined_each()), (used_each(then), used_each(now)));
    let early = first_part(&slow).executed(&["digest_text", "rows_examined"]).ok()?;
    let first = early.iter().find(is_same).map(DigestUse::examined_each);
    let text = format!(
        "a call examined {} rows, {} in the baseline window, for a result of {:.0} rows, {:.0} then: {}",
        thousands(each.1),
        thousands(each.0),
        used.1,
        used.0,
        now.text
    );
    let evidence = slow.digest_evidence(now, "rows_examined", thousands(each.1), thousands(each.0), text);
    let at_once = first.is_none_or(|first| is_at_once(each, first));
    Some(RowsRead { each, used: Some(used), at_once, table_grew: None, evidence })
}

fn is_at_once((before, now): (f64, f64), first: f64) -> bool {
    first - before >= AT_ONCE * (now - before)
}

fn first_part<'v>(view: &View<'v>) -> View<'v> {
    let Window { from, to } = view.window;
    View { window: Window { from, to: from + (to - from) / FIRST }, ..*view }
}
