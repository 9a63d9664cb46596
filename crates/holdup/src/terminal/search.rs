//! The result of a search for the knee: sentences, and the curve as a table.

use std::fmt::Write as _;

use super::style::{AnsiColor, Style};
use holdup_diagnose::Diagnosis;
use holdup_diagnose::search::{MissedRequirement, Purpose, SearchReport, StepReport};

use super::{BOLD, DIM, wrap};

/// Rates closer than this share become one row.
const SAME: f64 = 0.02;

/// A service that fails more requests than this from the start keeps up, but is not healthy.
const FAILS: f64 = 0.05;

/// The section; nothing without a search.
pub(super) fn search(out: &mut String, d: &Diagnosis) {
    let Some(report) = &d.search else { return };
    let _ = writeln!(out, "\n{BOLD}What the search found{BOLD:#}");
    for text in &report.text {
        wrap(out, "  - ", text);
    }
    table(out, report);
}

/// Steps at about the same rate, for one row.
struct Row<'r> {
    steps: Vec<&'r StepReport>,
}

impl Row<'_> {
    fn mean(&self, of: impl Fn(&StepReport) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.steps.iter().filter_map(|step| of(step)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The result of most steps, in a word, and its colour.
    fn outcome(&self) -> (&'static str, Style) {
        let count = |held: &str| self.steps.iter().filter(|step| step.held == held).count();
        let (yes, no) = (count("yes"), count("no"));
        let (green, red, yellow) = (AnsiColor::Green, AnsiColor::Red, AnsiColor::Yellow);
        match () {
            () if yes > 0 && no > 0 => ("steps disagree", yellow.on_default()),
            () if yes > 0 && self.steps.iter().any(|step| step.error_ratio > FAILS) => {
                ("yes, but requests fail", yellow.on_default())
            }
            () if yes > 0 => ("yes", green.on_default()),
            () if no > 0 => {
                let how = self.steps.iter().find_map(|step| step.how);
                let word = match how {
                    Some(MissedRequirement::Errors) => "no: requests fail",
                    Some(MissedRequirement::Objective) => "no: objective missed",
                    Some(MissedRequirement::AchievedBelowOffered) | None => "no: requests pile up",
                };
                (word, red.on_default())
            }
            () if count("generator_limited") > 0 => ("holdup was the limit", yellow.on_default()),
            () => ("unclear", yellow.on_default()),
        }
    }
}

/// Overload and recovery begin in an earlier state, so they are not points of the curve.
fn rows(report: &SearchReport) -> Vec<Row<'_>> {
    let is_steady = |step: &&StepReport| !matches!(step.purpose, Purpose::Overload | Purpose::Recover);
    let mut steps: Vec<&StepReport> = report.points.iter().filter(is_steady).collect();
    steps.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let mut rows: Vec<Row<'_>> = Vec::new();
    for step in steps {
        match rows.last_mut() {
            Some(row) if step.offered <= row.steps[0].offered * (1.0 + SAME) => row.steps.push(step),
            _ => rows.push(Row { steps: vec![step] }),
        }
    }
    rows
}

fn table(out: &mut String, report: &SearchReport) {
    let rows = rows(report);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n  {DIM}{:>9}{:>11}{:>11}{:>11}{:>9}{:>8}  followed{DIM:#}",
        "offered/s", "achieved/s", "mean ms", "p99 ms", "failed", "steps"
    );
    for row in &rows {
        let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let failed = row.mean(|step| Some(step.error_ratio)).unwrap_or(0.0);
        let failed = if failed > 0.0 { format!("{:.1} %", 100.0 * failed) } else { "-".to_owned() };
        let (word, style) = row.outcome();
        let _ = writeln!(
            out,
            "  {:>9}{:>11}{:>11}{:>11}{failed:>9}{:>8}  {style}{word}{style:#}",
            figure(row.mean(|step| Some(step.offered))),
            figure(row.mean(|step| Some(step.achieved))),
            figure(row.mean(|step| step.mean_ms)),
            figure(row.mean(|step| step.p99_ms)),
            row.steps.len()
        );
    }
}

/// Three digits, or all digits of a whole number.
fn figure(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offered: f64, held: &str, how: Option<MissedRequirement>) -> StepReport {
        StepReport {
            from_s: 0.0,
            to_s: 5.0,
            purpose: Purpose::Explore,
            offered,
            achieved: offered.min(200.0),
            mean_ms: Some(20.5),
            p99_ms: None,
            error_ratio: 0.0,
            in_system: 4.0,
            held: held.to_owned(),
            how,
        }
    }

    fn report(points: Vec<StepReport>) -> SearchReport {
        SearchReport {
            knee: None,
            breaking_point: None,
            capacity: None,
            knee_of_capacity_ratio: None,
            hysteresis: None,
            usl: None,
            curve: Vec::new(),
            refused: None,
            unresolved: Vec::new(),
            steps: points.len(),
            points,
            stable: false,
            elapsed_s: 5.0,
            text: Vec::new(),
        }
    }

    #[test]
    fn visits_of_a_rate_are_a_row_and_recovery_is_none() {
        let piled = Some(MissedRequirement::AchievedBelowOffered);
        let mut points = vec![
            step(202.0, "no", piled),
            step(100.0, "yes", None),
            step(200.0, "yes", None),
            step(1_000.0, "no", piled),
            step(101.0, "yes", None),
            step(400.0, "generator_limited", None),
            StepReport { error_ratio: 0.25, ..step(50.0, "yes", None) },
        ];
        points.push(StepReport { purpose: Purpose::Recover, ..step(150.0, "yes", None) });
        let mut text = String::new();
        table(&mut text, &report(points));
        let plain = anstream::adapter::strip_str(&super::super::visible::sent(&text)).to_string();
        let lines: Vec<&str> = plain.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "       50.0       50.0       20.5          -   25.0 %       1  yes, but requests fail",
                "        100        100       20.5          -        -       2  yes",
                "        201        200       20.5          -        -       2  steps disagree",
                "        400        200       20.5          -        -       1  holdup was the limit",
                "       1000        200       20.5          -        -       1  no: requests pile up",
            ]
        );
    }

    #[test]
    fn without_steps_there_is_no_table() {
        let mut text = String::new();
        table(&mut text, &report(Vec::new()));
        assert_eq!(text, "");
    }
}
