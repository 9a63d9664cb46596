//! The server's counters by statement (`pg_stat_statements`). Its ids are replaced by holdup's
//! digests, so that sessions, counters and executions can be joined. Each text is read once and
//! kept, because the server reads texts from a file. Their comments come from the very first
//! execution: a trace id in them is stale and ignored.
//!
//! The server builds its whole table for every query, however small: without texts 5,000 entries
//! take it some 9 ms. So each read takes the whole table, the entries with the most time first, at
//! intervals that depend on its cost.

mod totals;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use holdup_recording::{Labels, metrics};
use holdup_sql::{Dialect, digest_text};

use self::totals::{Counts, ENTRIES_MAX, Entry, Totals};
use super::probe::Extension;
use super::server::{Failure, MARKER, Row, Server};
use crate::pace::{Pace, Turn};
use crate::reading::Out;

/// Largest number of texts per read.
const TEXTS_AT_ONCE: usize = 5_000;

/// Above this number, texts of statements that the server has dropped are forgotten. The server has
/// at most [`ENTRIES_MAX`] entries, so at most these and [`TEXTS_AT_ONCE`] are remembered.
const TEXTS: usize = 50_000;

/// Bytes read of one text, and of all texts in one read: half of the largest answer.
const TEXT_BYTES: usize = 65_536;
const ANSWER_BYTES: usize = 16 << 20;

/// Digest text by the server's statement id; none for holdup's own statements.
#[derive(Default)]
pub(super) struct Texts(HashMap<i64, Option<String>>);

impl Texts {
    /// The digest text of a statement, if it was read.
    pub(super) fn digest_text(&self, query_id: i64) -> Option<&str> {
        self.known(query_id)?
    }

    /// The same, but tells holdup's own statements (inner none) from unknown ones.
    fn known(&self, query_id: i64) -> Option<Option<&str>> {
        self.0.get(&query_id).map(Option::as_deref)
    }

    /// Makes room for `more` texts. Those of `entries`, which the server still has, stay: they
    /// would have to be read again.
    fn make_room(&mut self, more: usize, entries: &[Entry]) {
        if self.0.len() + more > TEXTS {
            let there: HashSet<i64> = entries.iter().map(|entry| entry.key.0).collect();
            self.0.retain(|id, _| there.contains(id));
        }
    }

    /// Reads the texts of `ids`, up to the limit per read.
    fn learn(&mut self, server: &Server, extension: &str, ids: &[i64]) -> Result<(), Failure> {
        if ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let answer = server.rows(&format!(
            "SELECT queryid, query FROM (SELECT queryid, query, sum(length(query)) OVER (ORDER BY queryid) AS before FROM \
             (SELECT DISTINCT ON (queryid) queryid, left(query, {TEXT_BYTES}) AS query FROM {extension}.pg_stat_statements(true) \
             WHERE queryid = ANY('{{{}}}'::bigint[])) AS holdup_t) AS holdup_s WHERE before <= {ANSWER_BYTES}",
            ids.join(",")
        ))?;
        for row in &answer.rows {
            let Some(id) = row.int(0) else { continue };
            // The server may have lost a text for good.
            let text = row.text(1).unwrap_or(MARKER);
            self.0.insert(id, (!server.is_own(text)).then(|| digest_text(text, Dialect::PostgreSql)));
        }
        Ok(())
    }
}

/// State between reads.
#[derive(Default)]
pub(super) struct Statements {
    pub(super) texts: Texts,
    totals: Totals,
    pace: Pace,
    /// The last reset of the server's table, as the server writes it.
    reset_at: Option<String>,
    names: HashMap<i64, String>,
}

impl Statements {
    /// Counters by digest and database for statements that changed since the last read, if a read
    /// is due.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        extension: &Extension,
        turn: &mut Turn,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let Some(begun) = self.pace.due(turn) else { return Ok(()) };
        let result = self.read(server, extension, out);
        let (at, entries) = self.pace.read(turn, begun, result)?;
        // The time for texts does not count for the pace: each is read only once.
        let begun = Instant::now();
        let unknown = totals::unknown(&entries, &self.texts, &self.totals, TEXTS_AT_ONCE);
        self.texts.make_room(unknown.len(), &entries);
        let learnt = self.texts.learn(server, &extension.schema, &unknown);
        turn.take(begun.elapsed());
        out.batch.statements.extend(self.totals.take(&entries, &self.texts, at, out.source()));
        learnt
    }

    /// Forgets the state of a lost connection: the server may have restarted.
    pub(super) fn forget(&mut self) {
        self.totals = Totals::default();
        self.names.clear();
    }

    /// All entries, and when they were read.
    fn read(&mut self, server: &Server, extension: &Extension, out: &mut Out) -> Result<(i64, Vec<Entry>), Failure> {
        self.look_for_reset(server, extension, out)?;
        let schema = &extension.schema;
        // Since 1.8 of the extension (PostgreSQL 13) planning is counted separately, since 1.9 (14)
        // nested statements.
        let time = if extension.minor >= 8 { "total_exec_time + total_plan_time" } else { "total_time" };
        let level = if extension.minor >= 9 { "toplevel" } else { "''" };
        let sql = format!(
            "SELECT queryid, dbid, userid, {level}, calls, (({time}) * 1e6)::bigint, rows FROM {schema}.pg_stat_statements(false) AS holdup_s \
             WHERE queryid IS NOT NULL ORDER BY {time} DESC LIMIT {ENTRIES_MAX}"
        );
        let answer = out.read(|| server.rows(&sql))?;
        let number = |row: &Row, index| row.int(index).unwrap_or(0);
        if answer.rows.iter().any(|row| row.int(1).is_some_and(|database| !self.names.contains_key(&database))) {
            let names = server.rows("SELECT oid, datname FROM pg_database")?;
            self.names = names.rows.iter().filter_map(|row| Some((row.int(0)?, row.text(1)?.to_owned()))).collect();
        }
        let entries: Vec<Entry> = answer
            .rows
            .iter()
            .filter_map(|row| {
                let database = self.names.get(&row.int(1)?).cloned();
                let rest = [1, 2, 3].map(|index| row.text(index).unwrap_or_default()).join(" ");
                let counts = Counts { calls: number(row, 4), duration_ns: number(row, 5), rows: number(row, 6) };
                // Entries of a dropped database are skipped.
                database.is_some().then_some(Entry { key: (row.int(0)?, rest), database, counts })
            })
            .collect();
        out.put_plain(metrics::postgresql::STAT_STATEMENTS_ENTRIES, entries.len() as f64);
        Ok((out.at(), entries))
    }

    /// Notices a reset of the server's table, and counts how often it evicted entries.
    fn look_for_reset(&mut self, server: &Server, extension: &Extension, out: &mut Out) -> Result<(), Failure> {
        // The view exists since 1.9 (PostgreSQL 14).
        if extension.minor < 9 {
            return Ok(());
        }
        let sql = format!("SELECT dealloc, stats_reset FROM {}.pg_stat_statements_info", extension.schema);
        let answer = out.read(|| server.rows(&sql))?;
        let Some(row) = answer.rows.first() else { return Ok(()) };
        out.put_known(&Labels::none(), [(metrics::postgresql::STAT_STATEMENTS_DEALLOC, row.float(0))]);
        let reset_at = row.text(1).map(str::to_owned);
        if let (Some(before), Some(now)) = (&self.reset_at, &reset_at)
            && before != now
        {
            self.totals = Totals::default();
            let text = format!("the counters of statements were reset at {now}");
            out.say("reset", text, Labels::new([("view", "pg_stat_statements")]));
        }
        self.reset_at = reset_at.or(self.reset_at.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: impl Iterator<Item = usize>) -> Vec<Entry> {
        let entry = |id: usize| Entry { key: (id as i64, String::new()), database: None, counts: Counts::default() };
        ids.map(entry).collect()
    }

    /// A server with as many statements as are remembered, of which some are new at every read, is not asked for all texts again.
    #[test]
    fn only_texts_of_statements_that_are_gone_are_forgotten() {
        let mut texts = Texts((0..TEXTS as i64).map(|id| (id, Some("SELECT ?".to_owned()))).collect());
        texts.make_room(0, &[]);
        assert_eq!(texts.0.len(), TEXTS);
        // Ten came, and pushed ten out.
        let there = entries(10..TEXTS + 10);
        let unknown = totals::unknown(&there, &texts, &Totals::default(), TEXTS_AT_ONCE);
        texts.make_room(unknown.len(), &there);
        assert_eq!((unknown.len(), texts.0.len()), (10, TEXTS - 10));
        assert!(texts.digest_text(9).is_none() && texts.digest_text(10).is_some());
        assert_eq!(totals::unknown(&there, &texts, &Totals::default(), TEXTS_AT_ONCE).len(), 10);
    }
}
