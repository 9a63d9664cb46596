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

            /// Moves every time stamp by `by_ns` nanoseconds.
            pub fn move_times(&mut self, by_ns: i64) {
                $(self.$field.iter_mut().for_each(|row| row.move_times(by_ns));)*
            }

            /// Writes each table that has rows, in place of the one in `dir`: a recording that has ended.
            /// Returns the number of rows of each.
            ///
            /// # Errors
            /// Those of the file system. Each table is replaced whole or not at all.
            pub fn replace_tables(self, dir: &Path) -> Result<BTreeMap<String, u64>, SegmentError> {
                let mut counts = BTreeMap::new();
                $(if !self.$field.is_empty() {
                    counts.insert(stringify!($field).to_owned(), segment::write_table(dir, [self.$field])?);
                })*
                Ok(counts)
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

            /// Their rows.
            pub fn into_batch(self) -> Batch {
                Batch { $($field: self.$field.rows),* }
            }

            /// Moves every time stamp by `by_ns` nanoseconds.
            pub(crate) fn move_times(&mut self, by_ns: i64) {
                $(self.$field.rows.iter_mut().for_each(|row| row.move_times(by_ns));)*
                self.condensed.iter_mut().for_each(|condensed| Arc::make_mut(condensed).move_times(by_ns));
            }
        }

        /// Merges the segments of every table: small runs of them, or all if `finish`.
        pub(crate) fn merge_all(dir: &Path, finish: bool) -> Result<BTreeMap<String, u64>, SegmentError> {
            let mut rows = BTreeMap::new();
            let all = if finish { segment::all_segments(dir) } else { segment::settled_segments(dir) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_moves_and_no_duration() {
        let mut batch = Batch {
            requests: vec![Request { intended_at: 1, sent_at: Some(2), done_at: 3, ..Request::default() }],
            samples: vec![Sample { observed_at: 4, window_ns: 5, ..Sample::default() }],
            spans: vec![Span { started_at: 6, duration_ns: 7, ..Span::default() }],
            events: vec![Event { observed_at: i64::MAX, ..Event::default() }],
            threads: vec![Thread::default()],
            sessions: vec![Session::default()],
            statements: vec![Statement::default()],
            stages: vec![Stage::default()],
            plans: vec![Plan::default()],
            settings: vec![Setting::default()],
            exchanges: vec![Exchange { first_byte_at: Some(8), ..Exchange::default() }],
            executions: vec![Execution { sent_at: Some(9), ..Execution::default() }],
        };
        batch.move_times(10);
        let observed = [
            batch.threads[0].observed_at,
            batch.sessions[0].observed_at,
            batch.statements[0].observed_at,
            batch.stages[0].observed_at,
            batch.plans[0].observed_at,
            batch.settings[0].observed_at,
        ];
        assert_eq!(observed, [10; 6]);
        let exchange = &batch.exchanges[0];
        let answered = (exchange.request_at, exchange.request_end_at, exchange.first_byte_at, exchange.done_at);
        assert_eq!(answered, (10, 10, Some(18), 10));
        let execution = &batch.executions[0];
        assert_eq!((execution.intended_at, execution.sent_at, execution.done_at), (10, Some(19), 10));
        let request = &batch.requests[0];
        assert_eq!(
            (request.intended_at, request.sent_at, request.first_byte_at, request.done_at),
            (11, Some(12), None, 13)
        );
        assert_eq!((batch.samples[0].observed_at, batch.samples[0].window_ns), (14, 5));
        assert_eq!((batch.spans[0].started_at, batch.spans[0].duration_ns), (16, 7));
        assert_eq!(batch.events[0].observed_at, i64::MAX);
    }
}
