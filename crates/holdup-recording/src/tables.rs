//! All tables of a recording together: the rows on their way into it, and the tables as read from
//! it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::condensed::Condensed;
use crate::rows::{
    Event, Exchange, Execution, Plan, Request, Sample, Session, Setting, Span, Stage, Statement, Thread,
};
use crate::segment::{self, SegmentError};
use crate::stored::{Source, Table};
use crate::table::{Column, Row};

/// Something to do with each table, whatever its rows are.
pub trait TableVisitor {
    /// Why it stops.
    type Error;

    /// Visits the table of rows `R`.
    ///
    /// # Errors
    /// Ends the visits.
    fn table<R: Row>(&mut self) -> Result<(), Self::Error>;
}

/// Declares [`Batch`] and [`Tables`] over one explicit, ordered list of tables.
macro_rules! tables {
    ($($field:ident: $row:ident),* $(,)?) => {
        /// Rows of any tables, on their way into a recording.
        #[derive(Clone, Debug, Default)]
        pub struct Batch {
            $(
                #[doc = concat!("Rows for `", stringify!($field), "`.")]
                pub $field: Vec<$row>,
            )*
        }

        impl Batch {
            /// Whether it holds no rows.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$field.is_empty())*
            }

            /// Moves all rows of `other` into it.
            pub fn append(&mut self, mut other: Batch) {
                $(self.$field.append(&mut other.$field);)*
            }

            /// Number of rows in all tables.
            pub fn len(&self) -> usize {
                0 $(+ self.$field.len())*
            }

            /// Their approximate memory, in bytes.
            pub(crate) fn bytes(&self) -> usize {
                0 $(+ self.$field.iter().map(Row::bytes).sum::<usize>())*
            }

            /// Writes each table as a segment. Tables that could not be written stay in the batch.
            pub(crate) fn write_segments(&mut self, dir: &Path, number: u64) -> Result<(), SegmentError> {
                let mut result = Ok(());
                $(result = segment::write_segment(dir, number, &mut self.$field).and(result);)*
                result
            }
        }

        /// All tables in memory, as read.
        #[derive(Clone, Debug, Default)]
        pub struct Tables {
            $(
                #[doc = concat!("Table `", stringify!($field), "`.")]
                pub $field: Table<$row>,
            )*
            /// The condensed samples and statements, if they were read without their rows.
            pub condensed: Option<Arc<Condensed>>,
        }

        impl Tables {
            /// Each table as `source` has it.
            pub(crate) fn from_source(source: &mut impl Source) -> Result<Self, SegmentError> {
                Ok(Self { $($field: source.table::<$row>()?,)* condensed: None })
            }
        }

        /// Merges the segments of every table: small runs of them, or all if `finish`.
        pub(crate) fn merge_all(dir: &Path, finish: bool) -> Result<BTreeMap<String, u64>, SegmentError> {
            let mut rows = BTreeMap::new();
            let all = segment::all_segments(dir);
            $(
                rows.insert(stringify!($field).to_owned(), segment::merge_table::<$row>(dir, &all, finish)?);
            )*
            Ok(rows)
        }

        /// Visits every table, in order.
        ///
        /// # Errors
        /// The first one of the visitor.
        pub fn each_table<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
            $(visitor.table::<$row>()?;)*
            Ok(())
        }

        /// Names and columns of every table, in order.
        pub fn schema() -> Vec<(&'static str, &'static [Column])> {
            vec![$(($row::TABLE, $row::COLUMNS)),*]
        }
    };
}

tables! {
    requests: Request,
    samples: Sample,
    threads: Thread,
    sessions: Session,
    statements: Statement,
    stages: Stage,
    spans: Span,
    exchanges: Exchange,
    executions: Execution,
    plans: Plan,
    settings: Setting,
    events: Event,
}

impl Tables {
    /// Condenses its rows of samples and statements.
    pub fn condense(&self) -> Condensed {
        Condensed::from_rows(&self.samples.rows, &self.statements.rows)
    }
}
