//! Recordings in ClickHouse: the same tables as the Parquet files, in a database that many machines
//! can write to and many people can ask.
//!
//! A row of a table is known by recording, host and its number in the table. So a row that arrives
//! twice is one row: the server drops a block that it already has, its merges drop equal rows, and
//! readers here count a number once. This crate speaks HTTP and RowBinary; it does not judge, and
//! knows no table by name except its own two.
//!
//! - [`Address`]: `clickhouse://USER@HOST:PORT/DATABASE/RECORDING` and where the password is.
//! - [`Client`], [`Statement`]: one HTTP request and its complete answer, with parameters beside
//!   the text.
//! - [`Schema`]: the tables as DDL, from the rows of `holdup-recording`.
//! - [`Inserter`], [`push`]: rows and whole recordings into the store.
//! - [`live`]: a running recording into the store.
//! - [`pull`]: a recording back into a folder.
//! - [`catalog`]: which recordings there are, and how to remove one.

#![forbid(unsafe_code)]

mod address;
pub mod catalog;
mod client;
mod dialect;
mod error;
mod insert;
mod link;
pub mod live;
pub mod pull;
pub mod push;
mod rowbinary;
mod schema;
mod statement;
mod views;

pub use address::Address;
pub use client::Client;
pub use dialect::Dialect;
pub use error::StoreError;
pub use insert::Inserter;
pub use schema::{Schema, Sharing};
pub use statement::Statement;
pub use views::VIEWS;
