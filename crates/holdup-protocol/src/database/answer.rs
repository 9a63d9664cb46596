//! The server's answer so far: counts, the columns of a kept row, the first failure.

use crate::database::event::{Error, Event, shortened};
use crate::database::inbox::Events;
use crate::database::rows::{Rows, RowsHash};

/// Most bytes of a row, and of the names of its columns, that are kept.
pub(crate) const MAX_KEPT_BYTES: usize = 1 << 20;

/// A column of a kept row.
pub(crate) struct Column {
    /// MySQL's type, flags and decimals; nothing for PostgreSQL, which sends text.
    pub(crate) kind: u8,
    pub(crate) is_unsigned: bool,
    pub(crate) decimals: u8,
}

/// Why a statement failed.
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: String, message: &[u8]) -> Self {
        Self { code, message: shortened(message) }
    }

    pub(crate) fn refused(self) -> Error {
        Error::LoginRefused { code: self.code, message: self.message }
    }

    pub(crate) fn closed(self) -> Error {
        Error::ClosedByServer { code: self.code, message: self.message }
    }
}

/// The answer to the statements executed last.
#[derive(Default)]
pub(crate) struct StatementAnswer {
    keeps_row: bool,
    /// Keep every row, not only the first.
    pub(crate) keeps_every_row: bool,
    /// Whether rows are hashed.
    pub(crate) hashed: Rows,
    hash: RowsHash,
    /// The present statement has no row yet.
    wants_row: bool,
    pub(crate) rows: u64,
    pub(crate) affected: u64,
    pub(crate) bytes: u64,
    pub(crate) warnings: u64,
    names: Vec<String>,
    name_bytes: usize,
    pub(crate) columns: Vec<Column>,
    pub(crate) failure: Option<Failure>,
}

impl StatementAnswer {
    /// Starts an empty answer.
    pub(crate) fn begin(&mut self, keeps_row: bool) {
        self.columns_begin();
        *self = Self {
            keeps_row,
            keeps_every_row: self.keeps_every_row,
            hashed: self.hashed,
            wants_row: keeps_row,
            names: std::mem::take(&mut self.names),
            columns: std::mem::take(&mut self.columns),
            ..Self::default()
        };
    }

    /// The next statement may have a row, too.
    pub(crate) fn next_statement(&mut self) {
        self.wants_row = self.keeps_row;
    }

    /// Whether the bytes of the next row are needed.
    pub(crate) fn looks_at_rows(&self) -> bool {
        self.wants_row || self.hashed != Rows::Passed
    }

    /// Whether every row is needed, however large.
    pub(crate) fn wants_every_row(&self) -> bool {
        self.wants_row && self.keeps_every_row
    }

    /// Counts a row of `length` bytes, of which `bytes` are available.
    pub(crate) fn count_row(&mut self, bytes: &[u8], length: usize) {
        self.rows += 1;
        self.hash.row(self.hashed, bytes, length);
    }

    /// Whether the next row would be kept.
    pub(crate) fn wants_row(&self) -> bool {
        self.wants_row
    }

    /// Columns of another result follow.
    pub(crate) fn columns_begin(&mut self) {
        self.names.clear();
        self.columns.clear();
        self.name_bytes = 0;
    }

    /// A column of the row that may be kept; if there are too many or they are too long, it is not.
    pub(crate) fn column(&mut self, name: &[u8], column: Column) {
        self.name_bytes += name.len() + size_of::<String>();
        if self.name_bytes > MAX_KEPT_BYTES {
            self.wants_row = false;
            self.columns_begin();
            return;
        }
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.columns.push(column);
    }

    /// Passes on a row.
    ///
    /// # Errors
    /// If the number of values differs from that of the columns.
    pub(crate) fn row(
        &mut self,
        statement: usize,
        values: &[Option<&[u8]>],
        events: &mut Events<'_>,
    ) -> Result<(), Error> {
        self.no_row();
        if values.len() != self.names.len() {
            return Err(Error::Protocol("a row has more or fewer values than there are columns"));
        }
        events(Event::Row { statement, columns: &self.names, values });
        Ok(())
    }

    /// Skips this row; the next is kept only if all are.
    pub(crate) fn no_row(&mut self) {
        self.wants_row &= self.keeps_every_row;
    }

    /// Reports how it ended.
    pub(crate) fn end(&mut self, statement: usize, events: &mut Events<'_>) {
        match self.failure.take() {
            None => events(Event::Done {
                rows: self.rows,
                affected: self.affected,
                bytes: self.bytes,
                warnings: self.warnings,
                hash: self.hash.value(),
            }),
            Some(Failure { code, message }) => {
                events(Event::Failed { statement, code: &code, message: &message });
            }
        }
    }
}
