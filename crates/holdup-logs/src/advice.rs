//! Statements that take most of a database's time -> what would take it away: an index, or a replica. What a statement touches is
//! read from its text without values; what tables and indexes there are is told by whoever asked the server. Pure: no I/O.
//!
//! The flow: [`touches`] reads a statement, [`index`] proposes, [`replica`] tells what may be read elsewhere and what of it is
//! written how often, [`advice`] puts both together, heaviest first.

pub mod index;
pub mod replica;
pub mod report;
pub mod touches;

pub use holdup_sql::catalog::{Index, Table};
pub use index::Candidate;
pub use report::{Advice, Heavy, Report, advise};
pub use touches::{Dialect, Touches};
