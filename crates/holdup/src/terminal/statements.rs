//! Two servers, statement by statement: different answers, slower statements with their cost, and
//! the way back.

use std::fmt::Write as _;

use super::style::AnsiColor;
use super::visible::one_line;
use holdup_compare::statements::{Answer, AnswerDifferences, Report, Statement, Verdict};

use super::{BOLD, DIM, wrap};

/// Number of listed statements unless all are requested.
const LISTED: usize = 20;

/// Number of characters of a statement's text.
const TEXT: usize = 90;

/// The comparison as text with colours; with `all` also the unchanged statements.
pub fn statements(report: &Report, all: bool) -> String {
    let mut out = String::new();
    let slower = count(report, Verdict::Slower);
    let breaks =
        report.statements.iter().filter(|s| s.differs.as_ref().is_some_and(AnswerDifferences::matters)).count();
    let (word, color) = match () {
        () if breaks > 0 || report.prediction.answer == Answer::Overload => ("NOT YET", AnsiColor::Red),
        () if slower > 0 => ("SLOWER", AnsiColor::Yellow),
        () => ("NO SLOWER", AnsiColor::Green),
    };
    let style = color.on_default().bold();
    let _ = writeln!(
        out,
        "{style}{word}{style:#}  {slower} of {} statements are slower on {} than on {}, {} faster, {} unclear; {} have different answers",
        report.statements.len(),
        report.new,
        report.old,
        count(report, Verdict::Faster),
        count(report, Verdict::Unknown),
        breaks
    );
    wrap(&mut out, "", &report.prediction.text);
    let _ = writeln!(
        out,
        "{DIM}{} executions on both in {} rounds; common change {:+.1} % ({:+.1} to {:+.1} by round){DIM:#}",
        report.pairs,
        report.rounds,
        change(report.common.ratio),
        change(report.common.low),
        change(report.common.high)
    );
    let is_shown =
        |s: &&Statement| all || s.differs.is_some() || matches!(s.change.verdict, Verdict::Slower | Verdict::Faster);
    let shown: Vec<&Statement> = report.statements.iter().filter(is_shown).collect();
    let most = if all { shown.len() } else { LISTED };
    if !shown.is_empty() {
        let _ = writeln!(
            out,
            "\n{BOLD}{:>9} {:>9} {:>9} {:>22} {:>9}  statement{BOLD:#}",
            "adds", "calls", "old", "change, 95 %", "verdict"
        );
    }
    for statement in shown.iter().take(most) {
        row(&mut out, statement);
    }
    if shown.len() > most {
        let _ = writeln!(out, "{DIM}and {} more: --all{DIM:#}", shown.len() - most);
    }
    for (title, lines) in
        [("What this cannot show", &report.too_little), ("The migration, and the way back", &report.way)]
    {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{BOLD}{title}{BOLD:#}");
            lines.iter().for_each(|line| wrap(&mut out, "  - ", line));
        }
    }
    out
}

fn count(report: &Report, verdict: Verdict) -> usize {
    report.statements.iter().filter(|s| s.change.verdict == verdict).count()
}

/// A ratio as a change in percent.
fn change(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// The beginning of the text, without control characters.
fn clean(text: &str) -> String {
    one_line(text).chars().take(TEXT).collect()
}

fn row(out: &mut String, s: &Statement) {
    let (word, color) = match s.change.verdict {
        Verdict::Slower => ("slower", AnsiColor::Red),
        Verdict::Faster => ("faster", AnsiColor::Green),
        Verdict::Same => ("same", AnsiColor::White),
        Verdict::Unknown => ("unknown", AnsiColor::Yellow),
    };
    let style = color.on_default();
    let interval = if s.change.high >= f64::MAX {
        "-".to_owned()
    } else {
        format!("{:+.0} % ({:+.0} to {:+.0})", change(s.change.ratio), change(s.change.low), change(s.change.high))
    };
    let text = clean(s.text.as_deref().unwrap_or(&s.digest));
    let _ = writeln!(
        out,
        "{:>9} {:>9} {:>9} {interval:>22} {style}{word:>9}{style:#}  {} {text}",
        format!("{:+.4}", s.added_load),
        s.calls,
        format!("{:.2} ms", s.old_ms),
        s.digest.chars().take(8).collect::<String>(),
    );
    let mut about = Vec::new();
    if let Some(runs) = s.runs {
        let by = if runs.by_trace { "per request" } else { "in a row per session" };
        about.push(format!("in a loop: {:.0} times {by}", runs.per_request));
    }
    if let Some(plans) = s.plans.as_ref().filter(|plans| plans.is_other) {
        about.push(format!("plan changed: now {}, before {}", clean(&plans.new), clean(&plans.old)));
    }
    if let Some(d) = &s.differs {
        let parts = [
            (d.fails, "fail on the new server"),
            (d.succeeds, "failed on the old server only"),
            (d.rows, "return a different number of rows"),
            (d.contents, "return different rows"),
            (d.warnings, "return more warnings"),
        ];
        let said: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        let errors = if d.errors.is_empty() { String::new() } else { format!(" (error {})", d.errors.join(", ")) };
        about.push(format!("{}{errors}", said.join(", ")));
    }
    if !about.is_empty() {
        let _ = writeln!(out, "{:>64}{DIM}{}{DIM:#}", "", about.join("; "));
    }
}
