//! Errors in a feeder's data.

/// A feeder cannot be used: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {fault}", place(.file, *.line))]
pub struct FeederError {
    /// The file's name, or the scenario's name of the list.
    pub file: String,
    /// The line, from 1, on which the row begins; 0 if it is about the whole file.
    pub line: u64,
    /// What is wrong.
    pub fault: Fault,
}

fn place(file: &str, line: u64) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

/// A fault in a feeder's data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is empty, without even a header line.
    #[error("is empty; it needs a first line with the columns' names and at least one row")]
    Empty,
    /// There is only a header, or only blank lines.
    #[error("has no rows")]
    NoRows,
    /// A row with more or fewer cells than the header.
    #[error("the row has {cells} cells, the header names {columns} columns")]
    Ragged {
        /// Cells of the row.
        cells: usize,
        /// Columns of the header.
        columns: usize,
    },
    /// A column without a name.
    #[error("column {0} has no name")]
    NoName(
        /// The column, from 1.
        usize,
    ),
    /// Two columns, or two keys of one object, have the same name.
    #[error("'{0}' is there twice")]
    Twice(String),
    /// A name that templates cannot use.
    #[error("the column's name {0:?} has control characters in it; is it a text file in UTF-8?")]
    OddName(String),
    /// The cells seem to be separated by something else.
    #[error("the cells seem to be separated by {0:?}; use commas")]
    Separator(char),
    /// More columns than [`MAX_COLUMNS`](super::MAX_COLUMNS).
    #[error("has more than {} columns", super::MAX_COLUMNS)]
    TooManyColumns,
    /// A quotation mark that is not closed.
    #[error("a cell of this row opens with a quotation mark and none closes it")]
    OpenQuote,
    /// Invalid UTF-8.
    #[error("is not UTF-8 from byte {0} of the file on")]
    NotUtf8(
        /// Number of valid bytes before it.
        usize,
    ),
    /// A line that is not JSON.
    #[error("is not JSON: {0}")]
    NotJson(String),
    /// A line that is JSON, and not an object.
    #[error("is not an object; write one `{{\"column\": \"value\", ...}}` per line")]
    NotObject,
    /// Another error of the format's reader; not known to happen.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// More than 4 GiB of text.
    #[error("has more than 4 GiB of text: split it, or draw from fewer rows")]
    TooLarge,
}
