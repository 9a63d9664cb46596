//! Why rows could not be inserted, and what to do.

use thiserror::Error;

/// Why a run ended without all rows.
#[derive(Clone, Debug, Error)]
pub enum GenerateError {
    /// The schema and the server do not fit.
    #[error("{0}")]
    Unfit(String),
    /// The server cannot be reached, or refuses the account.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke.
    #[error("the connection to the server broke: {0}; the same command goes on from the rows that are there")]
    Lost(String),
    /// The server refused something.
    #[error("the server refused {what} ({code}): {message}")]
    Refused {
        /// What it refused.
        what: &'static str,
        /// Its code.
        code: String,
        /// Its words.
        message: String,
    },
    /// Rows of another origin.
    #[error(
        "{table} has rows that this schema and seed did not make ({why}); empty it, choose another name, or add --add \
         to insert behind them"
    )]
    Foreign {
        /// The table.
        table: String,
        /// What is not as it should be.
        why: String,
    },
    /// Rows of this run are missing, in a place that no interrupted run leaves.
    #[error("{table} lacks {missing} of its first {of} rows: another client deleted them; empty it and start again")]
    Missing {
        /// The table.
        table: String,
        /// How many.
        missing: u64,
        /// Of how many.
        of: u64,
    },
    /// The count at the end is wrong.
    #[error("{table} has {found} rows instead of {expected}: another client writes to it")]
    Count {
        /// The table.
        table: String,
        /// Rows there.
        found: u64,
        /// Rows that should be there.
        expected: u64,
    },
}

/// Codes for a key that is there already: MySQL's, PostgreSQL's and MongoDB's.
const DUPLICATE_KEY: [&str; 3] = ["1062", "23505", "11000"];

impl GenerateError {
    /// Whether a row with the same key is there.
    pub(crate) fn is_duplicate_key(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if DUPLICATE_KEY.contains(&code.as_str()))
    }
}
