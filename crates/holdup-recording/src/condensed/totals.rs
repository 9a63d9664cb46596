//! A server's own counters by statement.

use std::hash::Hash;

use super::grouped::Grouped;
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

/// Builds totals from rows as they come; `K` stands for source, database and digest, and `T` for
/// the text.
pub(super) struct TotalsMaker<K, T> {
    groups: Grouped<K>,
    all: Vec<(T, Vec<Reading>)>,
}

impl<K, T> Default for TotalsMaker<K, T> {
    fn default() -> Self {
        Self { groups: Grouped::default(), all: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash, T> TotalsMaker<K, T> {
    pub fn push(&mut self, key: K, text: T, reading: Reading) {
        let number = self.groups.number(key);
        if number == self.all.len() {
            self.all.push((text, Vec::new()));
        }
        self.all[number].1.push(reading);
    }

    /// All totals; `name` makes those of a key, without their readings.
    pub fn finish(self, name: impl Fn(K, T) -> Totals) -> Vec<Totals> {
        let of = self.groups.keys.into_iter().zip(self.all).map(|(key, (text, mut readings))| {
            readings.shrink_to_fit();
            readings.sort_by_key(|r| r.observed_at);
            Totals { readings, ..name(key, text) }
        });
        let mut totals: Vec<Totals> = of.collect();
        totals.sort_by(|a, b| (&a.source, &a.database, &a.digest).cmp(&(&b.source, &b.database, &b.digest)));
        totals
    }
}
