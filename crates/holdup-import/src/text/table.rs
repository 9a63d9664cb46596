//! Tables as tools and clients print them, all read here by the words of their header: columns apart
//! by blanks (`vmstat`), cells below the beginning of their name (`kubectl`), and result sets: `mysql`'s
//! table, its vertical form and its tabs; `psql`'s aligned, expanded and unaligned forms; CSV and
//! Markdown. Rows and cells may be cut, cells may be empty or span lines.

mod result_set;
mod shape;
mod statement;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub(super) use self::result_set::{Table, footer_line, read};
pub(super) use self::shape::{header, header_of_rows, is_drawn_line};
pub(super) use self::statement::{Select, select};
use super::number::number;

/// The names of a table's columns, in order, and how its rows are cut.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Columns<'n> {
    pub(super) names: Vec<Cow<'n, str>>,
    /// Of a result set what each column shows, where that is known and its name is another one.
    shows: Vec<Cow<'static, str>>,
    /// Of a result set the tables that were asked, if its statement stands above.
    from: Vec<String>,
    /// Of columns apart by blanks, the one whose values may hold blanks.
    words: Option<usize>,
    /// Of cells below their names, where each begins, in characters.
    starts: Vec<usize>,
}

impl<'n> Columns<'n> {
    /// The columns of a header whose names and values are apart by blanks.
    pub(super) fn new(header: &'n str) -> Self {
        Self { names: header.split_whitespace().map(Cow::Borrowed).collect(), ..Self::default() }
    }

    /// Lets values of the column with one of these names hold blanks.
    pub(super) fn with_words(mut self, aliases: &[&str]) -> Self {
        self.words = self.place(aliases);
        self
    }

    /// The columns of a header above whose cells each name stands; names may hold single blanks. Tabs
    /// are to be [`spaced`] before.
    pub(super) fn above_cells(header: &'n str) -> Self {
        let mut columns = Self::default();
        let mut at = 0;
        while let Some(rest) = header.get(at..).filter(|rest| !rest.trim().is_empty()) {
            let begin = at + rest.len() - rest.trim_start().len();
            let name = header.get(begin..).unwrap_or_default();
            let end = name.find("  ").unwrap_or(name.len());
            columns.names.push(Cow::Borrowed(name.get(..end).unwrap_or_default().trim_end()));
            columns.starts.push(header.get(..begin).unwrap_or_default().chars().count());
            at = begin + end;
        }
        columns
    }

    /// The place of the first of `aliases` that is a column.
    pub(super) fn place(&self, aliases: &[&str]) -> Option<usize> {
        place(&self.names, &self.shows, aliases)
    }

    /// Whether the statement above asked one of these tables.
    pub(super) fn is_from(&self, tables: &[&str]) -> bool {
        self.from.iter().any(|name| tables.contains(&name.as_str()))
    }

    /// Whether it has one of these columns.
    pub(super) fn has_any(&self, aliases: &[&str]) -> bool {
        self.place(aliases).is_some()
    }

    /// Whether it has all of these columns.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.has_any(&[name]))
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The values of a line that are apart by blanks. It may be cut at its end.
    pub(super) fn row<'t>(&self, line: &'t str) -> Row<'_, 't> {
        let mut values: Vec<&str> = line.split_whitespace().collect();
        let extra = values.len().saturating_sub(self.names.len());
        if let Some(place) = self.words.filter(|place| extra > 0 && *place < values.len()) {
            let end = (place + extra).min(values.len() - 1);
            let (first, last) = (values[place], values[end]);
            let from = first.as_ptr() as usize - line.as_ptr() as usize;
            let to = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
            values.splice(place..=end, [line.get(from..to).unwrap_or(first)]);
        }
        Row { names: &self.names, shows: &self.shows, cells: values.into_iter().map(Some).collect() }
    }

    /// The cells of a line below their names; none if it is not of this table.
    pub(super) fn cells<'t>(&self, line: &'t str) -> Option<Row<'_, 't>> {
        let line = line.trim_end();
        let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
        let byte = |character: usize| places.get(character).copied().unwrap_or(line.len());
        let is_aligned = self.starts.iter().skip(1).all(|at| !line[byte(at - 1)..].starts_with(|c| c != ' '));
        let ends = self.starts.iter().skip(1).copied().chain([usize::MAX]);
        let cells: Vec<&str> = match is_aligned {
            true => self.starts.iter().zip(ends).map(|(from, to)| line[byte(*from)..byte(to)].trim()).collect(),
            // Blanks were lost on the way: two of them end a cell.
            false => apart(line, self.len()),
        };
        let is_row = cells.first().is_some_and(|first| !first.is_empty()) && cells.len() == self.len();
        let cell = |cell: &'t str| Some(cell).filter(|cell| !cell.is_empty() && *cell != "<none>");
        is_row.then(|| Row { names: &self.names, shows: &self.shows, cells: cells.into_iter().map(cell).collect() })
    }
}

/// The place of the first of `aliases` that is a column's name, or what one shows.
fn place(names: &[Cow<'_, str>], shows: &[Cow<'static, str>], aliases: &[&str]) -> Option<usize> {
    let of = |all: &[Cow<'_, str>], alias: &str| all.iter().position(|name| name.eq_ignore_ascii_case(alias));
    aliases.iter().find_map(|alias| of(names, alias).or_else(|| of(shows, alias)))
}

/// The line with blanks for tabs, to the next multiple of eight.
pub(super) fn spaced(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut width = 0;
    for c in line.chars() {
        let count = if c == '\t' { 8 - width % 8 } else { 1 };
        out.extend(std::iter::repeat_n(if c == '\t' { ' ' } else { c }, count));
        width += count;
    }
    out
}

/// At most `most` cells, between which there are two blanks or more.
fn apart(line: &str, most: usize) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut rest = line.trim();
    while cells.len() + 1 < most
        && let Some((cell, after)) = rest.split_once("  ")
    {
        cells.push(cell);
        rest = after.trim_start();
    }
    cells.push(rest);
    cells
}

/// The cells of one row; none for an empty one, and for NULL.
pub(super) struct Row<'c, 't> {
    names: &'c [Cow<'c, str>],
    shows: &'c [Cow<'static, str>],
    cells: Vec<Option<&'t str>>,
}

impl<'c, 't> Row<'c, 't> {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether its table has one of these columns.
    pub(super) fn has_any(&self, aliases: &[&str]) -> bool {
        place(self.names, self.shows, aliases).is_some()
    }

    /// The text below the first of `aliases` that is a column.
    pub(super) fn text(&self, aliases: &[&str]) -> Option<&'t str> {
        *self.cells.get(place(self.names, self.shows, aliases)?)?
    }

    /// The number below the first of `aliases` that is a column.
    pub(super) fn number(&self, aliases: &[&str]) -> Option<f64> {
        number(self.text(aliases)?)
    }

    /// The cells with the names of their columns.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&'c str, Option<&'t str>)> {
        self.names.iter().map(Cow::as_ref).zip(self.cells.iter().copied())
    }
}
