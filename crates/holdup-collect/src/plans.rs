//! Statement plans in one vocabulary for all servers: from a server's output to the tree and the
//! row. [`allowed`] decides which statements may be explained, [`pace`] how often, [`requests`] asks. Values of
//! statements pass through memory and never appear in the output.

pub(crate) mod allowed;
mod json;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
pub(crate) mod names;
pub(crate) mod pace;
mod pieces;
pub(crate) mod postgresql;
pub(crate) mod requests;
#[cfg(feature = "postgresql")]
pub(crate) mod text;

use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_of_text, digest_text};

/// Bytes kept of a condition.
const CONDITION_BYTES: usize = 500;

/// Bytes kept of a tree: a larger one is reduced to its figures and shape.
const TREE_BYTES: usize = 64 << 10;

/// Whether to ask a server for plans, as the address parameter `plans` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlanMode {
    /// Never.
    #[default]
    Off,
    /// With `EXPLAIN`, which executes nothing.
    Explain,
    /// With `EXPLAIN ANALYZE`, which executes read-only statements once more.
    Analyze,
}

impl PlanMode {
    /// # Errors
    /// If the value is not one of them.
    pub(crate) fn parse(value: &str) -> Result<Self, String> {
        match value {
            "off" => Ok(Self::Off),
            "explain" => Ok(Self::Explain),
            "analyze" => Ok(Self::Analyze),
            _ => Err(format!("plans={value} is invalid; use off, explain or analyze")),
        }
    }
}

/// A part of a statement with each value replaced by `?`.
fn without_values(text: &str, dialect: Dialect) -> String {
    let mut text = digest_text(text, dialect);
    if text.len() > CONDITION_BYTES {
        let end = (0..=CONDITION_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The row of a plan, with kind, figures, shape, tree, and the digest of the statement's text.
pub(crate) fn row(kind: &str, tree: &Node, digest_text: String) -> Plan {
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

/// For the fuzzer: parses any text as a server's plan.
#[cfg(feature = "postgresql")]
#[doc(hidden)]
pub fn fuzz(text: &str) -> Vec<Plan> {
    let mut trees = vec![postgresql::tree(text)];
    #[cfg(feature = "mysql")]
    trees.push(mysql::tree(text));
    trees.extend([text::tree(text), text::split(text).and_then(|(_, plan)| text::tree(plan))]);
    let allowed = allowed::check(text, Dialect::PostgreSql).or_else(|| allowed::check(text, Dialect::MySql));
    let text = allowed.filter(|allowed| allowed.names().is_some()).map_or_else(String::new, |allowed| allowed.sql(&[]));
    let text = digest_text(&text, Dialect::PostgreSql);
    trees.into_iter().flatten().map(|tree| row("fuzz", &tree, text.clone())).collect()
}
