//! MySQL, MariaDB and PostgreSQL as a client speaks them, without I/O: bytes in, events out. It knows no sockets, no
//! clocks, no threads and no TLS: it says when the caller is to begin TLS, and what the caller times is the caller's.
//!
//! It is there to put statements on a database as load: rows are counted, and of each statement at most the first is
//! kept. Whatever a server sends, memory is bounded: by one message of at most 1 MiB that is of use, by the kept row,
//! and by the statements that the caller gave. Passwords and parameters are in no `Debug` and no error; what the server
//! says of an error is handed on as it is, and may quote them.
//!
//! Deliberately absent: pools and transactions that span calls (the caller's), `COPY` and `LOCAL INFILE` (refused),
//! compression, cursors, replication, and several statements in one text of MySQL.

mod address;
mod answer;
mod cursor;
mod event;
mod inbox;
mod job;
mod login;
mod mysql;
mod outbox;
mod placeholders;
mod postgres;
mod prepared;
mod rows;
mod session;
mod statement;
#[cfg(test)]
mod tests;

pub use address::{Address, AddressError, Dialect};
pub use event::{Error, Event, Refused};
pub use login::{Login, Secret, TlsWish};
pub use placeholders::numbered;
pub use prepared::MAX_PREPARED;
pub use rows::Rows;
pub use session::Session;
pub use statement::{MAX_STATEMENT_BYTES, Statement};
