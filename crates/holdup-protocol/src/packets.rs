//! Packets -> exchanges: what was sent to a database on each connection, and when it answered, as
//! seen on the wire. It reads capture files (pcap, pcapng) and live packets; Ethernet, IP and TCP;
//! the protocols of MySQL, MariaDB, PostgreSQL and MongoDB.
//!
//! It is pure: no I/O and no clock; bytes and times in, rows out. Packet content never causes an
//! error: what is not understood is counted and skipped. Memory is bounded, per connection and in
//! total. Literals of statements, names of users and results never come out (except with
//! [`Options::in_full`], whose caller has to hide them). Deliberately absent: decryption and
//! decompression (such connections are timed by turns), and any judgement.

mod capture;
mod connection;
mod conversation;
mod detail;
pub mod file;
mod framing;
mod mongodb;
mod mysql;
mod opaque;
pub mod packet;
mod piece;
mod postgres;
mod protocol;
mod statement;
mod stream;
mod totals;
mod turn;

pub use capture::{Capture, Options, RoundTrip, Vantage};
pub use detail::Detail;
pub use protocol::Protocol;
pub use statement::OWN;
pub use totals::Totals;
