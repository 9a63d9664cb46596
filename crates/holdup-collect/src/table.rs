//! Rows of an answer: by position, or by the names of their columns where versions differ. A column
//! that a version lacks has no value; it is not a zero.

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;

use crate::reading::Out;

/// Largest answer kept, bytes.
pub(crate) const ANSWER_BYTES: usize = 32 << 20;

/// Characters kept of a name.
const NAME_CHARACTERS_MAX: usize = 100;

/// All rows of an answer, with their column names.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Memory of the values so far, and of those left out: rows beyond [`ANSWER_BYTES`] are.
    pub(crate) bytes: usize,
}

/// One row: texts, none for NULL.
#[derive(Debug, Default)]
pub(crate) struct Row(pub(crate) Vec<Option<String>>);

impl Rows {
    /// Adds a row, unless the answer is too large.
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    pub(crate) fn add(&mut self, columns: &[String], values: &[Option<&[u8]>]) {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        let bytes = |value: &Option<&[u8]>| value.map_or(0, <[u8]>::len) + size_of::<Option<String>>();
        self.bytes += size_of::<Row>() + values.iter().map(bytes).sum::<usize>();
        if self.bytes <= ANSWER_BYTES {
            let text = |value: &Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
            self.rows.push(Row(values.iter().map(text).collect()));
        }
    }

    /// The index of a column, whose name may be written in any case.
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
    }

    /// The rows, read by the names of their columns.
    pub(crate) fn named(&self) -> impl Iterator<Item = NamedRow<'_>> {
        self.rows.iter().map(|row| NamedRow { table: self, row })
    }

    /// The same, those with the most in `column` first.
    pub(crate) fn named_by(&self, column: &str) -> Vec<NamedRow<'_>> {
        let mut rows: Vec<NamedRow<'_>> = self.named().collect();
        rows.sort_by(|a, b| b.number(column).unwrap_or(0.0).total_cmp(&a.number(column).unwrap_or(0.0)));
        rows
    }
}

/// One row, read by the names of its columns.
#[derive(Clone, Copy)]
pub(crate) struct NamedRow<'r> {
    table: &'r Rows,
    row: &'r Row,
}

impl<'r> NamedRow<'r> {
    pub(crate) fn text(self, column: &str) -> Option<&'r str> {
        self.row.text(self.table.column(column)?)
    }

    pub(crate) fn number(self, column: &str) -> Option<f64> {
        self.row.float(self.table.column(column)?)
    }

    /// A name, cut to a bounded length; empty if the column is missing.
    pub(crate) fn name(self, column: &str) -> String {
        self.text(column).unwrap_or_default().chars().take(NAME_CHARACTERS_MAX).collect()
    }

    /// Puts those of `columns` that there are, each times the factor from its unit.
    pub(crate) fn put(self, out: &mut Out, labels: &Labels, columns: &[(&str, Metric, f64)]) {
        out.put_known(labels, columns.iter().map(|(name, metric, unit)| (metric, self.number(name).map(|v| v * unit))));
    }
}

impl Row {
    pub(crate) fn text(&self, index: usize) -> Option<&str> {
        self.0.get(index)?.as_deref()
    }

    /// An integer. Unsigned counters may exceed `i64`; then its maximum is used.
    pub(crate) fn int(&self, index: usize) -> Option<i64> {
        let text = self.text(index)?;
        text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|_| i64::MAX))
    }

    pub(crate) fn float(&self, index: usize) -> Option<f64> {
        self.text(index)?.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_types_and_null_has_none() {
        let mut rows = Rows::default();
        let columns = ["Id".to_owned(), "Value".to_owned()];
        rows.add(&columns, &[Some(b"18446744073709551615"), None]);
        rows.add(&columns, &[Some(b"-7"), Some(b"inf")]);
        rows.add(&columns, &[Some(b"x\xff"), Some(b"1.5")]);
        assert_eq!((rows.column("VALUE"), rows.column("other")), (Some(1), None));
        let [first, second, third] = rows.rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((first.int(0), first.text(1), first.int(1)), (Some(i64::MAX), None, None));
        assert_eq!((second.int(0), second.float(0), second.float(1)), (Some(-7), Some(-7.0), None));
        assert_eq!((third.text(0), third.int(0), third.float(1)), (Some("x\u{fffd}"), None, Some(1.5)));
        assert_eq!(third.text(2), None);
    }

    #[test]
    fn an_answer_without_end_is_not_kept() {
        let mut rows = Rows::default();
        let mebibyte = vec![b'x'; 1 << 20];
        (0..40).for_each(|_| rows.add(&[], &[Some(&mebibyte)]));
        assert!(rows.rows.len() < 32 && rows.bytes > ANSWER_BYTES);
        // Values without bytes take memory, too.
        let mut empty = Rows::default();
        (0..ANSWER_BYTES / 1_000).for_each(|_| empty.add(&[], &[None; 100]));
        assert!(empty.rows.len() < ANSWER_BYTES / 2_000 && empty.bytes > ANSWER_BYTES);
    }
}
