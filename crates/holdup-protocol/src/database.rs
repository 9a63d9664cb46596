//! The client side of MySQL, MariaDB, PostgreSQL and MongoDB, and of what is read of Kafka, without
//! I/O: bytes in, events out. It knows no sockets, clocks, threads or TLS: it tells the caller when to start TLS, and the caller does
//! the timing.
//!
//! It puts statements, or MongoDB's commands, on a database as load: rows are counted, and at most the first row of each
//! statement is kept. It also reads the server's own tables for the collectors, which take every
//! row and bound what they keep. Whatever a server sends, memory is bounded: by one relevant message
//! of at most 1 MiB (for the collectors one packet of MySQL, 16 MiB), by the kept row, and by the
//! caller's statements. Passwords and parameters appear in no `Debug` and no error. A server's error
//! message is passed on unchanged, and may quote them.
//!
//! Deliberately absent: pools and transactions that span calls (left to the caller), `COPY` and
//! `LOCAL INFILE` (refused), compression, cursors, replication, and several statements in one text
//! of MySQL.

mod address;
pub(crate) mod answer;
pub(crate) mod cursor;
mod event;
mod inbox;
mod job;
pub mod kafka;
mod login;
pub mod mongodb;
pub(crate) mod mysql;
mod outbox;
mod placeholders;
mod postgres;
mod prepared;
mod rows;
mod salted;
mod scram;
mod session;
mod statement;
#[cfg(test)]
mod tests;

pub use address::{Address, AddressError, Dialect, MONGODB_IGNORED_OPTIONS};
pub use event::{Error, Event, ExecuteError};
pub use login::{Login, Secret, TlsMode};
pub use placeholders::numbered;
pub use prepared::MAX_PREPARED;
pub use rows::Rows;
pub use session::Session;
pub use statement::{MAX_STATEMENT_BYTES, Statement};
