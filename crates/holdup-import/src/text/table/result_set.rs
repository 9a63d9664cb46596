//! Result sets as clients of databases print them: `mysql`'s table, its vertical form and its tabs; `psql`'s
//! aligned, expanded and unaligned forms; CSV; Markdown. People cut them: rows may be left out in the
//! middle, and the header at the top.

use std::borrow::Cow;

use super::shape::{Found, Shape, cells, is_border, is_cut_mark, is_record, is_rule};
use super::statement::{STATEMENTS, Select};
use super::{Columns, Row, shape};
use crate::text::paste::Line;

/// Largest number of lines that one row may span.
const ROW_LINES: usize = 2_000;

/// How clients print a missing value.
const NULLS: [&str; 5] = ["NULL", "\\N", "[NULL]", "<null>", "(null)"];

/// A result set of a database client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct Table {
    pub(in crate::text) columns: Columns<'static>,
    pub(super) rows: Vec<Vec<Option<String>>>,
    /// Number of lines.
    pub(in crate::text) used: usize,
    /// Whether a mark says that rows were left out.
    pub(in crate::text) is_cut: bool,
}

/// Reads the result set that begins here, below a statement if that is known. `is_headless` if its
/// first line is a row.
pub(in crate::text) fn read(lines: &[Line], above: Option<&Select>, is_headless: bool) -> Option<Table> {
    let Found { shape, columns, skip } = match is_headless {
        true => shape::headless(lines, above)?,
        false => shape::printed(lines, above)?,
    };
    let mut table = Table { columns, ..Table::default() };
    let most = table.columns.len();
    match shape {
        Shape::Table => table.read_bordered(lines, skip),
        Shape::Vertical => table.read_records(lines),
        Shape::Unaligned | Shape::Aligned if is_headless || shape == Shape::Unaligned => {
            let place = table.columns.place(STATEMENTS);
            table.read_separated(lines, skip, |text| by_bars(text, most, place));
        }
        Shape::Aligned | Shape::Unaligned => table.read_aligned(lines, skip),
        Shape::Tabs => {
            let cells = |text: &str| text.split('\t').map(|cell| cell.replace("\\n", " ")).collect();
            table.read_separated(lines, skip, cells);
        }
        Shape::Quoted(separator) => table.read_quoted(lines, skip, separator),
    }
    Some(table)
}

impl Table {
    /// Its rows.
    pub(in crate::text) fn rows(&self) -> impl Iterator<Item = Row<'_, '_>> {
        let Columns { names, shows, .. } = &self.columns;
        self.rows.iter().map(move |row| Row { names, shows, cells: row.iter().map(Option::as_deref).collect() })
    }

    /// Whether it has neither rows nor a line that counts none: only its header was pasted.
    pub(in crate::text) fn is_header_only(&self, lines: &[Line]) -> bool {
        let own = lines.get(..self.used).unwrap_or_default();
        self.rows.is_empty() && !self.is_cut && !own.iter().any(|line| footer_line(&line.text))
    }

    /// Whether it has no row.
    pub(in crate::text) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn push(&mut self, cells: Vec<String>) {
        let cell = |cell: String| {
            let cell = cell.trim();
            (!cell.is_empty() && !NULLS.contains(&cell)).then(|| cell.to_owned())
        };
        let cells: Vec<Option<String>> = cells.into_iter().map(cell).collect();
        let mut marks = cells.iter().flatten().peekable();
        if marks.peek().is_some() && marks.all(|cell| is_cut_mark(cell)) {
            self.is_cut = true;
            return;
        }
        // Clients repeat the header after some rows.
        let is_name =
            |(cell, name): (&Option<String>, &Cow<'_, str>)| cell.as_deref().unwrap_or_default() == name.as_ref();
        if cells.len() != self.columns.len() || !cells.iter().zip(&self.columns.names).all(is_name) {
            self.rows.push(cells);
        }
    }

    /// Lines at `next` that a mark of left-out rows stands in, if a row follows: `...`, and blanks around.
    fn skip_mark(&mut self, lines: &[Line], next: usize, is_row: impl Fn(&Line) -> bool) -> usize {
        let below = lines.get(next..).unwrap_or_default();
        let count = below.iter().take_while(|line| line.is_blank() || is_cut_mark(&line.text)).count();
        let marks = below.get(..count).unwrap_or_default();
        if marks.iter().all(Line::is_blank) || !below.get(count).is_some_and(is_row) {
            return 0;
        }
        self.is_cut = true;
        count
    }

    fn read_bordered(&mut self, lines: &[Line], skip: usize) {
        let is_row = |line: &Line| line.text.starts_with('|');
        let is_border_at = |at: usize| lines.get(at).is_some_and(|line| is_border(&line.text));
        let places: Vec<usize> = match lines.first() {
            Some(border) if border.text.starts_with("+-") => places(&border.text, '+'),
            _ => Vec::new(),
        };
        let mut next = skip;
        loop {
            next += self.skip_mark(lines, next, is_row);
            // Some clients draw a line below each row.
            if is_border_at(next) && lines.get(next + 1).is_some_and(|line| is_row(line) && !is_border(&line.text)) {
                next += 1;
            }
            let Some(line) = lines.get(next).filter(|line| is_row(line) && !is_border(&line.text)) else { break };
            let mut text = line.text.clone();
            next += 1;
            // A cell with line breaks goes on until a line ends in a bar.
            let last = next + ROW_LINES;
            while !text.ends_with('|') && next < last {
                let more = lines.get(next).map(|line| line.text.as_str());
                let goes_on = |more: &&str| !more.starts_with('|') && !more.starts_with("+-") && !is_cut_mark(more);
                let Some(more) = more.filter(goes_on) else { break };
                text.push(' ');
                text.push_str(more);
                next += 1;
            }
            let in_bars = || by_bars(shape::between_bars(&text), self.columns.len(), self.columns.place(STATEMENTS));
            let cells = cut_at(&text, &places).unwrap_or_else(in_bars);
            self.push(cells);
        }
        next += usize::from(is_border_at(next));
        self.used = next + footer(lines, next);
    }

    fn read_records(&mut self, lines: &[Line]) {
        let separator = shape::separator(lines);
        let mut cells = vec![String::new(); self.columns.len()];
        let (mut place, mut has_any, mut used) = (0, false, 0);
        for line in lines {
            let text = shape::between_bars(line.text.trim()).trim_end();
            if is_record(text) {
                if has_any {
                    self.push(std::mem::replace(&mut cells, vec![String::new(); self.columns.len()]));
                }
                (place, has_any) = (0, false);
            } else if line.is_blank() || footer_line(text) || is_border(text) {
                let is_next = |line: &Line| is_record(shape::between_bars(line.text.trim()));
                let rest = lines.get(used..).unwrap_or_default();
                let blanks = rest.iter().take_while(|line| line.is_blank()).count();
                // A blank line within a record belongs to a statement, or the paste has lost its shape.
                if !rest.get(blanks).is_some_and(is_next) {
                    used += usize::from(!line.is_blank());
                    break;
                }
            } else if is_cut_mark(text) {
                self.is_cut = true;
            } else {
                // The next names are searched before the earlier ones: statements may hold colons.
                let split = text.split_once(separator).map(|(name, value)| (name.trim(), value.trim()));
                let mut names = self.columns.names.iter().enumerate().skip(if has_any { place + 1 } else { 0 });
                let found = split.and_then(|(name, value)| Some((names.find(|(_, column)| *column == name)?.0, value)));
                // `psql` marks a line break in a value, and leaves the name of its next line empty.
                let plain = |value: &str| value.trim_end_matches(['+', '\u{21b5}']).trim().to_owned();
                match (found, split) {
                    (Some((at, value)), _) => {
                        (place, has_any) = (at, true);
                        cells[at] = if separator == '|' { plain(value) } else { value.to_owned() };
                    }
                    (None, Some(("", more))) if has_any && separator == '|' => {
                        cells[place] = format!("{} {}", cells[place], plain(more));
                    }
                    (None, _) if has_any => {
                        let more = if separator == '|' { plain(text) } else { text.trim().to_owned() };
                        cells[place] = format!("{} {more}", cells[place]);
                    }
                    (None, _) => {}
                }
            }
            used += 1;
        }
        if has_any {
            self.push(cells);
        }
        self.used = used.max(1);
    }

    fn read_aligned(&mut self, lines: &[Line], skip: usize) {
        let rule = lines.get(skip - 1).map_or("", |line| line.text.as_str());
        let mut ends = places(rule, '+');
        ends.extend(places(rule, '|'));
        ends.push(usize::MAX);
        let mut next = skip;
        let mut is_open = false;
        loop {
            next += self.skip_mark(lines, next, |line| line.text.contains('|') && !is_rule(&line.text));
            let Some(line) = lines.get(next).filter(|line| !line.is_blank() && !footer_line(&line.text)) else { break };
            next += 1;
            let Some(cells) = self.fixed(&line.text, &ends) else { continue };
            let goes_on = cells.iter().any(|cell| cell.ends_with(['+', '\u{21b5}']));
            let cells = cells.into_iter().map(|cell| cell.trim_end_matches(['+', '\u{21b5}']).to_owned());
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
        }
        self.used = next + footer(lines, next);
    }

    /// Cells of fixed widths that end before `ends`, in characters. None for a line that is a mark of
    /// left-out rows.
    fn fixed(&mut self, text: &str, ends: &[usize]) -> Option<Vec<String>> {
        if is_cut_mark(text) {
            self.is_cut = true;
            return None;
        }
        let trimmed = |cell: &str| cell.trim().to_owned();
        // Rows that were pasted without their padding have as many bars as the header.
        if text.matches('|').count() + 1 == ends.len() {
            return Some(text.split('|').map(trimmed).collect());
        }
        let chars: Vec<char> = text.chars().collect();
        let bars = ends.split_last().map_or(&[][..], |(_, bars)| bars);
        if !bars.iter().all(|at| chars.get(*at).is_none_or(|c| matches!(c, '|' | ':'))) {
            let cells = by_bars(text, self.columns.len(), self.columns.place(STATEMENTS));
            return Some(cells.iter().map(|cell| trimmed(cell)).collect());
        }
        let mut from = 0;
        let cell = |end: &usize| {
            let cell: String =
                chars.get(from.min(chars.len())..(*end).min(chars.len()).max(from.min(chars.len())))?.iter().collect();
            from = end.saturating_add(1);
            Some(trimmed(&cell))
        };
        Some(ends.iter().map_while(cell).collect())
    }

    fn read_separated(&mut self, lines: &[Line], skip: usize, split: impl Fn(&str) -> Vec<String>) {
        let mut used = skip;
        loop {
            used += self.skip_mark(lines, used, |line| split(&line.text).len() >= 2);
            let Some(line) = lines.get(used).filter(|line| !line.is_blank()) else { break };
            let cells = split(&line.text);
            if cells.len() < 2 && !is_rule(&line.text) {
                break;
            }
            // A row of these forms has all of its separators: another one lost some, and its cells are
            // not below their names. The last one may be cut.
            let below = lines.get(used + 1).is_some_and(|line| split(&line.text).len() >= 2);
            match cells.len() < self.columns.len() && below {
                true => self.is_cut = true,
                false if is_rule(&line.text) => {}
                false => self.push(cells),
            }
            used += 1;
        }
        self.used = used + footer(lines, used);
    }

    /// Rows whose cells may be quoted, with line breaks in them.
    fn read_quoted(&mut self, lines: &[Line], skip: usize, separator: char) {
        let mut used = skip;
        loop {
            used += self.skip_mark(lines, used, |line| cells(&line.text, separator).0.len() >= 2);
            let Some(line) = lines.get(used).filter(|line| !line.is_blank()) else { break };
            let mut text = line.text.clone();
            let (mut row, mut is_open) = cells(&text, separator);
            let mut lines_of_row = 1;
            while is_open
                && lines_of_row < ROW_LINES
                && let Some(more) = lines.get(used + lines_of_row)
            {
                text.push(' ');
                text.push_str(&more.text);
                (row, is_open) = cells(&text, separator);
                lines_of_row += 1;
            }
            // A quote that nothing closes is a cut: only its own line is the row.
            if is_open {
                (row, lines_of_row) = (cells(&line.text, separator).0, 1);
            }
            if row.len() < 2 {
                break;
            }
            self.push(row);
            used += lines_of_row;
        }
        self.used = used + footer(lines, used);
    }
}

/// The cells between bars. More bars than columns are part of the statement, or of the last cell.
fn by_bars(text: &str, most: usize, statement: Option<usize>) -> Vec<String> {
    let cells: Vec<&str> = text.split('|').collect();
    let extra = cells.len().saturating_sub(most);
    let place = statement.unwrap_or(most.saturating_sub(1));
    let mut joined: Vec<String> = cells.iter().take(place).map(|cell| (*cell).to_owned()).collect();
    joined.push(cells.get(place..=place + extra).unwrap_or_default().join("|"));
    joined.extend(cells.iter().skip(place + extra + 1).map(|cell| (*cell).to_owned()));
    joined.truncate(cells.len());
    joined
}

/// Where a character stands in a line, characters.
fn places(text: &str, wanted: char) -> Vec<usize> {
    text.chars().enumerate().filter(|(_, c)| *c == wanted).map(|(at, _)| at).collect()
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
