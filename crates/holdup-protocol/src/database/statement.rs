//! A statement as the caller gives it.

use std::fmt;

/// Most bytes of a statement, its parameters included: one packet of MySQL, less what frames it.
pub const MAX_STATEMENT_BYTES: usize = (1 << 24) - (1 << 16);

/// One statement, with `?` (MySQL) or `$1` (PostgreSQL) where its parameters go; [`crate::database::numbered`] makes the latter
/// of the former.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// Whether the server is to keep it prepared for the next time. One with parameters that is not is prepared for
    /// this once, which costs MySQL a round trip more, and PostgreSQL none.
    pub is_prepared: bool,
    /// Values as text, `None` for NULL.
    ///
    /// Both servers make of them what the place needs. PostgreSQL gives each the type its place in the statement has.
    /// MySQL gets strings: compared with an integer column such a constant is converted to the column's type
    /// once, when the statement is planned, so that the index is used (the other way round, a string column and a
    /// number, it would not be). `LIMIT ?` takes them too. In arithmetic (`? + 1`) they count as floating point.
    pub parameters: Vec<Option<Vec<u8>>>,
}

/// Neither text nor parameters: both may hold what is secret.
impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("text_bytes", &self.text.len())
            .field("is_prepared", &self.is_prepared)
            .field("parameters", &self.parameters.len())
            .finish_non_exhaustive()
    }
}
