//! A run: look at what is there, fill gaps that an interrupted run left, insert the rest over several
//! connections, and count.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use holdup_load::scenario::Target;
use holdup_load::scenario::http::Trust;

use crate::batches::{BATCH_ROWS, Batches, GAPS_WITHIN_ROWS};
use crate::client::Server;
use crate::error::GenerateError;
use crate::open::open;
use crate::row::Row;
use crate::schema::Schema;
use crate::store::Store;

/// Most connections.
pub const CONNECTIONS_MAX: u32 = 32;

/// How to insert.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Connections, 1 to [`CONNECTIONS_MAX`].
    pub connections: u32,
    /// Insert behind whatever is there.
    pub adds: bool,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Rows that were there, from an earlier run.
    pub found: u64,
    /// Rows that were inserted.
    pub inserted: u64,
    /// All rows are there.
    pub is_complete: bool,
}

/// A schema and a server.
pub struct Generator<'s> {
    schema: &'s Schema,
    server: Server,
    options: Options,
    /// Rows there and inserted so far, to show progress.
    pub rows: AtomicU64,
}

impl<'s> Generator<'s> {
    /// Nothing is connected yet.
    #[must_use]
    pub fn new(schema: &'s Schema, target: Target, trust: Trust, options: Options) -> Self {
        Self { schema, server: Server { target, trust }, options, rows: AtomicU64::new(0) }
    }

    /// Inserts the rows that are missing, until all are there or `stop` is set.
    ///
    /// # Errors
    /// If the server refuses, or has other rows than those of this schema and seed. What was inserted stays.
    pub fn run(&self, stop: &AtomicBool) -> Result<Done, GenerateError> {
        let mut store = open(&self.server, self.schema)?;
        let last = store.last_key()?;
        if self.options.adds {
            return self.add(store.as_mut(), last, stop);
        }
        let mut found = 0;
        let mut from = 1;
        if let Some(last) = last {
            (found, from) = self.resume(store.as_mut(), &last)?;
        } else {
            store.create()?;
        }
        let filled = self.rows.load(Ordering::Relaxed) - found;
        let inserted = filled + self.insert(from, self.schema.rows, stop)?;
        let is_complete = found + inserted == self.schema.rows;
        if is_complete {
            let counted = store.count(None)?;
            if counted != self.schema.rows {
                let (table, expected) = (self.schema.table.clone(), self.schema.rows);
                return Err(GenerateError::Count { table, found: counted, expected });
            }
        }
        Ok(Done { found, inserted, is_complete })
    }

    /// Checks that the rows that are there are this run's, and fills its gaps. Returns how many were there,
    /// and the number of the first row that is not.
    fn resume(&self, store: &mut dyn Store, last: &str) -> Result<(u64, u64), GenerateError> {
        let table = || self.schema.table.clone();
        let foreign = |why: String| GenerateError::Foreign { table: table(), why };
        let key: Option<u64> = last.parse().ok().filter(|key| *key > 0);
        let last = key.ok_or_else(|| foreign("their keys are not numbers from 1".to_owned()))?;
        if last > self.schema.rows {
            return Err(foreign(format!("there are keys up to {last}, and {} rows were asked for", self.schema.rows)));
        }
        let begin = (last + 1).saturating_sub(GAPS_WITHIN_ROWS).max(1);
        // Beyond the gaps of an interrupted run the first row has to be there, too.
        for number in [1, last].into_iter().filter(|number| begin > 1 || *number == last) {
            if !store.has(&Row::new(self.schema, number))? {
                return Err(foreign(format!("row {number} is not there, or another one")));
            }
        }
        let below = store.count(Some(begin))?;
        if below != begin - 1 {
            return Err(GenerateError::Missing {
                table: table(),
                missing: (begin - 1).saturating_sub(below),
                of: begin - 1,
            });
        }
        let keys: HashSet<u64> = store.keys(begin, last)?.into_iter().collect();
        let found = begin - 1 + keys.len() as u64;
        self.rows.store(found, Ordering::Relaxed);
        let gaps: Vec<u64> = (begin..=last).filter(|number| !keys.contains(number)).collect();
        for gaps in gaps.chunks(BATCH_ROWS as usize) {
            let rows: Vec<Row> = gaps.iter().map(|number| Row::new(self.schema, *number)).collect();
            self.insert_rows(store, &rows)?;
            self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok((found, last + 1))
    }

    /// Inserts as many rows as the schema says behind the last one.
    fn add(&self, store: &mut dyn Store, last: Option<String>, stop: &AtomicBool) -> Result<Done, GenerateError> {
        let last = match last {
            None => {
                store.create()?;
                0
            }
            Some(last) => last.parse::<u64>().map_err(|_| {
                let why = format!("{}: its keys are not numbers, so none can follow them", self.schema.table);
                GenerateError::Unfit(why)
            })?,
        };
        let inserted = self.insert(last + 1, last + self.schema.rows, stop)?;
        Ok(Done { found: 0, inserted, is_complete: inserted == self.schema.rows })
    }

    /// Inserts these rows; returns how many.
    fn insert(&self, from: u64, to: u64, stop: &AtomicBool) -> Result<u64, GenerateError> {
        let before = self.rows.load(Ordering::Relaxed);
        let batches = Batches::new(from..=to, stop);
        let needed = to.saturating_sub(from.saturating_sub(1)).div_ceil(BATCH_ROWS);
        thread::scope(|scope| {
            for _ in 0..u64::from(self.options.connections).min(needed) {
                scope.spawn(|| self.work(&batches));
            }
        });
        match batches.failure() {
            Some(error) => Err(error),
            None => Ok(self.rows.load(Ordering::Relaxed) - before),
        }
    }

    /// Inserts rows, of which some can be there by now: a server finishes what a killed run had sent, also after this run
    /// has looked for its keys.
    fn insert_rows(&self, store: &mut dyn Store, rows: &[Row]) -> Result<(), GenerateError> {
        let refused = match store.insert(rows) {
            Err(error) if error.is_duplicate_key() && !self.options.adds => error,
            done => return done,
        };
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Err(refused) };
        let keys: HashSet<u64> = store.keys(first.key, last.key)?.into_iter().collect();
        let (there, missing): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| keys.contains(&row.key));
        // Those of another client are not this schema's.
        if !there.first().map_or(Ok(false), |row| store.has(row))? {
            return Err(refused);
        }
        let missing: Vec<Row> = missing.into_iter().cloned().collect();
        if missing.is_empty() { Ok(()) } else { store.insert(&missing) }
    }

    /// One connection's part.
    fn work(&self, batches: &Batches<'_>) {
        let mut store = None;
        while let Some((batch, numbers)) = batches.take() {
            let rows: Vec<Row> = numbers.map(|number| Row::new(self.schema, number)).collect();
            let opened = match store.take() {
                Some(store) => Ok(store),
                None => open(&self.server, self.schema),
            };
            let result = opened.and_then(|mut open| {
                self.insert_rows(open.as_mut(), &rows)?;
                store = Some(open);
                Ok(())
            });
            if result.is_ok() {
                self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            }
            batches.finish(batch, result);
        }
    }
}
