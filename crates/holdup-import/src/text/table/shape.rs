//! How a result set is drawn, where its rows begin, and what its columns are called: as its header
//! says, or, where that was cut, as the statement above or the row itself shows.

use std::borrow::Cow;

use super::Columns;
use super::statement::{Item, Select, column_of};
use crate::text::number::number;
use crate::text::paste::Line;

/// Columns that are read of one result set.
const COLUMNS: usize = 200;

/// Records of a form with one column a line in which its names are looked for.
const RECORDS: usize = 6;

/// What a session of MySQL does, by the column `Command`.
const COMMANDS: [&str; 14] = [
    "Query",
    "Sleep",
    "Execute",
    "Prepare",
    "Connect",
    "Daemon",
    "Killed",
    "Binlog Dump",
    "Binlog Dump GTID",
    "Slave_IO",
    "Slave_SQL",
    "Quit",
    "Init DB",
    "Statistics",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `mysql`: bars at both ends of a row.
    Table,
    /// One column a line.
    Vertical,
    Aligned,
    Tabs,
    /// `psql -A`.
    Unaligned,
    /// CSV, with its separator.
    Quoted(char),
}

/// A result set that begins here.
pub(super) struct Found {
    pub(super) shape: Shape,
    pub(super) columns: Columns<'static>,
    /// Lines above its first row.
    pub(super) skip: usize,
}

/// The columns of the result set that begins here, by its header.
pub(in crate::text) fn header(lines: &[Line], above: Option<&Select>) -> Option<Columns<'static>> {
    printed(lines, above).map(|found| found.columns)
}

/// The columns of the rows that begin here, without a header.
pub(in crate::text) fn header_of_rows(lines: &[Line], above: Option<&Select>) -> Option<Columns<'static>> {
    headless(lines, above).map(|found| found.columns)
}

/// Columns with the names of a header, and what the statement above says that they show.
fn columns(names: Vec<String>, above: Option<&Select>) -> Columns<'static> {
    let items = above.and_then(|above| above.columns(names.len())).unwrap_or_default();
    // Names of which none is asked for are the values of a row.
    let is_header = names.iter().zip(&items).any(|(name, item)| item.is_called(name));
    let items = if is_header { items } else { Vec::new() };
    let shows = names.iter().enumerate().map(|(at, name)| {
        let of_item = items.get(at).and_then(|item: &Item| item.column.clone());
        Cow::Owned(of_item.or_else(|| column_of(name)).unwrap_or_default())
    });
    let shows = shows.collect();
    let from = above.map_or_else(Vec::new, |above| above.from.clone());
    Columns { names: names.into_iter().map(Cow::Owned).collect(), shows, from, ..Columns::default() }
}

fn text(lines: &[Line], at: usize) -> &str {
    lines.get(at).map_or("", |line| line.text.as_str())
}

fn trimmed<'t>(names: impl Iterator<Item = &'t str>) -> Vec<String> {
    names.map(|name| name.trim().to_owned()).take(COLUMNS).collect()
}

/// The result set that begins here with its header.
pub(super) fn printed(lines: &[Line], above: Option<&Select>) -> Option<Found> {
    let of =
        |shape: Shape, skip: usize, names: Vec<String>| Some(Found { shape, columns: columns(names, above), skip });
    let first = text(lines, 0);
    if is_record(between_bars(first.trim())) {
        return of(Shape::Vertical, 1, labels(lines));
    }
    let border = usize::from(is_border(first));
    if text(lines, border).starts_with('|') {
        let rule = usize::from(is_border(text(lines, border + 1)));
        return of(Shape::Table, border + 1 + rule, trimmed(between_bars(text(lines, border)).split('|')));
    }
    if is_rule(text(lines, 1)) && !first.trim().is_empty() {
        return of(Shape::Aligned, 2, trimmed(first.split('|')));
    }
    let is_name = |name: &String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_()*.?".contains(c);
        !name.is_empty() && name.len() <= 64 && (name.chars().all(is_part) || column_of(name).is_some())
    };
    let (shape, names) = match first {
        _ if first.starts_with('"') => {
            let separator = if first.contains('\t') {
                '\t'
            } else if first.contains("\";\"") {
                ';'
            } else {
                ','
            };
            let (names, is_open) = cells(first, separator);
            (Shape::Quoted(separator), if is_open { Vec::new() } else { trimmed(names.iter().map(String::as_str)) })
        }
        _ if first.contains('\t') => (Shape::Tabs, trimmed(first.split('\t'))),
        _ if first.contains('|') => (Shape::Unaligned, trimmed(first.split('|'))),
        _ => {
            let separator = if first.contains(';') && !first.contains(',') { ';' } else { ',' };
            (Shape::Quoted(separator), trimmed(first.split(separator)))
        }
    };
    if names.len() >= 2 && names.iter().all(is_name) { of(shape, 1, names) } else { None }
}

/// The result set whose first row this is: its statement, or the row itself, names its columns.
pub(super) fn headless(lines: &[Line], above: Option<&Select>) -> Option<Found> {
    let skip = lines.iter().take_while(|line| is_border(&line.text) || is_cut_mark(&line.text)).count();
    let first = text(lines, skip);
    let (shape, row) = match first {
        _ if first.trim().is_empty() => return None,
        _ if first.starts_with('|') => (Shape::Table, trimmed(between_bars(first).split('|'))),
        _ if first.contains('\t') => (Shape::Tabs, trimmed(first.split('\t'))),
        _ if first.starts_with('"') => {
            let separator = if first.contains("\";\"") { ';' } else { ',' };
            (Shape::Quoted(separator), cells(first, separator).0)
        }
        _ if first.contains('|') => (Shape::Aligned, trimmed(first.split('|'))),
        _ if first.contains(',') && above.is_some() => (Shape::Quoted(','), cells(first, ',').0),
        _ => return None,
    };
    if row.len() < 2 {
        return None;
    }
    // The first cell of a row without bars at its ends may be empty.
    let is_wide = |count: usize| above.and_then(|above| above.columns_of_row(count)).is_some();
    let (shape, row) = match shape {
        Shape::Table if !first.ends_with('|') && !is_wide(row.len()) && is_wide(row.len() + 1) => {
            (Shape::Unaligned, trimmed(first.split('|')))
        }
        _ => (shape, row),
    };
    let items = above.and_then(|above| above.columns_of_row(row.len())).or_else(|| {
        let is_session = is_session(&row);
        let list = Select { items: Vec::new(), from: vec!["processlist".to_owned()] };
        is_session.then(|| list.columns(row.len())).flatten()
    })?;
    let name = |item: &Item| item.alias.clone().or_else(|| item.column.clone()).unwrap_or_default();
    let shows = items.iter().map(|item| Cow::Owned(item.column.clone().unwrap_or_default())).collect();
    let from = above.map_or_else(Vec::new, |above| above.from.clone());
    let names = items.iter().map(|item| Cow::Owned(name(item))).collect();
    Some(Found { shape, columns: Columns { names, shows, from, ..Columns::default() }, skip })
}

/// Whether a row is one of `SHOW PROCESSLIST`: a number, an account, a host, a database, a command, seconds.
fn is_session(row: &[String]) -> bool {
    let cell = |at: usize| row.get(at).map_or("", String::as_str);
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (8..=18).contains(&row.len())
        && is_whole(cell(0))
        && !cell(1).is_empty()
        && COMMANDS.contains(&cell(4))
        && number(cell(5)).is_some_and(|seconds| seconds.fract() == 0.0)
}

/// `+----+------+`, `|----|:----:|`: dashes and what lies between them.
pub(super) fn is_border(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['+', '|']) && is_drawn(text)
}

/// `----+------`, `---|---`
pub(super) fn is_rule(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("--") && is_drawn(text) || text.starts_with(":-") && text.contains('|') && is_drawn(text)
}

fn is_drawn(text: &str) -> bool {
    text.contains("--") && text.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'|' | b':' | b' ' | b'='))
        || text.contains("|-|") && text.bytes().all(|byte| matches!(byte, b'-' | b'|'))
}

/// Whether a line is drawn, and no part of a statement: a border, a rule, the head of a record.
pub(in crate::text) fn is_drawn_line(text: &str) -> bool {
    is_border(text) || is_rule(text) || is_record(text)
}

/// A line that begins a record: `*** 1. row ***`, `-[ RECORD 1 ]---`.
pub(super) fn is_record(text: &str) -> bool {
    // Trackers eat stars.
    let inner = text.trim_matches(|c: char| matches!(c, '*' | '-' | '+' | '[' | ']' | ' ' | '|'));
    let is_number = |text: &str| !text.is_empty() && text.len() < 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_mysql = inner.strip_suffix(". row").is_some_and(is_number);
    let of_psql = || {
        let number = inner.strip_prefix("RECORD ").or_else(|| inner.strip_prefix("Record "));
        let digits = number.map(|number| number.split([' ', ']', '-', '+']).next().unwrap_or_default());
        digits.is_some_and(is_number) && text.starts_with(['-', '+', '*', '['])
    };
    of_mysql || of_psql()
}

/// `...`, `[…]`, `<snip>`, `| ... | ... |`: what stands for rows that were left out.
pub(super) fn is_cut_mark(text: &str) -> bool {
    let text = text.trim_matches(|c: char| " |[](){}<>*-+/#".contains(c));
    let is_dots = |part: &str| {
        let part = part.trim();
        part.is_empty() || part.len() >= 2 && part.chars().all(|c| matches!(c, '.' | '\u{2026}' | ' ' | ':'))
    };
    if text.starts_with("..") || text.starts_with('\u{2026}') {
        let said = ["more", "row", "omitted", "snip", "truncated", "cut", "etc", "lines", "same"];
        return text.split(['|', '\t']).all(is_dots)
            || text.len() < 80 && said.iter().any(|word| text.to_lowercase().contains(word));
    }
    let words = ["snip", "snipped", "snip snip", "truncated", "cut", "omitted", "output truncated", "output omitted"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// The lines of one record.
fn record(lines: &[Line]) -> impl Iterator<Item = &str> {
    lines
        .iter()
        .map(|line| between_bars(line.text.trim()))
        .take_while(|text| !is_record(text) && !text.trim().is_empty())
}

/// What parts name and value of records: `psql` draws bars, some clients of MySQL too.
pub(super) fn separator(lines: &[Line]) -> char {
    let first = record(lines.get(1..).unwrap_or_default()).next().unwrap_or_default();
    match (first.find('|'), first.find(':')) {
        (Some(bar), Some(colon)) if bar < colon => '|',
        (Some(_), None) => '|',
        _ => ':',
    }
}

/// Names of the record with the most of them, of a form with one column a line.
fn labels(lines: &[Line]) -> Vec<String> {
    let separator = separator(lines);
    let begins = lines.iter().enumerate().filter(|(_, line)| is_record(between_bars(line.text.trim())));
    let names = |(at, _): (usize, &Line)| {
        let parts = record(lines.get(at + 1..).unwrap_or_default()).filter_map(|text| text.split_once(separator));
        let names = parts.map(|(name, _)| name.trim().to_owned());
        names.filter(|name| !name.is_empty() && !name.contains(' ')).take(COLUMNS).collect::<Vec<String>>()
    };
    // Of equals the first.
    let records: Vec<Vec<String>> = begins.take(RECORDS).map(names).collect();
    records.into_iter().rev().max_by_key(Vec::len).unwrap_or_default()
}

/// What is between the first and the last bar of a row.
pub(super) fn between_bars(text: &str) -> &str {
    let inner = text.strip_prefix('|').unwrap_or(text);
    inner.strip_suffix('|').filter(|_| inner.len() < text.len()).unwrap_or(inner)
}

/// The cells of a line, and whether a quote is open at its end. A quote within a cell is doubled, or
/// stands behind a backslash. Single quotes, as some clients write them, are not doubled: one that ends a cell
/// stands before a separator.
pub(super) fn cells(text: &str, separator: char) -> (Vec<String>, bool) {
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_single) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if is_single => match chars.peek().is_none_or(|next| *next == separator) {
                true => is_single = false,
                false => cell.push(c),
            },
            c if is_single => cell.push(c),
            '\'' if !is_quoted && cell.trim().is_empty() => is_single = true,
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '\\' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                let ends = chars.peek().is_none_or(|next| *next == separator);
                cell.push(if ends { '\\' } else { '"' });
                is_quoted = !ends;
            }
            '"' if is_quoted || cell.trim().is_empty() => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    (cells, is_quoted || is_single)
}
