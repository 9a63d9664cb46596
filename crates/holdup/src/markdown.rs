//! Comparisons and the answer of a gate as Markdown, for pull requests and journals.

use std::fmt::Write as _;

use holdup_compare::recordings::gate::Gate;
use holdup_compare::recordings::history::Figure;
use holdup_compare::recordings::{Cell, Change, Comparison, Row, words};

use crate::terminal::visible::one_line;

/// Headlines, a table, notes. Rows without a difference are left out unless `all`.
pub fn comparison(c: &Comparison, all: bool) -> String {
    let mut out = String::new();
    for headline in c.columns.iter().filter_map(|column| column.headline.as_ref()) {
        let _ = writeln!(out, "**{}**\n", escape(headline));
    }
    let mut head = vec![String::new()];
    for (i, column) in c.columns.iter().enumerate() {
        head.push(escape(&column.name));
        if i > 0 {
            head.extend(["change (95 % interval)".to_owned(), "verdict".to_owned()]);
        }
    }
    let mut align = vec![":---"];
    align.extend(std::iter::repeat_n("---:", 1));
    align.extend(["---:", "---:", ":---"].repeat(c.columns.len().saturating_sub(1)));
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(&head));
    out.push_str(&line(&align.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>()));
    for row in c.rows.iter().filter(|row| all || row.is_notable()) {
        let mut cells = vec![escape(&row.indicator)];
        for cell in &row.cells {
            cells.push(words::cell(cell, &row.unit));
            cells.extend(against(cell, row).into_iter().flatten());
        }
        out.push_str(&line(&cells));
    }
    let left = c.columns.iter().flat_map(|column| &column.left_out).map(|text| format!("Left out: {text}."));
    for note in c.notes.iter().cloned().chain(left) {
        let _ = write!(out, "\n- {}", escape(&note));
    }
    out.push('\n');
    out
}

fn against(cell: &Cell, row: &Row) -> Option<[String; 2]> {
    let against = cell.against.as_ref()?;
    let change = match (words::change(against, &row.unit), words::interval(against, &row.unit)) {
        (Some(change), Some(interval)) => format!("{change} ({interval})"),
        _ => "-".to_owned(),
    };
    let mut verdict = words::verdict(against.verdict).to_owned();
    if let Some(why) = against.why.as_ref().filter(|_| against.verdict != Change::NoDifference) {
        let _ = write!(verdict, ": {}", escape(why));
    }
    if let Some(n) = against.repeats_wanted {
        let _ = write!(verdict, "; {n} repeats would tell");
    }
    Some([change, verdict])
}

/// A pull request's comment: the answer, the figures behind it, and the base branch's course.
pub fn gate(gate: &Gate, all: bool) -> String {
    let mut out = format!("### holdup gate: {}\n\n", words::verdict(gate.verdict));
    let history = &gate.history;
    if let Some(told) = &gate.comparison {
        out.push_str(&comparison(told, all));
        let _ = writeln!(out, "- The base branch: {}", escape(&history.headline));
        return out;
    }
    let _ = writeln!(out, "**{}**", escape(&gate.headline));
    let is_shown = |figure: &&Figure| all || figure.is_headline || figure.verdict != Change::NoDifference;
    let shown: Vec<&Figure> = history.figures.iter().filter(is_shown).collect();
    if !shown.is_empty() {
        out.push_str("\n|  | before | now | verdict |\n| :--- | ---: | ---: | :--- |\n");
    }
    for figure in shown {
        let change = figure.standing();
        let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| words::value(value, &figure.unit));
        let (before, level) = (change.map(|change| change.before), change.map(|change| change.level));
        let now = level.or(figure.values.last().copied().flatten());
        let since = change.map_or(String::new(), |change| format!(" since {}", escape(&change.since_build)));
        let (name, verdict) = (escape(&figure.indicator), words::verdict(figure.verdict));
        let _ = writeln!(out, "| {name} | {} | {} | {verdict}{since} |", value(before), value(now));
    }
    for text in &history.left_out {
        let _ = write!(out, "\n- Left out: {}.", escape(text));
    }
    out.push('\n');
    out
}

/// Escapes foreign text, so that it stays text.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use holdup_compare::recordings::{Against, Column, Section};

    use super::*;

    #[test]
    fn foreign_text_does_not_become_markup() {
        let hostile = "a|b\n[x](http://h) <img> *b* `c`";
        let column = |verdict| Column {
            name: hostile.to_owned(),
            recordings: 1,
            left_out: vec![hostile.to_owned()],
            verdict,
            headline: Some(hostile.to_owned()),
        };
        let against = Against {
            verdict: Change::NotComparable,
            difference: None,
            change_ratio: None,
            low: None,
            high: None,
            why: Some(hostile.to_owned()),
            repeats_wanted: None,
        };
        let cell = |against| Cell { value: Some(1_460.0), repeats: Vec::new(), is_least: false, against };
        let row = Row {
            section: Section::Requests,
            indicator: hostile.to_owned(),
            unit: "ms".to_owned(),
            is_headline: true,
            more_is_better: Some(false),
            cells: vec![cell(None), cell(Some(against))],
        };
        let columns = vec![column(None), column(Some(Change::NotComparable))];
        let text = comparison(&Comparison { columns, rows: vec![row], notes: vec![hostile.to_owned()] }, false);
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(table.len(), 3, "{text}");
        for line in table {
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(bars, 6, "{line}");
        }
        assert!(text.contains("1,460 ms") && !text.contains("<img") && !text.contains("[x](http"), "{text}");
    }
}
