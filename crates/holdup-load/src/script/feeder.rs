//! Rows of data that sessions draw from: accounts, products, search terms. A feeder is read
//! completely before the load begins, so that a mistake on line 800,000 is found then, and the load
//! never waits for a disk. Which row is drawn is a function of the draw's number alone (see
//! [`Drawer`]), so that processes that share a load need not communicate. It opens no files.

mod csv;
mod draw;
mod error;
mod jsonl;
mod table;

pub use draw::{AtEnd, Draw, Drawer, Order};
pub use error::{Fault, FeederError};
pub use table::Row;
use table::Table;

/// Most columns of a feeder: with more, the file is probably in another format.
pub const MAX_COLUMNS: usize = 1_024;

/// See the module. It takes the bytes of its cells plus 4 for each; while it is read, the file's
/// bytes too.
#[derive(Clone)]
pub struct Feeder {
    columns: Vec<String>,
    table: Table,
}

impl Feeder {
    /// Checks that there are rows, and that the columns have valid names.
    fn new(columns: Vec<String>, mut table: Table) -> Result<Self, Fault> {
        if columns.is_empty() || table.cells() == 0 {
            return Err(Fault::NoRows);
        }
        table.fit();
        Ok(Self { columns, table })
    }

    /// Names of its columns, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of rows: at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.table.cells() / self.columns.len()
    }

    /// Row of that index, from 0, if it exists.
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        self.table.row(index, self.columns.len())
    }

    /// Bytes of memory that its rows take.
    pub fn memory_bytes(&self) -> usize {
        self.table.text.capacity() + self.table.ends.capacity() * size_of::<u32>()
    }
}

/// Checks the names of columns: each must be unique and usable in a template.
fn check_columns(columns: &[String]) -> Result<(), Fault> {
    if columns.len() > MAX_COLUMNS {
        return Err(Fault::TooManyColumns);
    }
    for (index, column) in columns.iter().enumerate() {
        if column.is_empty() {
            return Err(Fault::NoName(index + 1));
        }
        if column.chars().any(char::is_control) {
            return Err(Fault::OddName(column.clone()));
        }
        if columns[..index].contains(column) {
            return Err(Fault::Twice(column.clone()));
        }
    }
    Ok(())
}

/// The file's text, without a byte order mark at its start.
fn text<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str, FeederError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = error.valid_up_to();
        let line = 1 + bytes[..good].iter().filter(|byte| **byte == b'\n').count() as u64;
        FeederError { file: file.to_owned(), line, fault: Fault::NotUtf8(good) }
    })?;
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text))
}
