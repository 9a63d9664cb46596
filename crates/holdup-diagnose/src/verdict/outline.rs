//! The answer's outline as data: episodes, what is still to be worked off, and the chain of causes. How they come about is `links`'.

use serde::{Deserialize, Serialize};

use super::{Role, Span};

/// The recording that the judged one was held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstReport {
    /// What it is called.
    pub recording: String,
    /// Its calm time, seconds from its start.
    pub window: Span,
    /// Mean response time in it, milliseconds.
    pub response_ms: f64,
    /// Kinds of sources that it lacks, e.g. `mysql`: what they say of the judged one is held against nothing.
    pub lacks: Vec<String>,
    /// In words.
    pub text: String,
}

/// What would tell causes apart that the recording does not tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitReport {
    /// The causes, the likeliest first.
    pub rivals: Vec<String>,
    /// What to measure, in words.
    pub measure: String,
    /// The command that would; none if it takes a change and no reading.
    pub command: Option<String>,
    /// The source to watch, as `--watch` has it, with `USER`, `HOST`, `PORT`, `N` and `APP` to be filled in; none if watching does
    /// not tell. `holdup doctor --for-verdict` takes it where that is safe.
    pub watch: Option<String>,
}

/// A degraded stretch beside what was calm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeReport {
    /// Start, seconds from the start of the recording.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Requests that were due in it.
    pub requests: u64,
    /// Their mean response time, milliseconds.
    pub response_ms: f64,
    /// The same of the calm stretch; 0 without one.
    pub calm_ms: f64,
    /// Whether it is the one that causes are looked for in.
    pub judged: bool,
}

/// What a database still has to work off: dead rows, vacuums under way, a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DebtReport {
    /// In words.
    pub text: String,
    /// Tables, most dead rows first.
    pub tables: Vec<TableDebtReport>,
    /// Whether a checkpoint was writing.
    pub checkpoint: bool,
    /// Seconds until the vacuums under way have been through their tables, at their present pace; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A table with dead rows to be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDebtReport {
    /// `schema.name`.
    pub table: String,
    /// Of a TOAST table the one whose values it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_of: Option<String>,
    /// Dead rows.
    pub dead_rows: f64,
    /// Dead rows at which vacuum begins.
    pub fires_at_rows: f64,
    /// Dead rows made a second at the end.
    pub made_per_second: f64,
    /// Whether a vacuum of it was under way.
    pub under_way: bool,
}

/// A cause in the chain of causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Slug.
    pub cause: String,
    /// Its part.
    pub role: Role,
    /// What it leads to: another cause of the chain, or `latency`.
    pub leads_to: String,
    /// What would be so if it were absent.
    pub without: String,
}
