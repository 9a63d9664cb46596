//! Rows of white-space separated values below a header, by the names of the columns. A row may be
//! cut at its end; a name of a command may hold spaces.

use super::number::number;

/// The names in a header, in order.
pub(super) struct Columns<'a> {
    names: Vec<&'a str>,
    /// The column whose values may hold spaces.
    words: Option<usize>,
}

impl<'a> Columns<'a> {
    /// The columns of a header line.
    pub(super) fn new(header: &'a str) -> Self {
        Self { names: header.split_whitespace().collect(), words: None }
    }

    /// Lets values of the column with one of these names hold spaces.
    pub(super) fn with_words(mut self, aliases: &[&str]) -> Self {
        self.words = self.place(aliases);
        self
    }

    /// The place of the first of `aliases` that is a column.
    pub(super) fn place(&self, aliases: &[&str]) -> Option<usize> {
        aliases.iter().find_map(|alias| self.names.iter().position(|name| name.eq_ignore_ascii_case(alias)))
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The values of a line.
    pub(super) fn row<'t>(&self, line: &'t str) -> Values<'_, 't> {
        let mut values: Vec<&str> = line.split_whitespace().collect();
        let extra = values.len().saturating_sub(self.names.len());
        if let Some(place) = self.words.filter(|place| extra > 0 && *place < values.len()) {
            let (first, last) = (values[place], values[(place + extra).min(values.len() - 1)]);
            let from = first.as_ptr() as usize - line.as_ptr() as usize;
            let to = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
            let joined = line.get(from..to).unwrap_or(first);
            values.splice(place..=(place + extra).min(values.len() - 1), [joined]);
        }
        Values { columns: self.names.as_slice(), values }
    }
}

/// The values of one line.
pub(super) struct Values<'c, 't> {
    columns: &'c [&'c str],
    values: Vec<&'t str>,
}

impl<'t> Values<'_, 't> {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The text below the first of `aliases`.
    pub(super) fn text(&self, aliases: &[&str]) -> Option<&'t str> {
        let place =
            aliases.iter().find_map(|alias| self.columns.iter().position(|name| name.eq_ignore_ascii_case(alias)))?;
        self.values.get(place).copied()
    }

    /// The number below the first of `aliases`.
    pub(super) fn number(&self, aliases: &[&str]) -> Option<f64> {
        number(self.text(aliases)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_with_words_and_cut() {
        let columns = Columns::new("PID COMMAND WCHAN").with_words(&["COMMAND"]);
        let row = columns.row("12 tmux: server ep_poll");
        assert_eq!((row.number(&["pid"]), row.text(&["command"])), (Some(12.0), Some("tmux: server")));
        assert_eq!(row.text(&["WCHAN"]), Some("ep_poll"));
        let row = columns.row("12");
        assert_eq!((row.len(), row.text(&["COMMAND"])), (1, None));
    }
}
