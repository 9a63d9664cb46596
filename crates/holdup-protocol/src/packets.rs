//! Packets -> exchanges: what a database was asked on each connection, and when it answered, as the wire says. Capture
//! files (pcap, pcapng) and live packets alike; Ethernet, IP and TCP; the protocols of MySQL, MariaDB and PostgreSQL.
//!
//! Pure: no I/O and no clock, bytes and times in, rows out. Nothing here can fail on what a packet holds: what is not
//! understood is counted and left. Memory is bounded, for a connection and in all. No literal of a statement, no name of a
//! user and nothing of a result comes out (but with [`Options::in_full`], for who hides them himself). What it deliberately doesn't do: decrypt or decompress (such connections are
//! timed by turns), and judge.

mod capture;
mod connection;
mod detail;
pub mod file;
mod framing;
mod mysql;
mod opaque;
pub mod packet;
mod postgres;
mod speech;
mod statement;
mod stream;
mod turn;

pub use capture::{Capture, Options, RoundTrip, Totals, Vantage};
pub use detail::Detail;
pub use speech::Protocol;
pub use statement::OWN;
