//! Recordings side by side: one line per figure for two, one line per figure and recording for
//! more.

use std::fmt::Write as _;

use super::style::{AnsiColor, Style};
use super::visible::one_line;
use holdup_compare::recordings::{Against, Cell, Change, Comparison, Row, Section, words};

use super::{BOLD, DIM, styled, wrap};

/// Cells of the longest name, value, and name of a column.
const NAME: usize = 40;
const VALUE: usize = 18;

/// The whole comparison. Rows without a difference are only counted, unless `all`.
pub fn comparison(c: &Comparison, all: bool) -> String {
    let mut out = String::new();
    for column in &c.columns {
        if let Some(headline) = &column.headline {
            styled(&mut out, color(column.verdict.unwrap_or(Change::NoDifference)).bold(), headline);
        }
    }
    let (shown, folded): (Vec<&Row>, Vec<&Row>) = c.rows.iter().partition(|row| all || row.is_notable());
    let widths = Widths::for_rows(c, &shown);
    widths.head(&mut out, c);
    let mut section = None;
    for row in shown {
        if section != Some(row.section) {
            section = Some(row.section);
            let _ = writeln!(out, "{DIM}{}{DIM:#}", title(row.section));
        }
        widths.line(&mut out, c, row);
    }
    if !folded.is_empty() {
        let _ = writeln!(out, "{DIM}{} more rows without a clear difference: --all{DIM:#}", folded.len());
    }
    out.push('\n');
    reasons(&mut out, c);
    for note in &c.notes {
        wrap(&mut out, "  - ", note);
    }
    for column in &c.columns {
        for text in &column.left_out {
            wrap(&mut out, "  - ", &format!("left out of {}: {text}", column.name));
        }
    }
    out
}

fn title(section: Section) -> &'static str {
    match section {
        Section::Requests => "requests",
        Section::Search => "search",
        Section::Cost => "cost",
        Section::Operations => "operations",
        Section::Ledger => "where the time went",
        Section::Indicators => "host and servers",
    }
}

/// Widths of the parts of a line, in cells.
struct Widths {
    name: usize,
    values: Vec<usize>,
    change: usize,
}

impl Widths {
    fn for_rows(c: &Comparison, rows: &[&Row]) -> Self {
        let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let lead = if c.columns.len() == 2 { 0 } else { 2 };
        let column = |(i, column): (usize, &holdup_compare::recordings::Column)| {
            let values = longest(&mut rows.iter().map(|row| value(&row.cells[i], row).chars().count()));
            values.max(column.name.chars().count()).clamp(8, VALUE)
        };
        let changes =
            rows.iter().flat_map(|row| row.cells.iter().filter_map(|cell| Some(change(cell.against.as_ref()?, row))));
        Self {
            name: longest(&mut rows.iter().map(|row| row.indicator.chars().count())).min(NAME) + 2 + lead,
            values: c.columns.iter().enumerate().map(column).collect(),
            change: longest(&mut changes.map(|text| text.chars().count())).max(CHANGE_HEAD.len()),
        }
    }

    fn head(&self, out: &mut String, c: &Comparison) {
        let mut head = format!("{:<1$}", "", self.name);
        for (column, width) in c.columns.iter().zip(&self.values) {
            let _ = write!(head, "  {:>width$}", cut(&column.name, *width));
        }
        if c.columns.len() == 2 {
            let _ = write!(head, "  {CHANGE_HEAD}");
        }
        let _ = writeln!(out, "\n{BOLD}{head}{BOLD:#}");
    }

    fn line(&self, out: &mut String, c: &Comparison, row: &Row) {
        let _ = write!(out, "{:<1$}", format!("  {}", cut(&row.indicator, NAME)), self.name);
        for (cell, width) in row.cells.iter().zip(&self.values) {
            let _ = write!(out, "  {:>width$}", cut(&value(cell, row), *width));
        }
        let is_pair = c.columns.len() == 2;
        let others =
            row.cells.iter().zip(&c.columns).filter_map(|(cell, column)| Some((cell.against.as_ref()?, column)));
        for (against, column) in others {
            let lead = if is_pair { String::new() } else { format!("\n    {:<1$}", cut(&column.name, VALUE), VALUE) };
            let (style, verdict) = (color(against.verdict), verdict(against));
            let _ = write!(out, "{lead}  {:<1$}  {style}{verdict}{style:#}", change(against, row), self.change);
        }
        out.push('\n');
    }
}

/// The head of the changes.
const CHANGE_HEAD: &str = "change (95 % interval)";

fn value(cell: &Cell, row: &Row) -> String {
    words::cell(cell, &row.unit)
}

fn change(against: &Against, row: &Row) -> String {
    match (words::change(against, &row.unit), words::interval(against, &row.unit)) {
        (Some(change), Some(interval)) => format!("{change} ({interval})"),
        _ => String::new(),
    }
}

fn verdict(against: &Against) -> String {
    let word = words::verdict(against.verdict);
    match against.repeats_wanted {
        Some(n) if against.verdict == Change::CantTell => format!("{word}; {n} repeats would"),
        _ => word.to_owned(),
    }
}

/// Why figures are not comparable, or got their verdict: each reason once.
fn reasons(out: &mut String, c: &Comparison) {
    for (i, column) in c.columns.iter().enumerate() {
        let mut said: Vec<(Change, &str, usize)> = Vec::new();
        for against in c.rows.iter().filter_map(|row| row.cells.get(i)?.against.as_ref()) {
            let Some(why) = against.why.as_deref() else { continue };
            if !matches!(against.verdict, Change::NotComparable | Change::Better | Change::Worse) {
                continue;
            }
            match said.iter_mut().find(|(verdict, text, _)| (*verdict, *text) == (against.verdict, why)) {
                Some((.., n)) => *n += 1,
                None => said.push((against.verdict, why, 1)),
            }
        }
        for (verdict, why, n) in said {
            let of = if n > 1 { format!("{n} figures of {} are", column.name) } else { format!("{} is", column.name) };
            let because = if verdict == Change::NotComparable { " because " } else { ": " };
            wrap(out, "  - ", &format!("{of} {}{because}{why}", words::verdict(verdict)));
        }
    }
}

/// The colour of a change.
pub(super) fn color(change: Change) -> Style {
    match change {
        Change::Better => AnsiColor::Green.on_default(),
        Change::Worse => AnsiColor::Red.on_default(),
        Change::Mixed | Change::CantTell | Change::NotComparable => AnsiColor::Yellow.on_default(),
        Change::Different | Change::NoDifference | Change::Missing => Style::new(),
    }
}

/// `text` in at most `cells` cells, without control characters.
fn cut(text: &str, cells: usize) -> String {
    let clean = one_line(text);
    if clean.chars().count() <= cells {
        return clean.into_owned();
    }
    clean.chars().take(cells.saturating_sub(1)).chain(['…']).collect()
}
