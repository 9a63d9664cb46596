//! What a database has to do for the generator, whichever it is.

use crate::error::GenerateError;
use crate::row::Row;

/// A table or a collection, on a connection of its own.
pub(crate) trait Store {
    /// Makes it, if it is not there.
    fn create(&mut self) -> Result<(), GenerateError>;

    /// The largest key as text; none of an empty table.
    fn last_key(&mut self) -> Result<Option<String>, GenerateError>;

    /// Rows whose keys are below this one; without it, all.
    fn count(&mut self, below: Option<u64>) -> Result<u64, GenerateError>;

    /// The keys from one to another, in any order.
    fn keys(&mut self, from: u64, to: u64) -> Result<Vec<u64>, GenerateError>;

    /// Whether it has exactly this row.
    fn has(&mut self, row: &Row) -> Result<bool, GenerateError>;

    /// Inserts rows.
    fn insert(&mut self, rows: &[Row]) -> Result<(), GenerateError>;
}
