//! Plans of statements, in one vocabulary for all servers: what a server says of one -> the tree, and the row. Which statements may be
//! asked about ([`allowed`]), how often ([`pace`]). Values of statements pass through memory and are in nothing that comes out.

pub(crate) mod allowed;
mod json;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
pub(crate) mod names;
pub(crate) mod pace;
mod pieces;
pub(crate) mod postgresql;
#[cfg(feature = "postgresql")]
pub(crate) mod text;

use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_of_text, digest_text};

/// Most bytes of a condition that are kept.
const CONDITION_BYTES: usize = 500;

/// Most bytes of a tree that are kept: of larger ones the figures and the shape.
const TREE_BYTES: usize = 64 << 10;

/// Whether a server is asked for plans, as the parameter `plans` of an address has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    /// No.
    #[default]
    Off,
    /// With `EXPLAIN`, which executes nothing.
    Explain,
    /// Statements that only read are executed once more, with `EXPLAIN ANALYZE`.
    Analyze,
}

impl Wish {
    /// # Errors
    /// If it is none of them.
    pub(crate) fn of(value: &str) -> Result<Self, String> {
        match value {
            "off" => Ok(Self::Off),
            "explain" => Ok(Self::Explain),
            "analyze" => Ok(Self::Analyze),
            _ => Err(format!("plans={value} is none of off, explain, analyze")),
        }
    }
}

/// A part of a statement with `?` for every value.
fn without_values(text: &str, dialect: Dialect) -> String {
    let mut text = digest_text(text, dialect);
    if text.len() > CONDITION_BYTES {
        let end = (0..=CONDITION_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The row of a plan: kind, figures, shape and tree are filled in, with the digest of the statement's text.
pub(crate) fn row(kind: &str, tree: &Node, digest_text: String) -> Plan {
    let json = tree.to_json();
    // The structure stands in for a tree that is too large.
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

/// For the fuzzer: any text as what a server says of a plan.
#[cfg(feature = "postgresql")]
#[doc(hidden)]
pub fn fuzz(text: &str) -> Vec<Plan> {
    let mut trees = vec![postgresql::tree(text)];
    #[cfg(feature = "mysql")]
    trees.push(mysql::tree(text));
    trees.extend([text::tree(text), text::split(text).and_then(|(_, plan)| text::tree(plan))]);
    let allowed = allowed::of(text, Dialect::PostgreSql).or_else(|| allowed::of(text, Dialect::MySql));
    let text = allowed.filter(|allowed| allowed.names().is_some()).map_or_else(String::new, |allowed| allowed.sql(&[]));
    let text = digest_text(&text, Dialect::PostgreSql);
    trees.into_iter().flatten().map(|tree| row("fuzz", &tree, text.clone())).collect()
}
