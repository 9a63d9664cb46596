//! Tables as tools and clients print them, all read here by the words of their header: columns apart
//! by blanks (`vmstat`), cells below the beginning of their name (`kubectl`), and result sets: `mysql`'s
//! table, its vertical form and its tabs; `psql`'s aligned, expanded and unaligned forms and its CSV.
//! Rows and cells may be cut, cells may be empty or span lines.

use std::borrow::Cow;

use super::number::number;
use super::paste::Line;

/// Largest number of lines that one row may span.
const ROW_LINES: usize = 2_000;

/// Columns that are read of one result set.
const COLUMNS: usize = 200;

/// The names of a table's columns, in order, and how its rows are cut.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Columns<'n> {
    pub(super) names: Vec<Cow<'n, str>>,
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
        aliases.iter().find_map(|alias| self.names.iter().position(|name| name.eq_ignore_ascii_case(alias)))
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
        Row { names: &self.names, cells: values.into_iter().map(Some).collect() }
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
        is_row.then(|| Row { names: &self.names, cells: cells.into_iter().map(cell).collect() })
    }
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
    cells: Vec<Option<&'t str>>,
}

impl<'c, 't> Row<'c, 't> {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether its table has one of these columns.
    pub(super) fn has_any(&self, aliases: &[&str]) -> bool {
        self.names.iter().any(|name| aliases.iter().any(|alias| name.eq_ignore_ascii_case(alias)))
    }

    /// The text below the first of `aliases` that is a column.
    pub(super) fn text(&self, aliases: &[&str]) -> Option<&'t str> {
        let place = |alias: &&str| self.names.iter().position(|name| name.eq_ignore_ascii_case(alias));
        *self.cells.get(aliases.iter().find_map(place)?)?
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

/// A result set of a database client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Columns<'static>,
    rows: Vec<Vec<Option<String>>>,
    /// Number of lines.
    pub(super) used: usize,
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
pub(super) fn header(lines: &[Line]) -> Option<Columns<'static>> {
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
pub(super) fn read(lines: &[Line]) -> Option<Table> {
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
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_, '_>> {
        let names = self.columns.names.as_slice();
        self.rows.iter().map(move |row| Row { names, cells: row.iter().map(Option::as_deref).collect() })
    }

    /// Whether it has no row.
    pub(super) fn is_empty(&self) -> bool {
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
pub(super) fn footer_line(text: &str) -> bool {
    let text = text.trim();
    let number = text.trim_start_matches('(').split_whitespace().next();
    let is_counted = number.is_some_and(|word| word.parse::<u64>().is_ok());
    is_counted && (text.contains(" in set") || text.starts_with('(') && text.contains("row"))
}

fn footer(lines: &[Line], at: usize) -> usize {
    usize::from(lines.get(at).is_some_and(|line| footer_line(&line.text)))
}

#[cfg(test)]
mod tests {
    use super::super::paste;
    use super::*;

    fn set(text: &str) -> Table {
        read(&paste::lines(text.as_bytes(), |_| false)).unwrap()
    }

    fn row(set: &Table, at: usize) -> Vec<&str> {
        set.rows[at].iter().map(|cell| cell.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn a_table_with_bars_and_line_breaks_in_a_cell() {
        let found = set(
            "+----+---------+------+\n| Id | Info    | Prog |\n+----+---------+------+\n| 1  | a | b   | 0.1  |\n\
             | 2  | SELECT\n  1 | NULL |\n| 3  | cut off her\n+----+---------+------+\n2 rows in set (0.00 sec)\nnext\n",
        );
        assert_eq!(found.columns.names, ["Id", "Info", "Prog"]);
        assert_eq!(row(&found, 0), ["1", "a | b", "0.1"]);
        assert_eq!(row(&found, 1), ["2", "SELECT   1", "-"]);
        assert_eq!((row(&found, 2), found.used), (vec!["3", "cut off her"], 9));
    }

    #[test]
    fn the_vertical_form() {
        let found = set(
            "*************************** 1. row ***************************\n  Id: 7\nInfo: SELECT ':' AS x\n  FROM t\n\
             *************************** 2. row ***************************\n  Id: 8\nInfo: NULL\n2 rows in set\n",
        );
        assert_eq!((row(&found, 0), row(&found, 1)), (vec!["7", "SELECT ':' AS x FROM t"], vec!["8", "-"]));
        assert_eq!(found.used, 8);
    }

    #[test]
    fn forms_of_psql() {
        let aligned = set(
            " pid |  query   | n\n-----+----------+---\n  12 | SELECT  +|  \n     |  1 | 2   | 3\n   9 | x        |  \n(2 rows)\n",
        );
        assert_eq!((row(&aligned, 0), aligned.used), (vec!["12", "SELECT 1 | 2", "3"], 6));
        let expanded = set("-[ RECORD 1 ]---\npid   | 12\nquery | a | b\n-[ RECORD 2 ]---\npid   | 9\nquery | \n\n");
        assert_eq!((row(&expanded, 0), row(&expanded, 1)), (vec!["12", "a | b"], vec!["9", "-"]));
        let csv = set("pid,query\n12,\"SELECT 1, \"\"x\"\"\"\n");
        assert_eq!(row(&csv, 0), ["12", "SELECT 1, \"x\""]);
    }

    #[test]
    fn tabs() {
        let found = set("Id\tInfo\n7\tSELECT\\n1\n");
        assert_eq!((row(&found, 0), found.used), (vec!["7", "SELECT 1"], 2));
    }

    #[test]
    fn by_name_with_words_and_cut() {
        let columns = Columns::new("PID COMMAND WCHAN").with_words(&["COMMAND"]);
        let row = columns.row("12 tmux: server ep_poll");
        assert_eq!((row.number(&["pid"]), row.text(&["command"])), (Some(12.0), Some("tmux: server")));
        assert_eq!(row.text(&["WCHAN"]), Some("ep_poll"));
        let row = columns.row("12");
        assert_eq!((row.len(), row.text(&["COMMAND"])), (1, None));
    }

    #[test]
    fn cells_by_place_and_by_blanks() {
        let table = Columns::above_cells("LAST SEEN   TYPE      OBJECT      SUBOBJECT   MESSAGE");
        assert!(table.has(&["LAST SEEN", "MESSAGE"]) && !table.has(&["REASON"]));
        let row = table.cells("2m5s        Warning   pod/a-1                 it  failed: é").unwrap();
        assert_eq!((row.text(&["SUBOBJECT"]), row.text(&["MESSAGE"])), (None, Some("it  failed: é")));
        let row = table.cells("2m5s  Warning  pod/a-1  spec{app}  it failed").unwrap();
        assert_eq!((row.text(&["SUBOBJECT"]), row.text(&["MESSAGE"])), (Some("spec{app}"), Some("it failed")));
        assert!(table.cells("a word of prose that is long enough").is_none());
    }
}
