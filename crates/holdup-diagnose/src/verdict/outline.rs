//! The answer's outline as data: episodes, the work left, and the chain of causes. `links` computes
//! it.

use crate::cause::Cause;
use crate::next_command::PasteNextReport;
use serde::{Deserialize, Serialize};

use super::{Role, Span};

/// The baseline recording that the judged one is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstReport {
    /// Its name.
    pub recording: String,
    /// Its baseline window, seconds from its start.
    pub window: Span,
    /// Mean response time in it, milliseconds.
    pub response_ms: f64,
    /// Kinds of sources that it lacks, e.g. `mysql`: such figures of the judged recording have no
    /// baseline.
    pub lacks: Vec<String>,
    /// In words.
    pub text: String,
}

/// The level of response time where nothing says whether it is good: no change in the recording, no
/// baseline recording and no objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelReport {
    /// Median response time, milliseconds; none if nothing timed each request.
    pub p50_ms: Option<f64>,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// Part of it in the database, milliseconds: all of it if the database alone was timed; none if no
    /// source shows it.
    pub database_ms: Option<f64>,
    /// Work that an answer does not need, the dearest first; empty if none was seen.
    pub dear: Vec<DearReport>,
}

/// Work that an answer does not need, by its level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DearReport {
    /// Slug.
    pub cause: Cause,
    /// What an average request could save at most, milliseconds; none if no source shows it.
    pub saves_ms: Option<f64>,
    /// In words.
    pub text: String,
    /// The command that ends it, e.g. the statement that builds the index; none if it takes a change of
    /// the app.
    pub command: Option<String>,
}

/// Which part of a recording that does not fit in memory was read in full. Causes are judged there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadReport {
    /// The stretch, seconds from the recording's start.
    pub window: Span,
    /// How often the other samples were read outside of it, seconds; 0 if all were.
    pub step_s: f64,
    /// In words, with what was not looked at.
    pub text: String,
}

/// The measurement that would tell apart causes that the recording cannot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitReport {
    /// The causes, the likeliest first.
    pub rivals: Vec<Cause>,
    /// What to measure, in words.
    pub measure: String,
    /// Its command; none if it takes a change rather than a measurement.
    pub command: Option<String>,
    /// The source to watch, as `--watch` has it, with `USER`, `HOST`, `PORT`, `N` and `APP` to be
    /// filled in; none if watching does not help. `holdup doctor --for-verdict` takes it where that
    /// is safe.
    pub watch: Option<String>,
}

/// What the outputs of one instant show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotReport {
    /// What it settles, in sentences.
    pub settles: Vec<String>,
    /// What it cannot settle.
    pub open: String,
    /// What to run and paste next, the most telling first: at most three commands, which only read.
    pub paste_next: Vec<PasteNextReport>,
}

/// An episode compared with the baseline window.
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
    /// The same in the baseline window; 0 without one.
    #[serde(alias = "calm_ms")]
    pub baseline_ms: f64,
    /// Whether it is the episode in which causes are judged.
    pub judged: bool,
}

/// Work that a database still has to do: dead rows, running vacuums, a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DebtReport {
    /// In words.
    pub text: String,
    /// Tables, most dead rows first.
    pub tables: Vec<TableDebtReport>,
    /// Whether a checkpoint was writing.
    pub checkpoint: bool,
    /// Seconds until the running vacuums have passed their tables, at their present pace; none if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A table with dead rows to remove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDebtReport {
    /// `schema.name`.
    pub table: String,
    /// For a TOAST table, the table whose values it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_of: Option<String>,
    /// Dead rows.
    pub dead_rows: f64,
    /// Dead rows at which vacuum starts.
    pub fires_at_rows: f64,
    /// New dead rows per second at the end.
    pub made_per_second: f64,
    /// Whether a vacuum of it was running.
    pub under_way: bool,
}

/// A cause in the chain of causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Slug.
    pub cause: Cause,
    /// Its part.
    pub role: Role,
    /// What it leads to: another cause of the chain, or `latency`.
    pub leads_to: String,
    /// What would change if it were absent.
    pub without: String,
}
