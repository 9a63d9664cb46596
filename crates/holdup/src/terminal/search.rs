//! The result of a search for the knee: sentences, and the curve as a table.

use std::fmt::Write as _;

use super::style::{AnsiColor, Style};
use holdup_diagnose::Diagnosis;
use holdup_diagnose::search::{How, Purpose, SearchReport, StepReport};

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
    visits: Vec<&'r StepReport>,
}

impl Row<'_> {
    fn mean(&self, of: impl Fn(&StepReport) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.visits.iter().filter_map(|visit| of(visit)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The result of most steps, in a word, and its colour.
    fn held(&self) -> (&'static str, Style) {
        let count = |held: &str| self.visits.iter().filter(|visit| visit.held == held).count();
        let (yes, no) = (count("yes"), count("no"));
        let (green, red, yellow) = (AnsiColor::Green, AnsiColor::Red, AnsiColor::Yellow);
        match () {
            () if yes > 0 && no > 0 => ("steps disagree", yellow.on_default()),
            () if yes > 0 && self.visits.iter().any(|visit| visit.error_ratio > FAILS) => {
                ("yes, but requests fail", yellow.on_default())
            }
            () if yes > 0 => ("yes", green.on_default()),
            () if no > 0 => {
                let how = self.visits.iter().find_map(|visit| visit.how);
                let word = match how {
                    Some(How::Errors) => "no: requests fail",
                    Some(How::Objective) => "no: objective missed",
                    Some(How::AchievedBelowOffered) | None => "no: requests pile up",
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
    let is_steady = |visit: &&StepReport| !matches!(visit.purpose, Purpose::Overload | Purpose::Recover);
    let mut visits: Vec<&StepReport> = report.points.iter().filter(is_steady).collect();
    visits.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let mut rows: Vec<Row<'_>> = Vec::new();
    for visit in visits {
        match rows.last_mut() {
            Some(row) if visit.offered <= row.visits[0].offered * (1.0 + SAME) => row.visits.push(visit),
            _ => rows.push(Row { visits: vec![visit] }),
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
        "offered/s", "achieved/s", "mean ms", "p99 ms", "failed", "visits"
    );
    for row in &rows {
        let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let failed = row.mean(|visit| Some(visit.error_ratio)).unwrap_or(0.0);
        let failed = if failed > 0.0 { format!("{:.1} %", 100.0 * failed) } else { "-".to_owned() };
        let (word, style) = row.held();
        let _ = writeln!(
            out,
            "  {:>9}{:>11}{:>11}{:>11}{failed:>9}{:>8}  {style}{word}{style:#}",
            figure(row.mean(|visit| Some(visit.offered))),
            figure(row.mean(|visit| Some(visit.achieved))),
            figure(row.mean(|visit| visit.mean_ms)),
            figure(row.mean(|visit| visit.p99_ms)),
            row.visits.len()
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

    fn visit(offered: f64, held: &str, how: Option<How>) -> StepReport {
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
        let piled = Some(How::AchievedBelowOffered);
        let mut points = vec![
            visit(202.0, "no", piled),
            visit(100.0, "yes", None),
            visit(200.0, "yes", None),
            visit(1_000.0, "no", piled),
            visit(101.0, "yes", None),
            visit(400.0, "generator_limited", None),
            StepReport { error_ratio: 0.25, ..visit(50.0, "yes", None) },
        ];
        points.push(StepReport { purpose: Purpose::Recover, ..visit(150.0, "yes", None) });
        let mut text = String::new();
        table(&mut text, &report(points));
        let plain = anstream::adapter::strip_str(&super::super::visible::sent(&text)).to_string();
        let lines: Vec<&str> = plain.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "       50.0       50.0       20.5          -   25.0 %       1  yes, but requests fail",
                "        100        100       20.5          -        -       2  yes",
                "        201        200       20.5          -        -       2  visits disagree",
                "        400        200       20.5          -        -       1  holdup was the limit",
                "       1000        200       20.5          -        -       1  no: they pile up",
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
