//! Advises on the statements that take most of a database's time: which index, or a replica, would
//! take that time away. Statements are read from their text without values; the caller asks the
//! server which tables and indexes exist. Pure: no I/O.
//!
//! The flow: [`touches`] reads a statement, [`index`] proposes indexes, [`replica`] says which
//! statements a replica could run and how often their tables are written, [`advice`] combines both,
//! heaviest first.

pub mod index;
pub mod replica;
pub mod report;
pub mod touches;

pub use holdup_sql::Dialect;
pub use holdup_sql::catalog::{Index, Table};
pub use index::Candidate;
pub use report::{Advice, Report, StatementCost, advise};
pub use touches::Touches;
