//! MongoDB's documents: BSON read and written, the shape of an operation without its values, and what
//! `serverStatus`, `currentOp` and the sizes of collections mean as rows of a recording. Both readers
//! of MongoDB share it: the live source, and the import of what its shells print.
//!
//! No I/O and no protocol. Whatever the bytes, depth and number of values are bounded, and a length is
//! held against the bytes that are there before it is used.

#![forbid(unsafe_code)]

mod bson;
mod collections;
mod decimal;
mod index_builds;
mod log;
mod operations;
mod printed;
mod settings;
mod shape;
mod slow;
mod status;
mod value;
mod versions;
mod writer;

pub use bson::{BsonError, DOCUMENT_BYTES_MAX, Document, Element, Elements};
pub use collections::{OWN_DATABASES, collection, index_uses, replica_set, usage};
pub use decimal::{decimal, decimal_text};
pub use log::{LogLine, Logged, Message, is_log_json, is_log_text, logged};
pub use operations::{OWN_NAME, Operations, comment_trace_id, operations};
pub use printed::{Printed, printed, printed_head};
pub use settings::{options, parameters};
pub use shape::{command_shape, namespace, shape};
pub use slow::SlowOperation;
pub use status::{Status, status};
pub use value::Value;
pub use versions::{NEWEST, OLDEST, Place, SECTIONS, Section, Version, missing_sections};
pub use writer::Writer;

/// A figure: the name of its metric, its labels, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The metric.
    pub metric: String,
    /// Its labels.
    pub labels: holdup_recording::Labels,
    /// The value.
    pub value: f64,
}

impl Figure {
    fn new(metric: impl holdup_recording::metrics::MetricName, labels: holdup_recording::Labels, value: f64) -> Self {
        Self { metric: metric.name().to_owned(), labels, value }
    }
}
