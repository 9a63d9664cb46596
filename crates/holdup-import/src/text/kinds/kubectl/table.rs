//! Tables of `kubectl`: names in capitals, cells below the beginning of their name. Cells may be
//! empty and hold single blanks.

/// The columns of a table.
pub(super) struct Table {
    names: Vec<String>,
    /// Where each begins, in characters.
    starts: Vec<usize>,
}

impl Table {
    /// The columns of a header, whose names may hold single blanks.
    pub(super) fn new(header: &str) -> Self {
        let header = spaced(header);
        let (mut names, mut starts) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(rest) = header.get(at..).filter(|rest| !rest.trim().is_empty()) {
            let begin = at + rest.len() - rest.trim_start().len();
            let name = header.get(begin..).unwrap_or_default();
            let end = name.find("  ").unwrap_or(name.len());
            names.push(name.get(..end).unwrap_or_default().trim_end().to_owned());
            starts.push(header.get(..begin).unwrap_or_default().chars().count());
            at = begin + end;
        }
        Self { names, starts }
    }

    /// Whether it has all of these columns.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.names.iter().any(|known| known == name))
    }

    /// The cells of a line; none if it is not of this table.
    pub(super) fn row(&self, line: &str) -> Option<Row<'_>> {
        let line = spaced(line);
        let chars: Vec<char> = line.trim_end().chars().collect();
        let is_aligned = self.starts.iter().skip(1).all(|at| chars.get(at - 1).is_none_or(|c| *c == ' '));
        let text = |from: usize, to: usize| {
            let part = chars.get(from.min(chars.len())..to.min(chars.len())).unwrap_or_default();
            part.iter().collect::<String>().trim().to_owned()
        };
        let ends = self.starts.iter().skip(1).copied().chain([usize::MAX]);
        let cells: Vec<String> = match is_aligned {
            true => self.starts.iter().zip(ends).map(|(from, to)| text(*from, to)).collect(),
            // Blanks were lost on the way: two of them end a cell.
            false => apart(&line, self.names.len()),
        };
        let is_row = cells.first().is_some_and(|first| !first.is_empty()) && cells.len() == self.names.len();
        is_row.then_some(Row { names: &self.names, cells })
    }
}

/// The line with blanks for tabs, to the next multiple of eight.
fn spaced(line: &str) -> String {
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
fn apart(line: &str, most: usize) -> Vec<String> {
    let mut cells = Vec::new();
    let mut rest = line.trim();
    while cells.len() + 1 < most
        && let Some((cell, after)) = rest.split_once("  ")
    {
        cells.push(cell.to_owned());
        rest = after.trim_start();
    }
    cells.push(rest.to_owned());
    cells
}

/// The cells of one line.
pub(super) struct Row<'a> {
    names: &'a [String],
    cells: Vec<String>,
}

impl Row<'_> {
    /// The cell below the first of `names` that is a column and not empty.
    pub(super) fn cell(&self, names: &[&str]) -> Option<&str> {
        let place = names.iter().find_map(|name| self.names.iter().position(|known| known == name))?;
        self.cells.get(place).map(String::as_str).filter(|cell| !cell.is_empty() && *cell != "<none>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_place_and_by_blanks() {
        let table = Table::new("LAST SEEN   TYPE      OBJECT      SUBOBJECT   MESSAGE");
        assert!(table.has(&["LAST SEEN", "MESSAGE"]) && !table.has(&["REASON"]));
        let row = table.row("2m5s        Warning   pod/a-1                 it  failed: é").unwrap();
        assert_eq!((row.cell(&["SUBOBJECT"]), row.cell(&["MESSAGE"])), (None, Some("it  failed: é")));
        let row = table.row("2m5s  Warning  pod/a-1  spec{app}  it failed").unwrap();
        assert_eq!((row.cell(&["SUBOBJECT"]), row.cell(&["MESSAGE"])), (Some("spec{app}"), Some("it failed")));
        assert!(table.row("a word of prose that is long enough").is_none());
    }
}
