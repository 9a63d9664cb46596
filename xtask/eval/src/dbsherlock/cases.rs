//! The set as it lies in its folder: `labels.csv` and a table of one-second rows a case.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use holdup_signals::time::counters::Frame;

use super::columns::{CAUSES, COLUMNS};
use crate::table::{Table, frame};

/// Seconds a row.
const PERIOD_S: f64 = 1.0;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name in the set.
    pub name: String,
    /// Its cause in the set's words.
    pub label: String,
    /// The same in ours; several for a compound.
    pub causes: Vec<&'static str>,
    /// The counters, gaps blanked.
    pub frame: Frame,
    /// Rows that were labelled abnormal, from 0.
    pub abnormal: BTreeSet<usize>,
    /// Rows that were labelled normal, from 0.
    pub normal: BTreeSet<usize>,
}

/// Reads every case of a folder.
pub fn read(folder: &Path) -> Result<Vec<Case>> {
    let labels = Table::csv(&folder.join("labels.csv"))?;
    let (names, files, causes) = (labels.text("case")?, labels.text("file")?, labels.text("cause")?);
    let (abnormal, normal) = (labels.text("abnormal_ranges")?, labels.text("normal_ranges")?);
    let mut cases = Vec::new();
    for row in 0..labels.rows() {
        let table = Table::csv(&folder.join(&files[row]))?;
        let rows = |column: &str, text: &str| {
            ranges(text, table.rows()).ok_or_else(|| labels.wrong(column, row, "ranges of rows such as 11-28;62-130"))
        };
        cases.push(Case {
            name: names[row].clone(),
            label: causes[row].clone(),
            causes: ours(&causes[row])
                .with_context(|| format!("{}: line {}", folder.join("labels.csv").display(), row + 2))?,
            abnormal: rows("abnormal_ranges", &abnormal[row])?,
            normal: rows("normal_ranges", &normal[row])?,
            frame: frame(&table, 0..table.rows(), COLUMNS, PERIOD_S)?.blanked(),
        });
    }
    if cases.is_empty() {
        bail!("{} names no case", folder.join("labels.csv").display());
    }
    Ok(cases)
}

/// The set's word for a cause, or several joined by ` + `, in ours.
fn ours(label: &str) -> Result<Vec<&'static str>> {
    let known = |word: &str| CAUSES.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| ours.to_vec());
    if let Some(causes) = known(label) {
        return Ok(causes);
    }
    let mut causes = Vec::new();
    for word in label.split(" + ") {
        let Some(some) = known(word) else {
            let words: Vec<&str> = CAUSES.iter().map(|(theirs, _)| *theirs).collect();
            bail!("column \"cause\": {word:?} is none of {}", words.join(", "));
        };
        causes.extend(some);
    }
    Ok(causes)
}

/// Rows from 0 of ranges counted from 1, `11-28;62-130`.
fn ranges(text: &str, rows: usize) -> Option<BTreeSet<usize>> {
    let mut all = BTreeSet::new();
    for range in text.split(';').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first == 0 || last > rows || first > last {
            return None;
        }
        all.extend(first - 1..last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_from_one_and_stay_inside() {
        assert_eq!(ranges("2-3;5-5", 5), Some(BTreeSet::from([1, 2, 4])));
        assert_eq!(ranges("", 5), Some(BTreeSet::new()));
        for wrong in ["0-3", "4-6", "3-2", "a-b"] {
            assert_eq!(ranges(wrong, 5), None, "{wrong}");
        }
    }

    #[test]
    fn labels_are_translated_or_refused() {
        assert_eq!(ours("Workload Spike + Table Restore").unwrap(), ["workload_spike", "bulk_load"]);
        assert_eq!(ours("CPU,IO,Network Saturation").unwrap().len(), 3);
        assert!(ours("Ghosts").unwrap_err().to_string().contains("Ghosts"));
    }
}
