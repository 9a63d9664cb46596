//! The vocabulary and the file format: what holdup writes down about a service, and how.
//!
//! A recording is a directory: `manifest.json`, one Parquet table per kind of fact, and latency
//! histograms (`latency.hlog`). Raw facts are stored and nothing derived, so that a better formula
//! re-diagnoses last month's incident. This crate knows the tables and the files; it does not know
//! where facts come from or what they mean. It has no async and imports nothing of ours.
//!
//! - [`rows`]: the tables, a struct a row. All times are integer nanoseconds since the Unix epoch.
//! - [`manifest`]: what was recorded, when, on what, and what could not be seen.
//! - [`condensed`]: samples and statements without what they repeat, as they are judged.
//! - [`metrics`]: every metric that samples are named by.
//! - [`plan`]: the tree in the table `plans`.
//! - [`files`], [`secret`]: how files are opened and made, and what of a text is kept in none.
//! - [`words`], [`quota`]: numbers with their units as text, and the CPU quota of a cgroup.
//! - [`objective`]: what was asked of the service, read, and held against seconds of load.
//! - [`Recorder`]: writes a recording while it happens; survives `kill -9` but for the last seconds.
//! - [`Recording`]: opens a finished, a running or a broken one.

pub mod clock;
pub mod condensed;
pub mod duration;
pub mod files;
pub mod hlog;
pub mod labels;
pub mod manifest;
pub mod metrics;
pub mod objective;
pub mod plan;
pub mod priority;
pub mod quota;
pub mod reader;
pub mod rows;
pub mod secret;
mod segment;
mod table;
mod text;
mod threshold;
pub mod words;
pub mod writer;

pub use labels::Labels;
pub use manifest::{Coverage, CoverageState, Manifest, Phase, RunState};
pub use reader::{OpenError, Recording, Table};
pub use rows::Batch;
pub use table::{Column, ColumnType, Row};
pub use text::Text;
pub use writer::{Limits, RecordError, Recorder};
