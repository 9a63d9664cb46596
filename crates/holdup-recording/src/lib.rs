//! The vocabulary and the file format of recordings.
//!
//! A recording is a directory: `manifest.json`, one Parquet table per kind of fact, and latency
//! histograms (`latency.hlog`). It stores raw facts and nothing derived, so that a better formula
//! can judge last month's incident again. This crate knows the tables and the files; it does not
//! know where facts come from or what they mean. It has no async and imports none of our crates.
//!
//! - [`rows`]: the tables, a struct per table. All times are integer nanoseconds since the Unix
//!   epoch. [`tables`] holds all of them together.
//! - [`manifest`]: what was recorded, when, on which machine, and what could not be read.
//! - [`condensed`]: samples and statements without repetition, for judging.
//! - [`excerpt`]: the course and one stretch of a recording that does not fit in memory.
//! - [`metrics`]: every metric that samples may have.
//! - [`events`]: kinds of events that judges read.
//! - [`catalog`]: objects of databases' catalogs as settings, and what changed between two readings.
//! - [`exposition`]: the text format of Prometheus, for those who scrape it and those who paste it.
//! - [`layouts`]: which place of a kernel file or a status page is which metric.
//! - [`plan`]: the tree in the table `plans`.
//! - [`files`], [`secret`]: opening and creating files, and finding secrets in texts.
//! - [`words`], [`quota`]: numbers with units as text, and the CPU quota of a cgroup.
//! - [`fleet`]: several recordings of one time, made on different hosts, as one.
//! - [`objective`]: parses objectives and evaluates them over seconds of load.
//! - [`transfer`]: whole tables on their way to another store and back. [`follow`]: the rows of a
//!   running recording as they reach the disk.
//! - [`watchers`]: a recording as others would have made it, who watch less.
//! - [`Recorder`]: writes a recording while it happens; survives `kill -9` except for the last
//!   seconds.
//! - [`Recording`]: opens a finished, a running or a broken recording.

mod allocator;
pub mod catalog;
mod cell;
pub mod clock;
pub mod condensed;
pub mod duration;
pub mod events;
pub mod exposition;
pub mod files;
pub mod fleet;
pub mod folder;
pub mod follow;
pub mod hlog;
pub mod labels;
pub mod layouts;
pub mod manifest;
pub mod metrics;
pub mod nearest;
pub mod objective;
pub mod pipeline;
pub mod plan;
pub mod priority;
pub mod quota;
pub mod reader;
pub mod rows;
pub mod secret;
mod segment;
mod stored;
mod table;
pub mod tables;
mod text;
mod threshold;
pub mod transfer;
pub mod watchers;
pub mod words;
pub mod writer;

pub use cell::Cell;
pub use labels::Labels;
pub use manifest::{Coverage, CoverageState, Manifest, Phase, RunState};
pub use reader::excerpt;
pub use reader::{OpenError, Recording};
pub use segment::SegmentError;
pub use stored::Table;
pub use table::{Column, ColumnType, Row};
pub use tables::Batch;
pub use text::Text;
pub use writer::{Limits, RecordError, Recorder};
