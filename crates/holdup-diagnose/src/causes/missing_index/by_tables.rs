//! The rule on PostgreSQL without plans, by level: scans of a table, or along an index that does not fit,
//! read thousands of rows for each row that a statement returns. Counters of a table do not say whose
//! scans they are, so the statement must take most of the time of all that name the table, and enough
//! time to read those rows.

use super::by_counters::has_condition;
use super::by_plan::fixes;
use super::scan::{SEQUENTIAL, Scan};
use super::{ROW_MS, time_taken};
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, thousands};
use crate::instant::statements::sums_up;
use crate::resources::rows_read::mentions;
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics;
use holdup_recording::plan::Node;
use holdup_signals::database::plans::PLANS;
use holdup_signals::{Counter, DigestUse, View};

/// Rows that scans along an index fetched from the table.
const BY_INDEX: &str = metrics::postgresql::STAT_TABLES_IDX_TUP_FETCH.name;

/// Rows read for each row returned: hundreds may be a small table that is read as a whole.
const IN_VAIN: f64 = 1_000.0;

/// The statement's share (0-1) of the time of all statements on the table.
const MOST: f64 = 0.5;

/// A row takes at least this long to read and compare, milliseconds: 50 million a second.
const LEAST_ROW_MS: f64 = 0.000_02;

/// A statement, and the scans of its table.
struct Reader<'e> {
    of: &'e DigestUse,
    scan: Scan,
    read: Counter,
    explains_ms: f64,
}

/// None with a baseline window, where the growth of what is read decides, and where no statement can
/// be told to be the reader.
pub(super) fn judge(case: &Case<'_>, executed: &[&DigestUse], completed: f64) -> Option<Outcome> {
    if case.baseline().is_some() {
        return None;
    }
    let view = case.slow();
    let readers = view.label_values(SEQUENTIAL, "table").into_iter().filter_map(|table| {
        let reader = Reader::find(&view, &table, executed, completed)?;
        statements::is_of_requests(case, &view, reader.of, completed).then_some(reader)
    });
    let Reader { of, scan, read, explains_ms } = readers.max_by(|a, b| a.explains_ms.total_cmp(&b.explains_ms))?;
    let text = format!(
        "scans of {} read {} rows per call of the statement that takes most of the time on it, and it returns {:.1}: {}",
        scan.node.relation.as_deref().unwrap_or_default(),
        thousands(scan.examined),
        scan.kept,
        of.text
    );
    let seen =
        read.evidence(format!("{} rows per call", thousands(scan.examined)), "about as many as it returns", text);
    let evidence = vec![seen, time_taken(&view, of, completed, explains_ms)];
    if !is_felt(case, explains_ms).ok()? {
        return Some(Outcome::Cleared(evidence));
    }
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG, FAIR],
        fixes: fixes(of, &scan),
        prove: "Run the same scenario again: seq_tup_read and idx_tup_fetch of the table hardly grow.".to_owned(),
        role: Role::Root,
    }))
}

impl<'e> Reader<'e> {
    fn find(view: &View<'_>, table: &str, executed: &[&'e DigestUse], completed: f64) -> Option<Self> {
        let counted = |way| view.counter(way, &[("table", table)], PLANS).ok();
        let mut ways: Vec<Counter> = [SEQUENTIAL, BY_INDEX].into_iter().filter_map(counted).collect();
        ways.sort_by(|a, b| b.delta.total_cmp(&a.delta));
        let rows = ways.iter().map(|way| way.delta.max(0.0)).sum::<f64>();
        let read = ways.into_iter().next().filter(|_| rows > 0.0)?;
        let on_it: Vec<&DigestUse> = executed.iter().copied().filter(|of| mentions(&of.text, table)).collect();
        let all = on_it.iter().map(|of| of.seconds).sum::<f64>();
        let of = on_it.into_iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        let (examined, kept) = (rows / of.calls, of.rows_used / of.calls);
        let each_ms = of.seconds / of.calls * 1e3;
        let is_reader = of.seconds >= MOST * all && each_ms >= examined * LEAST_ROW_MS;
        let is_in_vain = examined >= IN_VAIN * kept.max(1.0) && has_condition(&of.text) && !sums_up(&of.text);
        if !is_reader || !is_in_vain {
            return None;
        }
        let (schema, name) = table.split_once('.').unwrap_or(("", table));
        let node = Node {
            kind: "Seq Scan".to_owned(),
            relation: Some(name.to_owned()),
            schema: Some(schema.to_owned()).filter(|schema| !schema.is_empty()),
            ..Node::default()
        };
        let explains_ms = (of.seconds * 1e3).min(rows * ROW_MS) / completed;
        let scan = Scan { node, examined, kept, known: "by the server's counters of the table" };
        Some(Self { of, scan, read, explains_ms })
    }
}
