//! A comparison as data: what the terminal, Markdown, the page and `--json` show (`docs/schema/verdict.schema.json`).

use serde::{Deserialize, Serialize};

/// What became of an indicator, or of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Better by more than runs of the same thing differ by, and by enough to matter.
    Better,
    /// Worse by as much.
    Worse,
    /// Of a whole comparison: better in something, worse in something else.
    Mixed,
    /// Other than before, and neither is better.
    Different,
    /// No more than runs of the same thing differ by.
    NoDifference,
    /// The interval is too wide to say.
    CantTell,
    /// These figures do not measure the same.
    NotComparable,
    /// One of both has no such figure.
    Missing,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// All requests together.
    Requests,
    /// Knee and breaking point of a search.
    Search,
    /// CPU time and memory for what was done.
    Cost,
    /// One operation.
    Operations,
    /// Where the time of a mean request went.
    Ledger,
    /// What host and servers did meanwhile.
    Indicators,
}

/// What two groups of recordings differ by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// In words.
    pub verdict: Change,
    /// Value minus the baseline's, in the row's unit; none where one of both is missing.
    pub difference: Option<f64>,
    /// Value over the baseline's, minus 1: 0.1 is 10 % more. None of rows that are compared by their difference.
    pub change_ratio: Option<f64>,
    /// Lower end of the interval of 95 % of `change_ratio`, or of `difference` where that is none.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Why, where the figures alone don't say.
    pub why: Option<String>,
    /// Repeats of each that would tell, where these don't.
    pub repeats_wanted: Option<u32>,
}

/// One group's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The value; of repeats the geometric mean, or of differences the mean. None if there is none.
    pub value: Option<f64>,
    /// Of each repeat, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<f64>,
    /// Against the baseline; none for the baseline itself.
    pub against: Option<Against>,
}

/// One indicator in all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about.
    pub section: Section,
    /// Name.
    pub indicator: String,
    /// Unit.
    pub unit: String,
    /// Whether it counts for the verdict on the whole.
    pub is_headline: bool,
    /// Whether more of it is better; none if neither.
    pub more_is_better: Option<bool>,
    /// A figure a group, in their order.
    pub cells: Vec<Cell>,
}

/// A column: one thing that was measured once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Recordings that count.
    pub recordings: u32,
    /// Recordings that were left out, and why.
    pub left_out: Vec<String>,
    /// Against the baseline, all in all; none for the baseline itself.
    pub verdict: Option<Change>,
    /// The same in a sentence.
    pub headline: Option<String>,
}

/// Groups of recordings side by side. The first is the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Columns.
    pub columns: Vec<Column>,
    /// A row each, those that count most first.
    pub rows: Vec<Row>,
    /// What has to be known about it: how it was measured, what was assumed, what else differs.
    pub notes: Vec<String>,
}

impl Comparison {
    /// The worst of the verdicts on the columns: whether anything is worse than the baseline.
    pub fn is_any_worse(&self) -> bool {
        self.columns.iter().any(|c| matches!(c.verdict, Some(Change::Worse | Change::Mixed)))
    }

    /// Whether any column can be compared with the baseline.
    pub fn is_any_comparable(&self) -> bool {
        self.columns.iter().any(|c| c.verdict.is_some_and(|v| v != Change::NotComparable))
    }
}
