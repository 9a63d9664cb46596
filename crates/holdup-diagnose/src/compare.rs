//! Before and after, indicator by indicator.

use serde::{Deserialize, Serialize};

use crate::verdict::{Diagnosis, Reading, round};

/// What became of an indicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Better by more than noise.
    Better,
    /// Worse by more than noise.
    Worse,
    /// The same, within noise.
    Same,
    /// Other than before, and neither is better.
    Different,
    /// One of both is missing.
    Unclear,
}

/// One indicator in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Indicator {
    /// Name, with its operation.
    pub indicator: String,
    /// Unit.
    pub unit: String,
    /// In the first run.
    pub before: Option<f64>,
    /// In the second.
    pub after: Option<f64>,
    /// What became of it.
    pub verdict: Change,
}

/// All indicators of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Name of the first run.
    pub before: String,
    /// Name of the second.
    pub after: String,
    /// A row each.
    pub rows: Vec<Indicator>,
}

/// Single runs on shared machines differ by less than this factor from one run to the next; what differs by
/// more is called better or worse. Repeats give intervals; this is a rule of thumb for one pair of runs.
const NOISE_FACTOR: f64 = 1.5;

/// A smaller difference than this (ms, requests, requests/s) is none.
const LEAST: f64 = 0.5;

/// Compares two diagnoses of the same scenario.
pub fn compare(before: (&str, &Diagnosis), after: (&str, &Diagnosis)) -> Comparison {
    let mut rows = Vec::new();
    for first in &before.1.load.operations {
        let second = after.1.load.operations.iter().find(|o| o.operation == first.operation);
        let mut row = |name: &str, unit: &str, more_is_better: bool, a: Option<f64>, b: Option<f64>| {
            rows.push(Indicator {
                indicator: format!("{} {name}", first.operation),
                unit: unit.to_owned(),
                before: a.map(|v| round(v, 3)),
                after: b.map(|v| round(v, 3)),
                verdict: change(a, b, more_is_better, LEAST),
            });
        };
        row("offered rate", "requests/s", true, Some(first.offered), second.map(|o| o.offered));
        row("achieved rate", "requests/s", true, Some(first.achieved), second.map(|o| o.achieved));
        row("errors", "requests", false, Some(first.errors as f64), second.map(|o| o.errors as f64));
        row("response time p50", "ms", false, first.response_ms.p50, second.and_then(|o| o.response_ms.p50));
        row("response time p99", "ms", false, first.response_ms.p99, second.and_then(|o| o.response_ms.p99));
        row("response time max", "ms", false, first.response_ms.max, second.and_then(|o| o.response_ms.max));
    }
    for first in before.1.ledger.iter().filter(|row| row.band == "all") {
        let second = after.1.ledger.iter().find(|r| r.band == "all" && r.operation == first.operation);
        for part in &first.parts {
            let then = second.and_then(|r| r.parts.iter().find(|p| p.part == part.part)).map(|p| p.ms);
            rows.push(Indicator {
                indicator: format!("{} {} (mean)", first.operation, part.part.replace('_', " ")),
                unit: "ms".to_owned(),
                before: Some(part.ms),
                after: then,
                // A part that is next to nothing in both runs is no better or worse for doubling.
                verdict: change(Some(part.ms), then, false, LEAST.max(first.response_ms / 50.0)),
            });
        }
    }
    rows.extend(indicators(&before.1.indicators, &after.1.indicators));
    Comparison { before: before.0.to_owned(), after: after.0.to_owned(), rows }
}

/// What host and servers did, in the order of the first run; what only one of both recorded stands there too.
fn indicators(before: &[Reading], after: &[Reading]) -> Vec<Indicator> {
    let of = |list: &[Reading], name: &str| list.iter().find(|r| r.indicator == name).map(|r| r.value);
    let new = after.iter().filter(|r| of(before, &r.indicator).is_none());
    before
        .iter()
        .chain(new)
        .map(|reading| {
            let (a, b) = (of(before, &reading.indicator), of(after, &reading.indicator));
            let verdict = match (reading.more_is_better, change(a, b, false, least_of(&reading.unit))) {
                (None, Change::Better | Change::Worse) => Change::Different,
                (Some(true), _) => change(a, b, true, least_of(&reading.unit)),
                (_, verdict) => verdict,
            };
            Indicator { indicator: reading.indicator.clone(), unit: reading.unit.clone(), before: a, after: b, verdict }
        })
        .collect()
}

/// A difference that is none, in `unit`: a twentieth of a share, a tenth of a thread a CPU, else [`LEAST`].
fn least_of(unit: &str) -> f64 {
    match unit {
        "ratio" => 0.05,
        "a CPU" => 0.1,
        _ => LEAST,
    }
}

fn change(before: Option<f64>, after: Option<f64>, more_is_better: bool, least: f64) -> Change {
    let (Some(a), Some(b)) = (before, after) else { return Change::Unclear };
    if (a - b).abs() < least || a.max(b) <= a.min(b) * NOISE_FACTOR && !more_is_better || a.max(b) <= a.min(b) * 1.02 {
        return Change::Same;
    }
    if (b > a) == more_is_better { Change::Better } else { Change::Worse }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_either_run_are_rows() {
        let reading = |name: &str, unit: &str, value, more_is_better| Reading {
            indicator: name.into(),
            unit: unit.into(),
            value,
            more_is_better,
        };
        let before = [
            reading("load", "a CPU", 64.7, Some(false)),
            reading("idle", "ratio", 0.45, None),
            reading("statements", "statements/s", 20.0, Some(true)),
            reading("faults", "faults/s", 3.0, Some(false)),
        ];
        let after = [
            reading("load", "a CPU", 0.4, Some(false)),
            reading("idle", "ratio", 0.9, None),
            reading("statements", "statements/s", 80.0, Some(true)),
            reading("throttled", "ratio", 0.2, Some(false)),
        ];
        let rows = indicators(&before, &after);
        let verdicts: Vec<(&str, Change)> = rows.iter().map(|r| (r.indicator.as_str(), r.verdict)).collect();
        let expected = [
            ("load", Change::Better),
            ("idle", Change::Different),
            ("statements", Change::Better),
            ("faults", Change::Unclear),
            ("throttled", Change::Unclear),
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn direction_and_noise() {
        assert_eq!(change(Some(100.0), Some(20.0), false, LEAST), Change::Better);
        assert_eq!(change(Some(20.0), Some(100.0), false, LEAST), Change::Worse);
        assert_eq!(change(Some(20.0), Some(25.0), false, LEAST), Change::Same);
        assert_eq!(change(Some(200.0), Some(300.0), true, LEAST), Change::Better);
        assert_eq!(change(None, Some(1.0), true, LEAST), Change::Unclear);
    }
}
