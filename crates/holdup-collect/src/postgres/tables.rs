//! Tables, TOAST tables and indexes of the connected database, the only one the server shows, and
//! only the relevant tables. Choosing them takes a walk through the catalog and happens now and
//! then; in between, reads go by id through the catalogs' indexes, which a test checks.

mod choice;
mod free;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use holdup_recording::{Labels, metrics};

use self::choice::{Counts, ListedTable};
use super::counters::put;
use super::server::{Failure, Row, Server};
use crate::pace::{Pace, Turn};
use crate::reading::Out;

/// Shortest pause between two walks through the catalog, and between two reads of sizes and ages.
const SLOW: Duration = Duration::from_secs(10);

/// Up to this many tables are read with every sample, more of them at intervals.
const FEW: usize = 30;

/// The shortest interval for more than [`FEW`] tables.
const SPARSE: Duration = Duration::from_secs(5);

/// Largest number of tables listed: by then a server has shown its relevant ones.
const LISTED: usize = 100_000;

/// Largest number of indexes read, the largest first.
const INDEXES: usize = 400;

/// State between reads.
pub(super) struct Tables {
    list: Pace,
    facts: Pace,
    indexes: Pace,
    counters: Pace,
    before: HashMap<i64, Counts>,
    chosen: BTreeSet<i64>,
    names: BTreeMap<i64, Labels>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            list: Pace::slow(SLOW),
            facts: Pace::slow(SLOW),
            indexes: Pace::at_least(SPARSE),
            counters: Pace::default(),
            before: HashMap::new(),
            chosen: BTreeSet::new(),
            names: BTreeMap::new(),
        }
    }
}

/// Tables locked so that even readers must wait. Reading their size would block.
const HELD: &str = "ARRAY(SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation IS NOT NULL)";

impl Tables {
    /// Reads what is due.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        database: &str,
        turn: &mut Turn,
        out: &mut Out,
    ) -> Result<(), Failure> {
        if let Some(begun) = self.list.due(turn) {
            let result = self.list(server);
            self.list.read(turn, begun, result)?;
        }
        if self.chosen.is_empty() {
            return Ok(());
        }
        if let Some(begun) = self.facts.due(turn) {
            let result = self.facts(server, database, out);
            self.facts.read(turn, begun, result)?;
        }
        if !self.names.is_empty()
            && let Some(begun) = self.counters.due(turn)
        {
            let result = self.counters(server, out);
            let result = self.counters.read(turn, begun, result);
            self.counters.slow_down(if self.names.len() > FEW { SPARSE } else { Duration::ZERO });
            result?;
        }
        if !self.names.is_empty()
            && let Some(begun) = self.indexes.due(turn)
        {
            let result = self.indexes(server, out);
            self.indexes.read(turn, begun, result)?;
        }
        Ok(())
    }

    /// Forgets the state of a lost connection: the next server may be another one.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Walks through the catalog and chooses the relevant tables.
    fn list(&mut self, server: &Server) -> Result<(), Failure> {
        // Tables without traffic and size are not sent. The catalog's own tables are excluded,
        // because reading the catalog would make them relevant.
        let answer = server.rows(&format!(
            "SELECT oid, reltoastrelid, relpages, writes, reads, dead FROM (SELECT oid, reltoastrelid, relpages, \
             pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) AS writes, \
             pg_stat_get_tuples_returned(oid) + pg_stat_get_tuples_fetched(oid) AS reads, pg_stat_get_dead_tuples(oid) AS dead \
             FROM pg_class WHERE relkind IN ('r', 'm', 't') AND relpersistence <> 't' AND oid >= 16384 OFFSET 0) AS holdup_c \
             WHERE relpages > 0 OR writes > 0 OR reads > 0 LIMIT {LISTED}"
        ))?;
        let number = |row: &Row, index| row.int(index).unwrap_or(0);
        let listed: Vec<ListedTable> = answer
            .rows
            .iter()
            .map(|row| ListedTable {
                id: number(row, 0),
                toast: Some(number(row, 1)).filter(|id| *id != 0),
                pages: number(row, 2),
                counts: Counts { writes: number(row, 3), reads: number(row, 4) },
                dead: number(row, 5),
            })
            .collect();
        let chosen = choice::choose(&listed, &self.before, &self.chosen);
        if chosen != self.chosen {
            self.facts.at_once();
            self.indexes.at_once();
        }
        self.chosen = chosen;
        self.before = listed.into_iter().map(|table| (table.id, table.counts)).collect();
        Ok(())
    }

    /// Names, sizes, ages and free space.
    fn facts(&mut self, server: &Server, database: &str, out: &mut Out) -> Result<(), Failure> {
        let ids = ids(self.chosen.iter());
        let sql = format!(
            "SELECT holdup_c.oid, holdup_n.nspname || '.' || holdup_c.relname, holdup_m.nspname || '.' || holdup_o.relname, \
             CASE WHEN holdup_c.oid <> ALL({HELD}) THEN pg_relation_size(holdup_c.oid) END, \
             holdup_c.relpages::bigint * current_setting('block_size')::int, holdup_c.reltuples, age(holdup_c.relfrozenxid), \
             mxid_age(holdup_c.relminmxid), (SELECT count(*) FROM pg_index WHERE indrelid = holdup_c.oid), \
             pg_stat_get_live_tuples(holdup_c.oid), pg_stat_get_dead_tuples(holdup_c.oid), \
             (SELECT CASE WHEN count(*) >= holdup_c.relnatts THEN sum((1 - null_frac) * avg_width) END FROM pg_stats \
             WHERE schemaname = holdup_n.nspname AND tablename = holdup_c.relname AND NOT inherited), \
             array_to_string(holdup_c.reloptions, ','), current_setting('block_size') FROM pg_class AS holdup_c \
             JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_c.relnamespace LEFT JOIN pg_class AS holdup_o \
             ON holdup_c.relkind = 't' AND holdup_o.oid = substring(holdup_c.relname FROM '^pg_toast_([0-9]+)$')::oid \
             LEFT JOIN pg_namespace AS holdup_m ON holdup_m.oid = holdup_o.relnamespace WHERE holdup_c.oid = ANY('{ids}'::oid[])"
        );
        let answer = out.read(|| server.rows(&sql))?;
        self.names.clear();
        for row in &answer.rows {
            let (Some(id), Some(table)) = (row.int(0), row.text(1)) else { continue };
            let mut labels = Labels::new([("database", database), ("table", table)]);
            if let Some(owner) = row.text(2) {
                labels = labels.with("toast_of", owner);
            }
            let size = row.float(3).or(row.float(4));
            let age = |place| row.float(place).filter(|age| *age < 2_147_483_647.0);
            let values = [
                (metrics::postgresql::TABLE_SIZE_BYTES, size),
                // For a table never counted, 14 and later report -1, earlier versions 0.
                (metrics::postgresql::TABLE_ROWS, row.float(5).filter(|rows| *rows > 0.0 || size == Some(0.0))),
                (metrics::postgresql::TABLE_FROZEN_AGE_TRANSACTIONS, age(6)),
                (metrics::postgresql::TABLE_MULTIXACT_AGE, age(7)),
                (metrics::postgresql::TABLE_INDEXES, row.float(8)),
            ];
            out.put_known(&labels, values);
            if let Some((estimate, bytes)) = free::estimate(&free::TableFacts {
                is_toast: row.text(2).is_some(),
                size_bytes: size.unwrap_or(0.0),
                live: row.float(9).filter(|live| *live > 0.0).or(row.float(5)).unwrap_or(0.0),
                dead: row.float(10).unwrap_or(0.0),
                width_bytes: row.float(11),
                options: row.text(12).unwrap_or_default(),
                block_bytes: row.float(13).unwrap_or(8192.0),
            }) {
                out.put(metrics::postgresql::TABLE_FREE_BYTES, labels.clone().with("estimate", estimate), bytes);
            }
            self.names.insert(id, labels);
        }
        Ok(())
    }

    /// The server's counters of each table.
    fn counters(&self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let ids = ids(self.names.keys());
        for (view, name) in [("pg_stat_all_tables", "stat_tables"), ("pg_statio_all_tables", "statio_tables")] {
            let sql = format!("SELECT * FROM {view} WHERE relid = ANY('{ids}'::oid[])");
            let answer = out.read(|| server.rows(&sql))?;
            let id = answer.columns.iter().position(|column| column == "relid");
            let of_row = |row: &Row| id.and_then(|id| self.names.get(&row.int(id)?)).cloned().unwrap_or_default();
            put(&answer, name, &[], out, of_row);
        }
        Ok(())
    }

    /// Indexes of the tables, except the one index that each TOAST table has.
    fn indexes(&self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let ids = ids(self.names.iter().filter(|(_, labels)| labels.get("toast_of").is_none()).map(|(id, _)| id));
        let sql = format!(
            "SELECT indrelid, relname, indisunique OR indisprimary OR indisexclusion OR indisreplident, \
             pg_stat_get_numscans(indexrelid) AS idx_scan, pg_stat_get_tuples_returned(indexrelid) AS idx_tup_read, \
             pg_stat_get_tuples_fetched(indexrelid) AS idx_tup_fetch, \
             CASE WHEN indexrelid <> ALL({HELD}) AND indrelid <> ALL({HELD}) THEN pg_relation_size(indexrelid) END \
             FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             WHERE indrelid = ANY('{ids}'::oid[]) AND relkind = 'i' ORDER BY relpages DESC LIMIT {INDEXES}"
        );
        let answer = out.read(|| server.rows(&sql))?;
        for row in &answer.rows {
            let (Some(table), Some(index)) = (row.int(0).and_then(|id| self.names.get(&id)), row.text(1)) else {
                continue;
            };
            let mut labels = table.clone().with("index", index);
            if row.text(2) == Some("t") {
                labels = labels.with("unique", "1");
            }
            let values = [
                (metrics::postgresql::STAT_INDEXES_IDX_SCAN, row.float(3)),
                (metrics::postgresql::STAT_INDEXES_IDX_TUP_READ, row.float(4)),
                (metrics::postgresql::STAT_INDEXES_IDX_TUP_FETCH, row.float(5)),
                (metrics::postgresql::INDEX_SIZE_BYTES, row.float(6)),
            ];
            out.put_known(&labels, values);
        }
        Ok(())
    }
}

/// `{1,2}`
fn ids<'a>(ids: impl Iterator<Item = &'a i64>) -> String {
    format!("{{{}}}", ids.map(ToString::to_string).collect::<Vec<_>>().join(","))
}
