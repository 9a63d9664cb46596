//! A comparison as data for the terminal, Markdown, the page and `--json`
//! (`docs/schema/verdict.schema.json`).

use serde::{Deserialize, Serialize};

/// The verdict on an indicator, or on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Better by more than runs of the same thing differ, and by enough to matter.
    Better,
    /// Worse by as much.
    Worse,
    /// For a whole comparison: better in one thing, worse in another.
    Mixed,
    /// Changed, but neither value is better.
    Different,
    /// No larger than the difference between runs of the same thing.
    NoDifference,
    /// The interval is too wide to tell.
    CantTell,
    /// The figures do not measure the same thing.
    NotComparable,
    /// One of the two has no such figure.
    Missing,
}

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// All requests together.
    Requests,
    /// Knee and breaking point of a search.
    Search,
    /// CPU time and memory per request.
    Cost,
    /// One operation.
    Operations,
    /// The parts of a mean request's time.
    Ledger,
    /// Activity of host and servers.
    Indicators,
}

/// The difference between two groups of recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The verdict.
    pub verdict: Change,
    /// Value minus the baseline's, in the row's unit; none if one of the two is missing.
    pub difference: Option<f64>,
    /// Value over the baseline's, minus 1: 0.1 is 10 % more. None for rows compared by difference.
    pub change_ratio: Option<f64>,
    /// Lower end of the 95 % interval of `change_ratio`, or of `difference` if that is none.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The reason, if the figures alone do not show it.
    pub why: Option<String>,
    /// Repeats of each that would decide, if these do not.
    pub repeats_wanted: Option<u32>,
}

/// One group's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The value; for repeats the geometric mean, or for differences the mean. None if there is
    /// none.
    pub value: Option<f64>,
    /// The values of the repeats, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<f64>,
    /// Whether the value is the least that it can be, because it is a request that got no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_least: bool,
    /// The difference from the baseline; none for the baseline itself.
    pub against: Option<Against>,
}

/// One indicator in all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its subject.
    pub section: Section,
    /// Name.
    pub indicator: String,
    /// Unit.
    pub unit: String,
    /// Whether it counts for the overall verdict.
    pub is_headline: bool,
    /// Whether more is better; none if neither is.
    pub more_is_better: Option<bool>,
    /// One figure per group, in order.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Whether it is worth its line: it is a headline figure, or it differs.
    pub fn is_notable(&self) -> bool {
        let differs = |cell: &Cell| {
            let verdict = cell.against.as_ref().map(|against| against.verdict);
            matches!(verdict, Some(Change::Better | Change::Worse | Change::Different))
        };
        self.is_headline || self.cells.iter().any(differs)
    }
}

/// A column: one version or setting, measured once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Number of recordings that count.
    pub recordings: u32,
    /// Recordings that were left out, with reasons.
    pub left_out: Vec<String>,
    /// The overall verdict against the baseline; none for the baseline itself.
    pub verdict: Option<Change>,
    /// The same in a sentence.
    pub headline: Option<String>,
}

/// Groups of recordings side by side. The first is the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Columns.
    pub columns: Vec<Column>,
    /// One row per indicator, the most important first.
    pub rows: Vec<Row>,
    /// Notes: how it was measured, what was assumed, what else differs.
    pub notes: Vec<String>,
}

impl Comparison {
    /// The worst verdict on the columns: whether anything is worse than the baseline.
    pub fn is_any_worse(&self) -> bool {
        self.columns.iter().any(|c| matches!(c.verdict, Some(Change::Worse | Change::Mixed)))
    }

    /// Whether any column can be compared with the baseline.
    pub fn is_any_comparable(&self) -> bool {
        self.columns.iter().any(|c| c.verdict.is_some_and(|v| v != Change::NotComparable))
    }
}
