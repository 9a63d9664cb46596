//! Fills a table or a collection with rows that a schema describes. Row `n` is a pure function of the schema,
//! the seed and `n`, so that a run that was killed goes on where it stopped: the server itself says which rows
//! it has, and no file of progress can disagree with it.
//!
//! It writes only where nothing is, or where the rows are those of the same schema and seed, unless told
//! otherwise. Memory is bounded by the batches in flight. It measures nothing but its own progress.

#![forbid(unsafe_code)]

mod batches;
mod client;
mod error;
mod field;
mod mongodb;
mod open;
mod row;
mod run;
mod schema;
mod sql;
mod store;
mod text;
mod words;
mod zipf;

pub use error::GenerateError;
pub use run::{CONNECTIONS_MAX, Done, Generator, Options};
pub use schema::Schema;
