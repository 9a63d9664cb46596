//! The set as it lies in its folder: `labels.csv`, and a Parquet file of all runs for each class and hardware,
//! `CLASS-CORES_GIGABYTES.parquet`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use holdup_signals::time::counters::Frame;

use super::columns::{CAUSES, COLUMNS};
use crate::table::{Table, frame};

/// Rows at a run's beginning that are its head, without a look at any label: faults begin after the fifth. The very first
/// row is left out: counters are differences, and its first value is one since the server's start.
pub const HEAD: std::ops::Range<usize> = 1..5;

/// One run.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name in the set.
    pub name: String,
    /// What is wrong, in our words.
    pub cause: &'static str,
    /// Cores and memory.
    pub hardware: String,
    /// The counters.
    pub frame: Frame,
    /// Rows of the episode: as labelled, or all but the first of a run in which nothing begins or ends.
    pub episode: std::ops::Range<usize>,
}

/// Reads every run of a folder.
pub fn read(folder: &Path) -> Result<Vec<Case>> {
    let path = folder.join("labels.csv");
    let labels = Table::csv(&path)?;
    let (names, classes, hardware) = (labels.text("case")?, labels.text("cls")?, labels.text("hardware")?);
    let (marks, periods) = (labels.text("marks")?, labels.numbers("period_s")?);
    let Some(periods) = periods else { bail!("{}: there is no column \"period_s\"", path.display()) };
    let mut files: BTreeMap<String, (Table, BTreeMap<String, std::ops::Range<usize>>)> = BTreeMap::new();
    let mut cases = Vec::new();
    for row in 0..labels.rows() {
        let name = format!("{}-{}.parquet", classes[row], hardware[row]);
        if !files.contains_key(&name) {
            let table = Table::parquet(&folder.join(&name))?;
            let runs = runs(&table)?;
            files.insert(name.clone(), (table, runs));
        }
        let Some((table, runs)) = files.get(&name) else { continue };
        let Some(rows) = runs.get(&names[row]) else {
            bail!("{}: line {}: there is no run {:?} in {name}", path.display(), row + 2, names[row]);
        };
        let Some((_, cause)) = CAUSES.iter().find(|(theirs, _)| *theirs == classes[row]) else {
            let words: Vec<&str> = CAUSES.iter().map(|(theirs, _)| *theirs).collect();
            return Err(labels.wrong("cls", row, &format!("one of {}", words.join(", "))));
        };
        let episode = episode(&marks[row], rows.len())
            .ok_or_else(|| labels.wrong("marks", row, "empty, [first] or [first, end] within the run"))?;
        let frame = frame(table, rows.clone(), COLUMNS, periods[row]).with_context(|| format!("run {}", names[row]))?;
        cases.push(Case {
            name: names[row].clone(),
            cause,
            hardware: hardware[row].clone(),
            frame: frame.blanked(),
            episode,
        });
    }
    if cases.is_empty() {
        bail!("{} names no run", path.display());
    }
    Ok(cases)
}

/// Rows of each run, which lie together.
fn runs(table: &Table) -> Result<BTreeMap<String, std::ops::Range<usize>>> {
    let mut runs: BTreeMap<String, std::ops::Range<usize>> = BTreeMap::new();
    for (row, name) in table.text("case")?.iter().enumerate() {
        let rows = runs.entry(name.clone()).or_insert(row..row);
        if rows.end != row {
            return Err(table.wrong("case", row, "beside the other rows of its run"));
        }
        rows.end = row + 1;
    }
    Ok(runs)
}

/// `[6, 18]` is from row 6 to before row 18, `[29]` from there to the end, nothing all but the first row.
fn episode(marks: &str, rows: usize) -> Option<std::ops::Range<usize>> {
    let inner = marks.trim().trim_start_matches('[').trim_end_matches(']');
    if inner.is_empty() {
        return Some(1..rows);
    }
    let marks: Vec<usize> = inner.split(',').map(|mark| mark.trim().parse().ok()).collect::<Option<_>>()?;
    match marks[..] {
        [first] if first < rows => Some(first..rows),
        [first, end] if first < end && end <= rows => Some(first..end),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_rows_of_the_run() {
        assert_eq!(episode("[6, 18]", 25), Some(6..18));
        assert_eq!(episode("[29]", 41), Some(29..41));
        assert_eq!(episode("", 12), Some(1..12));
        for wrong in ["[30]", "[5, 4]", "[a]", "[1, 2, 3]", "[1, 30]"] {
            assert_eq!(episode(wrong, 20), None, "{wrong}");
        }
    }
}
