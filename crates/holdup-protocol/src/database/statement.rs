//! A statement of the caller.

use std::fmt;

/// Most bytes of a statement, with its parameters: one packet of MySQL, minus its framing.
pub const MAX_STATEMENT_BYTES: usize = (1 << 24) - (1 << 16);

/// One statement, with `?` (MySQL) or `$1` (PostgreSQL) in the places of its parameters;
/// [`crate::database::numbered`] makes the latter from the former.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// Whether the server keeps it prepared for the next time. If not, one with parameters is
    /// prepared for a single use, which costs another round trip with MySQL and none with
    /// PostgreSQL.
    pub is_prepared: bool,
    /// Values as text, `None` for NULL.
    ///
    /// Both servers convert them to the type that their place needs. PostgreSQL takes the type from
    /// the place in the statement. MySQL gets strings: compared with an integer column, such a
    /// constant is converted to the column's type once, when the statement is planned, so that the
    /// index is used (the other way round, a string column and a number, it would not be). `LIMIT
    /// ?` accepts them, too. In arithmetic (`? + 1`) they count as floating point.
    pub parameters: Vec<Option<Vec<u8>>>,
}

/// Shows neither text nor parameters: both may contain secrets.
impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("text_bytes", &self.text.len())
            .field("is_prepared", &self.is_prepared)
            .field("parameters", &self.parameters.len())
            .finish_non_exhaustive()
    }
}
