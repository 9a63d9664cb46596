//! Result sets as clients of databases print them: `mysql`'s table, its vertical form and its tabs; `psql`'s
//! aligned, expanded and unaligned forms and its CSV.

use std::borrow::Cow;

use super::{Columns, Row};
use crate::text::paste::Line;

/// Largest number of lines that one row may span.
const ROW_LINES: usize = 2_000;

/// Columns that are read of one result set.
const COLUMNS: usize = 200;

/// A result set of a database client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct Table {
    pub(in crate::text) columns: Columns<'static>,
    pub(super) rows: Vec<Vec<Option<String>>>,
    /// Number of lines.
    pub(in crate::text) used: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `mysql`, with the number of lines above its names.
    Table(usize),
    Vertical,
    Aligned,
    Expanded,
    Tabs,
    /// `psql -A`.
    Unaligned,
    Csv,
}

/// The columns of the result set that begins here.
pub(in crate::text) fn header(lines: &[Line]) -> Option<Columns<'static>> {
    shape(lines).map(|(_, columns)| columns)
}

fn shape(lines: &[Line]) -> Option<(Shape, Columns<'static>)> {
    let text = |at: usize| lines.get(at).map_or("", |line| line.text.as_str());
    let of = |shape: Shape, names: Vec<String>| {
        let names = names.into_iter().map(Cow::Owned).collect();
        Some((shape, Columns { names, ..Columns::default() }))
    };
    let first = text(0);
    if first.starts_with("***") && first.contains(". row *") {
        return of(Shape::Vertical, labels(lines, ':', "***"));
    }
    if first.starts_with("-[ RECORD") {
        return of(Shape::Expanded, labels(lines, '|', "-[ RECORD"));
    }
    let trimmed = |names: std::str::Split<'_, char>| names.map(|name| name.trim().to_owned()).take(COLUMNS).collect();
    let above = usize::from(is_border(first));
    if text(above).starts_with('|') {
        return of(Shape::Table(above), trimmed(between_bars(text(above)).split('|')));
    }
    if is_rule(text(1)) && !first.trim().is_empty() {
        return of(Shape::Aligned, trimmed(first.split('|')));
    }
    let (separator, shape) = match first {
        _ if first.contains('\t') => ('\t', Shape::Tabs),
        _ if first.contains('|') => ('|', Shape::Unaligned),
        _ => (',', Shape::Csv),
    };
    let names: Vec<String> = trimmed(first.split(separator));
    let is_name = |name: &String| {
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_()*.".contains(c))
    };
    if names.len() >= 2 && names.iter().all(is_name) { of(shape, names) } else { None }
}

/// `+----+------+`
fn is_border(text: &str) -> bool {
    text.starts_with("+-") && text.bytes().all(|byte| matches!(byte, b'+' | b'-'))
}

/// `----+------`
fn is_rule(text: &str) -> bool {
    text.trim_start().starts_with("--") && text.trim().bytes().all(|byte| matches!(byte, b'+' | b'-'))
}

/// Names of the first record of a form with one column a line.
fn labels(lines: &[Line], separator: char, next: &str) -> Vec<String> {
    let record = lines.iter().skip(1).take_while(|line| !line.text.starts_with(next) && !line.is_blank());
    let names = record.filter_map(|line| line.text.split_once(separator)).map(|(name, _)| name.trim().to_owned());
    names.filter(|name| !name.is_empty() && !name.contains(' ')).take(COLUMNS).collect()
}

/// What is between the first and the last bar of a row.
fn between_bars(text: &str) -> &str {
    let inner = text.strip_prefix('|').unwrap_or(text);
    inner.strip_suffix('|').unwrap_or(inner)
}

/// Reads the result set that begins here.
pub(in crate::text) fn read(lines: &[Line]) -> Option<Table> {
    let (shape, columns) = shape(lines)?;
    let mut table = Table { columns, ..Table::default() };
    let most = table.columns.len();
    match shape {
        Shape::Table(above) => table.read_bordered(lines, above),
        Shape::Vertical => table.read_records(lines, ':', "***"),
        Shape::Expanded => table.read_records(lines, '|', "-[ RECORD"),
        Shape::Aligned => table.read_aligned(lines),
        Shape::Tabs => {
            table.read_separated(lines, |text| text.split('\t').map(|cell| cell.replace("\\n", " ")).collect())
        }
        Shape::Unaligned => table.read_separated(lines, |text| text.splitn(most, '|').map(str::to_owned).collect()),
        Shape::Csv => table.read_separated(lines, csv),
    }
    Some(table)
}

impl Table {
    /// Its rows.
    pub(in crate::text) fn rows(&self) -> impl Iterator<Item = Row<'_, '_>> {
        let names = self.columns.names.as_slice();
        self.rows.iter().map(move |row| Row { names, cells: row.iter().map(Option::as_deref).collect() })
    }

    /// Whether it has no row.
    pub(in crate::text) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn push(&mut self, cells: Vec<String>) {
        let cell = |cell: String| {
            let cell = cell.trim();
            (!cell.is_empty() && cell != "NULL").then(|| cell.to_owned())
        };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    fn read_bordered(&mut self, lines: &[Line], above: usize) {
        let is_border_at = |at: usize| lines.get(at).is_some_and(|line| is_border(&line.text));
        let places: Vec<usize> = match lines.first() {
            Some(border) if above == 1 => places(&border.text, '+'),
            _ => Vec::new(),
        };
        let mut next = above + 1 + usize::from(is_border_at(above + 1));
        while let Some(line) = lines.get(next).filter(|line| line.text.starts_with('|')) {
            let mut text = line.text.clone();
            next += 1;
            // A cell with line breaks goes on until a line ends in a bar.
            let last = next + ROW_LINES;
            while !text.ends_with('|') && next < last {
                let more = lines.get(next).map(|line| line.text.as_str());
                let Some(more) = more.filter(|more| !more.starts_with('|') && !more.starts_with("+-")) else { break };
                text.push(' ');
                text.push_str(more);
                next += 1;
            }
            // The last cell may hold further bars.
            let most = self.columns.len().max(1);
            let by_bars = || between_bars(&text).splitn(most, '|').map(str::to_owned).collect();
            self.push(cut_at(&text, &places).unwrap_or_else(by_bars));
        }
        next += usize::from(is_border_at(next));
        self.used = next + footer(lines, next);
    }

    fn read_records(&mut self, lines: &[Line], separator: char, next_record: &str) {
        let mut cells = vec![String::new(); self.columns.len()];
        let (mut place, mut has_any, mut used) = (0, false, 0);
        for line in lines {
            let text = line.text.as_str();
            if text.starts_with(next_record) {
                if has_any {
                    self.push(std::mem::replace(&mut cells, vec![String::new(); self.columns.len()]));
                }
                (place, has_any) = (0, false);
            } else if line.is_blank() || footer_line(text) {
                used += usize::from(!line.is_blank());
                break;
            } else {
                // The next names are searched before the earlier ones: statements may hold colons.
                let split = text.split_once(separator).map(|(name, value)| (name.trim(), value.trim()));
                let mut names = self.columns.names.iter().enumerate().skip(if has_any { place + 1 } else { 0 });
                let found = split.and_then(|(name, value)| Some((names.find(|(_, column)| *column == name)?.0, value)));
                match found {
                    Some((at, value)) => {
                        (place, has_any) = (at, true);
                        value.clone_into(&mut cells[at]);
                    }
                    None if has_any => {
                        cells[place].push(' ');
                        cells[place].push_str(text.trim());
                    }
                    None => {}
                }
            }
            used += 1;
        }
        if has_any {
            self.push(cells);
        }
        self.used = used.max(1);
    }

    fn read_aligned(&mut self, lines: &[Line]) {
        let mut ends = places(lines.get(1).map_or("", |line| line.text.as_str()), '+');
        ends.push(usize::MAX);
        let mut next = 2;
        let mut is_open = false;
        while let Some(line) = lines.get(next).filter(|line| !line.is_blank() && !footer_line(&line.text)) {
            let cells = fixed(&line.text, &ends);
            let goes_on = cells.iter().any(|cell| cell.ends_with('+'));
            let cells = cells.into_iter().map(|cell| cell.strip_suffix('+').map_or(cell.clone(), str::to_owned));
            match self.rows.last_mut().filter(|_| is_open) {
                Some(row) => {
                    for (whole, more) in row.iter_mut().zip(cells).filter(|(_, more)| !more.trim().is_empty()) {
                        *whole =
                            Some(format!("{} {}", whole.take().unwrap_or_default(), more.trim()).trim().to_owned());
                    }
                }
                None => self.push(cells.collect()),
            }
            is_open = goes_on;
            next += 1;
        }
        self.used = next + footer(lines, next);
    }

    fn read_separated(&mut self, lines: &[Line], split: impl Fn(&str) -> Vec<String>) {
        let mut used = 1;
        for line in lines.iter().skip(1).take_while(|line| !line.is_blank()) {
            let cells = split(&line.text);
            if cells.len() < 2 {
                break;
            }
            self.push(cells);
            used += 1;
        }
        self.used = used + footer(lines, used);
    }
}

/// Where a character stands in a line, bytes.
fn places(text: &str, wanted: char) -> Vec<usize> {
    text.char_indices().filter(|(_, c)| *c == wanted).map(|(at, _)| at).collect()
}

/// Cells between bars at `places`, if there are bars at all of them.
fn cut_at(text: &str, places: &[usize]) -> Option<Vec<String>> {
    let (first, inner) = places.split_first()?;
    let chars: Vec<char> = text.chars().collect();
    let end = chars.len().checked_sub(1)?;
    let (_, inner) = inner.split_last()?;
    let mut from = *first + 1;
    let mut cells = Vec::new();
    for place in inner.iter().copied().chain([end]) {
        if chars.get(place) != Some(&'|') || place < from {
            return None;
        }
        cells.push(chars.get(from..place)?.iter().collect());
        from = place + 1;
    }
    Some(cells)
}

/// Cells of fixed widths that end before `ends`, in characters.
fn fixed(text: &str, ends: &[usize]) -> Vec<String> {
    // Rows that were pasted without their padding have as many bars as the header.
    if text.matches('|').count() + 1 == ends.len() {
        return text.split('|').map(|cell| cell.trim().to_owned()).collect();
    }
    let mut cells = vec![String::new()];
    let mut bounds = ends.iter();
    let mut end = bounds.next().copied().unwrap_or(usize::MAX);
    for (at, c) in text.chars().enumerate() {
        if at == end {
            cells.push(String::new());
            end = bounds.next().copied().unwrap_or(usize::MAX);
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn csv(text: &str) -> Vec<String> {
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

/// `3 rows in set (0.00 sec)`, `(3 rows)`
pub(in crate::text) fn footer_line(text: &str) -> bool {
    let text = text.trim();
    let number = text.trim_start_matches('(').split_whitespace().next();
    let is_counted = number.is_some_and(|word| word.parse::<u64>().is_ok());
    is_counted && (text.contains(" in set") || text.starts_with('(') && text.contains("row"))
}

fn footer(lines: &[Line], at: usize) -> usize {
    usize::from(lines.get(at).is_some_and(|line| footer_line(&line.text)))
}
