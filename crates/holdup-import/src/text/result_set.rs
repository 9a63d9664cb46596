//! Result sets as database clients print them: `mysql`'s table, its vertical form and its tabs;
//! `psql`'s aligned and expanded forms and its CSV. Cells may be cut or span lines.

use super::paste::Line;

/// Largest number of lines that one row may span.
const ROW_LINES: usize = 2_000;

/// Columns that are read of one result set.
const COLUMNS: usize = 200;

/// Rows below the names of their columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResultSet {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Option<String>>>,
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

/// The names of the columns of the result set that begins here.
pub(super) fn header(lines: &[Line]) -> Option<Vec<String>> {
    shape(lines).map(|(_, columns)| columns)
}

fn shape(lines: &[Line]) -> Option<(Shape, Vec<String>)> {
    let text = |at: usize| lines.get(at).map_or("", |line| line.text.as_str());
    let first = text(0);
    if first.starts_with("***") && first.contains(". row *") {
        return Some((Shape::Vertical, labels(lines, ':', "***")));
    }
    if first.starts_with("-[ RECORD") {
        return Some((Shape::Expanded, labels(lines, '|', "-[ RECORD")));
    }
    let above = usize::from(is_border(first));
    if text(above).starts_with('|') {
        return Some((Shape::Table(above), split_bars(text(above))));
    }
    if first.contains('|') && is_rule(text(1)) || is_rule(text(1)) && !first.trim().is_empty() {
        return Some((Shape::Aligned, first.split('|').map(|name| name.trim().to_owned()).take(COLUMNS).collect()));
    }
    let (separator, shape) = match first {
        _ if first.contains('\t') => ('\t', Shape::Tabs),
        _ if first.contains('|') => ('|', Shape::Unaligned),
        _ => (',', Shape::Csv),
    };
    let names: Vec<String> = first.split(separator).map(|name| name.trim().to_owned()).take(COLUMNS).collect();
    let is_name = |name: &String| {
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_()*.".contains(c))
    };
    (names.len() >= 2 && names.iter().all(is_name)).then_some((shape, names))
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

fn split_bars(text: &str) -> Vec<String> {
    let inner = text.strip_prefix('|').unwrap_or(text);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|name| name.trim().to_owned()).take(COLUMNS).collect()
}

/// Reads the result set that begins here.
pub(super) fn read(lines: &[Line]) -> Option<ResultSet> {
    let (shape, columns) = shape(lines)?;
    let mut set = ResultSet { columns, ..ResultSet::default() };
    match shape {
        Shape::Table(above) => set.read_table(lines, above),
        Shape::Vertical => set.read_records(lines, ':', "***"),
        Shape::Expanded => set.read_records(lines, '|', "-[ RECORD"),
        Shape::Aligned => set.read_aligned(lines),
        Shape::Tabs => {
            set.read_separated(lines, |text| text.split('\t').map(|cell| cell.replace("\\n", " ")).collect())
        }
        Shape::Unaligned => {
            let columns = set.columns.len();
            set.read_separated(lines, |text| text.splitn(columns, '|').map(str::to_owned).collect())
        }
        Shape::Csv => set.read_separated(lines, csv),
    }
    Some(set)
}

impl ResultSet {
    /// The cell of `row` in the first of the columns `names` that exists.
    pub(super) fn cell<'a>(&self, row: &'a [Option<String>], names: &[&str]) -> Option<&'a str> {
        let place =
            names.iter().find_map(|name| self.columns.iter().position(|column| column.eq_ignore_ascii_case(name)))?;
        row.get(place)?.as_deref()
    }

    fn push(&mut self, cells: Vec<String>) {
        let cell = |cell: String| {
            let cell = cell.trim();
            (!cell.is_empty() && cell != "NULL").then(|| cell.to_owned())
        };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    fn read_table(&mut self, lines: &[Line], above: usize) {
        let places: Vec<usize> = match lines.first() {
            Some(border) if above == 1 => {
                border.text.char_indices().filter(|(_, c)| *c == '+').map(|(at, _)| at).collect()
            }
            _ => Vec::new(),
        };
        let mut next = above + 1;
        if lines.get(next).is_some_and(|line| is_border(&line.text)) {
            next += 1;
        }
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
            self.push(cut_at(&text, &places).unwrap_or_else(|| split_cells(&text, self.columns.len())));
        }
        if lines.get(next).is_some_and(|line| is_border(&line.text)) {
            next += 1;
        }
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
                let names = self.columns.iter().enumerate().skip(if has_any { place + 1 } else { 0 });
                let found = split.and_then(|(name, value)| {
                    names.clone().find(|(_, column)| *column == name).map(|(at, _)| (at, value))
                });
                match found {
                    Some((at, value)) => {
                        (place, has_any) = (at, true);
                        cells[at].clear();
                        cells[at].push_str(value);
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
        let rule = lines.get(1).map_or("", |line| line.text.as_str());
        let mut ends: Vec<usize> = rule.char_indices().filter(|(_, c)| *c == '+').map(|(at, _)| at).collect();
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

/// Cells at bars; the last one may hold further bars.
fn split_cells(text: &str, columns: usize) -> Vec<String> {
    let inner = text.strip_prefix('|').unwrap_or(text);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.splitn(columns.max(1), '|').map(|cell| cell.trim().to_owned()).collect()
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

    fn set(text: &str) -> ResultSet {
        read(&paste::lines(text.as_bytes(), |_| false)).unwrap()
    }

    fn row(set: &ResultSet, at: usize) -> Vec<&str> {
        set.rows[at].iter().map(|cell| cell.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn a_table_with_bars_and_line_breaks_in_a_cell() {
        let found = set(
            "+----+---------+------+\n| Id | Info    | Prog |\n+----+---------+------+\n| 1  | a | b   | 0.1  |\n\
             | 2  | SELECT\n  1 | NULL |\n| 3  | cut off her\n+----+---------+------+\n2 rows in set (0.00 sec)\nnext\n",
        );
        assert_eq!(found.columns, ["Id", "Info", "Prog"]);
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
}
