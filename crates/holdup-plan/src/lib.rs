//! Plans as servers print them -> one vocabulary: the tree of [`Node`], and the row of the table
//! `plans`. PostgreSQL's text and JSON, MySQL's and MariaDB's JSON and tree. Values of statements never
//! appear in the output. No I/O.

#![forbid(unsafe_code)]

mod json;
pub mod mysql;
pub mod postgresql;
pub mod text;
pub mod tree;

use holdup_recording::plan::{CONSTRAINT_TRIGGER, Node};
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_of_text, digest_text};

/// Bytes kept of a condition.
const CONDITION_BYTES: usize = 500;

/// Bytes kept of a tree: a larger one is reduced to its figures and shape.
const TREE_BYTES: usize = 64 << 10;

/// A part of a statement with each value replaced by `?`.
pub fn without_values(text: &str, dialect: Dialect) -> String {
    let mut text = digest_text(text, dialect);
    if text.len() > CONDITION_BYTES {
        let end = (0..=CONDITION_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What ran for each changed row: it took `total_ms` milliseconds in `calls` calls.
pub(crate) fn trigger(name: &str, is_constraint: bool, total_ms: f64, calls: f64) -> Node {
    let kind = if is_constraint { CONSTRAINT_TRIGGER } else { "Trigger" };
    Node {
        kind: kind.to_owned(),
        relation: Some(name.to_owned()),
        loops: Some(calls),
        time_ms: Some(total_ms / calls.max(1.0)),
        ..Node::default()
    }
}

/// The row of a plan, with kind, figures, shape, tree, and the digest of the statement's text.
pub fn row(kind: &str, tree: &Node, digest_text: String) -> Plan {
    let json = tree.to_json();
    // A tree that is too large is reduced to its root.
    let json = if json.len() > TREE_BYTES { Node { children: Vec::new(), ..tree.clone() }.to_json() } else { json };
    Plan {
        kind: kind.to_owned(),
        digest: digest_of_text(&digest_text),
        digest_text,
        shape: digest_of_text(&tree.structure()),
        plan: json,
        cost: tree.cost,
        rows_estimated: tree.rows_estimated,
        rows_actual: tree.rows_actual,
        ..Plan::default()
    }
}
