//! A server's own counters by statement.

use std::hash::Hash;

use super::thinning::{Thinned, Timed};
use crate::rows::Statement;

/// The counters of one statement at one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time of the read, nanoseconds since the Unix epoch.
    pub observed_at: i64,
    /// Executions.
    pub calls: i64,
    /// The server's own timing of all executions, nanoseconds.
    pub duration_ns: i64,
    /// Part of it in table locks.
    pub lock_ns: i64,
    /// Rows examined.
    pub rows_examined: i64,
    /// Rows sent.
    pub rows_sent: i64,
    /// Rows changed.
    pub rows_affected: i64,
    /// Executions that used no index for at least one table.
    pub no_index: i64,
    /// Temporary tables that they made on disk.
    pub temporary_disk_tables: i64,
}

impl Reading {
    pub(super) fn from_row(row: &Statement) -> Self {
        Self {
            observed_at: row.observed_at,
            calls: row.calls,
            duration_ns: row.duration_ns,
            lock_ns: row.lock_ns,
            rows_examined: row.rows_examined,
            rows_sent: row.rows_sent,
            rows_affected: row.rows_affected,
            no_index: row.no_index,
            temporary_disk_tables: row.temporary_disk_tables,
        }
    }
}

/// Counters of one statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The server.
    pub source: String,
    /// Default database.
    pub database: Option<String>,
    /// Identity of the statement.
    pub digest: String,
    /// Its text, every literal replaced by `?`.
    pub text: String,
    /// In order of time.
    pub readings: Vec<Reading>,
}

impl Timed for Reading {
    fn at(&self) -> i64 {
        self.observed_at
    }
}

/// Builds totals from rows as they come; `K` stands for source, database and digest, and `T` for
/// the text.
pub(super) struct TotalsMaker<K, T> {
    readings: Thinned<K, Reading>,
    texts: Vec<T>,
}

impl<K: Copy + Eq + Hash, T> TotalsMaker<K, T> {
    pub fn to(most: usize) -> Self {
        Self { readings: Thinned::to(most), texts: Vec::new() }
    }

    pub fn push(&mut self, key: K, text: T, reading: Reading) {
        if self.readings.add(key, reading) == self.texts.len() {
            self.texts.push(text);
        }
    }

    /// All totals; `name` makes those of a key, without their readings.
    pub fn finish(self, name: impl Fn(K, T) -> Totals) -> Vec<Totals> {
        let of = self.readings.groups().zip(self.texts).map(|((key, mut readings), text)| {
            readings.shrink_to_fit();
            readings.sort_by_key(|r| r.observed_at);
            Totals { readings, ..name(key, text) }
        });
        let mut totals: Vec<Totals> = of.collect();
        totals.sort_by(|a, b| (&a.source, &a.database, &a.digest).cmp(&(&b.source, &b.database, &b.digest)));
        totals
    }
}
