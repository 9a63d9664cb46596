//! What a server reported of single operations, as rows: the execution, the plan that it ran by, and
//! the times that it spent waiting. The log and the profiler share it.

use holdup_mongodb::{OWN_NAME, SlowOperation};
use holdup_recording::Batch;
use holdup_recording::plan::Node;
use holdup_recording::rows::{Plan, Stage, Statement};
use holdup_sql::digest_of_text;

/// Most executions of one sample.
pub(super) const EXECUTIONS_MAX: usize = 2_000;

/// Times that are not waits.
const WORK: [&str; 2] = ["cpu", "planning"];

/// Where and when an operation ended.
pub(super) struct Ended<'a> {
    pub(super) at: i64,
    pub(super) source: &'a str,
    pub(super) session_id: Option<i64>,
}

/// Whether holdup asked it.
pub(super) fn is_own(slow: &SlowOperation) -> bool {
    slow.application.as_deref() == Some(OWN_NAME)
}

/// Adds the rows of an operation.
pub(super) fn add(slow: SlowOperation, ended: &Ended<'_>, batch: &mut Batch) {
    let digest = digest_of_text(&slow.shape);
    let count = |name: &str| slow.count(name).map_or(0, as_count);
    let source = || ended.source.to_owned();
    for (name, duration_ns) in slow.times.iter().filter(|(name, time)| *time > 0 && !WORK.contains(name)) {
        batch.stages.push(Stage {
            observed_at: ended.at,
            source: source(),
            session_id: ended.session_id,
            digest: digest.clone(),
            stage: (*name).to_owned(),
            duration_ns: *duration_ns,
            trace_id: slow.trace_id.clone(),
        });
    }
    if let Some(text) = &slow.plan {
        let tree = tree(text);
        batch.plans.push(Plan {
            observed_at: ended.at,
            source: source(),
            kind: "auto_explain".to_owned(),
            session_id: ended.session_id,
            digest: digest.clone(),
            digest_text: slow.shape.clone(),
            database: Some(slow.database.clone()),
            shape: digest_of_text(&tree.structure()),
            plan: tree.to_json(),
            duration_ns: Some(slow.duration_ns),
            rows_actual: slow.count("returned").map(|rows| rows as f64),
            trace_id: slow.trace_id.clone(),
            ..Plan::default()
        });
    }
    batch.statements.push(Statement {
        observed_at: ended.at,
        source: source(),
        kind: "execution".to_owned(),
        session_id: ended.session_id,
        digest,
        calls: 1,
        duration_ns: slow.duration_ns,
        lock_ns: slow.time_ns("lock_wait").unwrap_or(0),
        rows_examined: count("documents_examined"),
        rows_sent: count("returned"),
        errors: i64::from(slow.error.is_some()),
        rows_affected: as_count(slow.changed()),
        no_index: i64::from(slow.is_scan),
        temporary_tables: 0,
        temporary_disk_tables: i64::from(slow.used_disk),
        database: Some(slow.database),
        digest_text: slow.shape,
        trace_id: slow.trace_id,
    });
}

fn as_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The steps of a plan's summary: one, or several side by side.
fn tree(summary: &str) -> Node {
    let step = |text: &str| {
        let (kind, index) = text.split_once(' ').map_or((text, None), |(kind, index)| (kind, Some(index.to_owned())));
        Node { kind: kind.to_owned(), index, ..Node::default() }
    };
    // An index is in braces: what separates steps follows one, or a word.
    let mut steps: Vec<String> = Vec::new();
    for part in summary.split(", ") {
        match steps.last_mut() {
            Some(last) if last.contains('{') && !last.ends_with('}') => {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => steps.push(part.to_owned()),
        }
    }
    match steps.as_slice() {
        [one] => step(one),
        several => {
            let children = several.iter().map(|text| step(text)).collect();
            Node { kind: "OR".to_owned(), children, ..Node::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_trees_of_their_steps() {
        for (summary, structure) in [
            ("COLLSCAN", "COLLSCAN"),
            ("IXSCAN { a: 1, b: -1 }", "IXSCAN by { a: 1, b: -1 }"),
            ("IXSCAN { a: 1, b: 1 }, COLLSCAN", "OR(IXSCAN by { a: 1, b: 1 }, COLLSCAN)"),
        ] {
            assert_eq!(tree(summary).structure(), structure);
        }
    }
}
