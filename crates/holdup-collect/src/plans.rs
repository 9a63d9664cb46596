//! Plans of statements: [`allowed`] decides which statements may be explained, [`pace`] how often,
//! [`requests`] asks; `holdup-plan` turns the answer into the tree and the row. Values of statements
//! pass through memory and never appear in the output.

pub(crate) mod allowed;
pub(crate) mod names;
pub(crate) mod pace;
mod pieces;
pub(crate) mod requests;

#[cfg(feature = "mysql")]
pub(crate) use holdup_plan::mysql;
#[cfg(feature = "postgresql")]
pub(crate) use holdup_plan::text;
pub(crate) use holdup_plan::{postgresql, row};
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_text};

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
