//! What a report says of earlier runs.

use serde::Serialize;

/// What earlier runs have of a statement.
#[derive(Clone, Debug, Serialize)]
pub struct EarlierFigures {
    /// Whether no earlier run contains it.
    pub is_new: bool,
    /// Earlier runs that contain it.
    pub runs: u64,
    /// Executions in them.
    pub calls: u64,
    /// Their mean time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_us: Option<f64>,
    /// Mean time now, as a multiple of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_ratio: Option<f64>,
    /// First seen in any run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// Last seen in any run before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
}

/// Differences between this run and earlier ones.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryReport {
    /// Number of earlier runs.
    pub runs: u64,
    /// Statements that none of them contains, by rank.
    pub new: Vec<String>,
    /// Statements whose mean time is at least a fifth above that of earlier runs, with ten or more
    /// calls on both sides.
    pub slower: Vec<String>,
    /// Statements of the last run that this one lacks.
    pub gone: u64,
}
