//! Statements that take most of a database's time -> what would take it away: an index, or a replica. What a statement touches is
//! read from its text without values; what tables and indexes there are is told by whoever asked the server. Pure: no I/O.
//!
//! The flow: [`touches`] reads a statement, [`index`] proposes, [`replica`] tells what may be read elsewhere and what of it is
//! written how often, [`advice`] puts both together, heaviest first.

#![forbid(unsafe_code)]

pub mod advice;
pub mod index;
pub mod replica;
pub mod touches;

pub use advice::{Advice, Heavy, Report, advise};
pub use holdup_sql::catalog::{Index, Table};
pub use index::Candidate;
pub use touches::{Dialect, Touches};
