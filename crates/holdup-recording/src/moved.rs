//! Rows of a recording that join another: out of its tables, moved in time because another machine's
//! clock may differ, and into the tables of a recording that has ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::tables::{Batch, Tables};
use crate::writer::{RecordError, write_table};

/// The tables, in the order of [`Tables`].
macro_rules! each_table {
    ($macro:ident) => {
        $macro!(
            requests, samples, threads, sessions, statements, stages, spans, exchanges, executions, plans, settings,
            events
        )
    };
}

impl Tables {
    /// Their rows.
    pub fn into_batch(self) -> Batch {
        macro_rules! rows {
            ($($table:ident),*) => { Batch { $($table: self.$table.rows),* } };
        }
        each_table!(rows)
    }

    /// Moves every time stamp by `by_ns` nanoseconds.
    pub(crate) fn move_times(&mut self, by_ns: i64) {
        macro_rules! through {
            ($($table:ident),*) => {
                let mut rows = Batch { $($table: std::mem::take(&mut self.$table.rows)),* };
                rows.move_times(by_ns);
                $(self.$table.rows = rows.$table;)*
            };
        }
        each_table!(through);
        if let Some(condensed) = &mut self.condensed {
            Arc::make_mut(condensed).move_times(by_ns);
        }
    }
}

impl Batch {
    /// Writes each table that has rows, in place of the one in `dir`: a recording that has ended.
    /// Returns the number of rows of each.
    ///
    /// # Errors
    /// Those of the file system. Each table is replaced whole or not at all.
    pub fn replace_tables(self, dir: &Path) -> Result<BTreeMap<String, u64>, RecordError> {
        let mut counts = BTreeMap::new();
        macro_rules! write {
            ($($table:ident),*) => {
                $(if !self.$table.is_empty() {
                    counts.insert(stringify!($table).to_owned(), write_table(dir, [self.$table])?);
                })*
            };
        }
        each_table!(write);
        Ok(counts)
    }

    /// Moves every time stamp by `by_ns` nanoseconds.
    pub fn move_times(&mut self, by_ns: i64) {
        let moved = |at: &mut i64| *at = at.saturating_add(by_ns);
        let each = |at: &mut Option<i64>| {
            if let Some(at) = at {
                *at = at.saturating_add(by_ns);
            }
        };
        for row in &mut self.requests {
            [&mut row.intended_at, &mut row.done_at].into_iter().for_each(moved);
            [&mut row.ready_at, &mut row.sent_at, &mut row.first_byte_at].into_iter().for_each(each);
        }
        for row in &mut self.exchanges {
            [&mut row.request_at, &mut row.request_end_at, &mut row.done_at].into_iter().for_each(moved);
            each(&mut row.first_byte_at);
        }
        for row in &mut self.executions {
            [&mut row.intended_at, &mut row.done_at].into_iter().for_each(moved);
            each(&mut row.sent_at);
        }
        self.spans.iter_mut().for_each(|row| moved(&mut row.started_at));
        let Self { samples, threads, sessions, statements, stages, plans, settings, events, .. } = self;
        let of = samples.iter_mut().map(|row| &mut row.observed_at);
        let of = of.chain(threads.iter_mut().map(|row| &mut row.observed_at));
        let of = of.chain(sessions.iter_mut().map(|row| &mut row.observed_at));
        let of = of.chain(statements.iter_mut().map(|row| &mut row.observed_at));
        let of = of.chain(stages.iter_mut().map(|row| &mut row.observed_at));
        let of = of.chain(plans.iter_mut().map(|row| &mut row.observed_at));
        let of = of.chain(settings.iter_mut().map(|row| &mut row.observed_at));
        of.chain(events.iter_mut().map(|row| &mut row.observed_at)).for_each(moved);
    }
}

#[cfg(test)]
mod tests {
    use crate::rows::{
        Event, Exchange, Execution, Plan, Request, Sample, Session, Setting, Span, Stage, Statement, Thread,
    };
    use crate::tables::Batch;

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
