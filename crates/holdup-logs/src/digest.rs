//! Databases' logs as statistics by statement: what was executed, how often and how long. Files are
//! streams: none is held in memory, and memory grows only with the number of different statements.
//!
//! The flow: [`input`] unpacks, [`block`] cuts at a certain start of a record, a reader of the
//! [`format`] makes [`event`]s, a [`tally`] sums them up, a [`report`] ranks. No value of a
//! statement is kept, in any form.

pub mod attribute;
pub mod block;
mod boundary;
pub mod counts;
pub mod course;
pub mod document;
pub mod duration;
pub mod event;
pub mod follow;
pub mod format;
pub mod general_log;
pub mod histogram;
pub mod history;
pub mod input;
pub mod listener;
pub mod loose;
pub mod measure;
pub mod mongod;
pub mod plan;
pub mod postgres;
pub mod problem;
pub mod pt;
pub mod report;
pub mod resume;
pub mod room;
pub mod run;
pub mod select;
pub mod server;
pub mod shape;
pub mod slow_log;
pub mod summary;
pub mod tally;
pub mod text;
pub mod time;
pub mod wire;

pub use holdup_sql::Dialect;
