//! Servers' counters of statements, as dumped from
//! `performance_schema.events_statements_summary_by_digest` and `pg_stat_statements`: sums, and
//! least, greatest and deviation if the server keeps them. No server keeps percentiles.

use holdup_sql::Dialect;

use crate::digest::attribute::{Attributes, ERRORS, LOCK_TIME, QUERY_TIME, ROWS_EXAMINED, ROWS_SENT, Unit};
use crate::digest::block::Block;
use crate::digest::event::{Event, Kind, Position};
use crate::digest::measure::ServerSums;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;
use crate::digest::time::date_time;

mod table;

use table::Row;

/// Most bytes that are read of a dump.
const MOST: usize = 256 << 20;

/// The source of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// `performance_schema.events_statements_summary_by_digest` of MySQL and MariaDB.
    PerformanceSchema,
    /// `pg_stat_statements` of PostgreSQL.
    PgStatStatements,
}

/// The source of a dump that begins with these bytes.
pub fn detect(head: &[u8]) -> Option<Counters> {
    let columns = table::columns(head)?;
    let has = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    if has("DIGEST_TEXT") && has("COUNT_STAR") {
        return Some(Counters::PerformanceSchema);
    }
    (has("query") && has("calls") && (has("total_exec_time") || has("total_time")))
        .then_some(Counters::PgStatStatements)
}

/// A reader of dumps. They are small compared with logs, and read as a whole.
#[derive(Debug)]
pub struct Summary {
    counters: Counters,
    data: Vec<u8>,
    file: u32,
}

impl Summary {
    /// A reader for this source.
    pub fn new(counters: Counters) -> Self {
        Self { counters, data: Vec::new(), file: 0 }
    }

    /// Adds the next bytes of a dump.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        if block.file != self.file {
            self.finish(tally);
            self.file = block.file;
        }
        if self.data.len() + block.data.len() > MOST {
            return tally.problems.add(Problem::TooLong, block.position(0));
        }
        self.data.extend_from_slice(&block.data);
    }

    /// Counts the complete dump.
    pub fn finish(&mut self, tally: &mut Tally) {
        let (data, file, counters) = (std::mem::take(&mut self.data), self.file, self.counters);
        let mut number = 0;
        table::rows(&data, &mut |row| {
            number += 1;
            let position = Position { file, offset: number };
            let known = row.map(|row| match counters {
                Counters::PerformanceSchema => performance_schema(&row, position, tally),
                Counters::PgStatStatements => pg_stat_statements(&row, position, tally),
            });
            if known.flatten().is_none() {
                tally.problems.add(Problem::Malformed, position);
            }
        });
    }
}

/// A number as servers and clients write it, if it is not negative.
fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name)?.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

fn whole(row: &Row, name: &str) -> Option<u64> {
    row.get(name)?.parse().ok().or_else(|| number(row, name).map(rounded))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number that is not below 0")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn moment(row: &Row, name: &str) -> Option<i64> {
    date_time(row.get(name)?.as_bytes()).map(|(at, _)| at)
}

/// Picoseconds as microseconds.
fn microseconds_from_picoseconds(row: &Row, name: &str) -> Option<u64> {
    Some(whole(row, name)?.saturating_add(500_000) / 1_000_000)
}

/// Attributes of which only sums are kept.
fn sums(row: &Row, attributes: &mut Attributes, calls: u64, columns: &[(&str, &str, u64)]) -> Vec<(u16, ServerSums)> {
    let mut lumps = Vec::new();
    for (column, attribute, factor) in columns {
        let number = attributes.number(attribute.as_bytes());
        if let (Some(number), Some(sum)) = (number, whole(row, column)) {
            lumps
                .push((number, ServerSums { count: calls, sum: sum.saturating_mul(*factor), ..ServerSums::default() }));
        }
    }
    lumps
}

fn performance_schema(row: &Row, position: Position, tally: &mut Tally) -> Option<()> {
    let calls = whole(row, "COUNT_STAR")?;
    let total = microseconds_from_picoseconds(row, "SUM_TIMER_WAIT")?;
    let bounds =
        microseconds_from_picoseconds(row, "MIN_TIMER_WAIT").zip(microseconds_from_picoseconds(row, "MAX_TIMER_WAIT"));
    let mut lumps = vec![(QUERY_TIME, ServerSums { count: calls, sum: total, bounds, squares: None })];
    if let Some(sum) = microseconds_from_picoseconds(row, "SUM_LOCK_TIME") {
        lumps.push((LOCK_TIME, ServerSums { count: calls, sum, ..ServerSums::default() }));
    }
    for (number, column) in [(ROWS_SENT, "SUM_ROWS_SENT"), (ROWS_EXAMINED, "SUM_ROWS_EXAMINED"), (ERRORS, "SUM_ERRORS")]
    {
        if let Some(sum) = whole(row, column) {
            lumps.push((number, ServerSums { count: calls, sum, ..ServerSums::default() }));
        }
    }
    lumps.extend(sums(
        row,
        &mut tally.attributes,
        calls,
        &[
            ("SUM_ROWS_AFFECTED", "Rows_affected", 1),
            ("SUM_WARNINGS", "Warning_count", 1),
            ("SUM_CREATED_TMP_TABLES", "Tmp_tables", 1),
            ("SUM_CREATED_TMP_DISK_TABLES", "Tmp_disk_tables", 1),
            ("SUM_SORT_MERGE_PASSES", "Merge_passes", 1),
            ("SUM_SELECT_SCAN", "Full_scans", 1),
            ("SUM_SELECT_FULL_JOIN", "Full_joins", 1),
            ("SUM_NO_INDEX_USED", "No_index_used_calls", 1),
            ("SUM_NO_GOOD_INDEX_USED", "No_good_index_used_calls", 1),
        ],
    ));
    // One row stands for all statements that no longer fitted into the server's table.
    let text = row.get("DIGEST_TEXT").unwrap_or("/* other */ select others");
    let seen = moment(row, "FIRST_SEEN").zip(moment(row, "LAST_SEEN"));
    let event = Event {
        kind: Kind::Statement,
        sql: text.as_bytes(),
        position,
        at_us: seen.map(|(first, _)| first),
        database: row.get("SCHEMA_NAME").unwrap_or_default().as_bytes(),
        ..Event::default()
    };
    tally.add_lumps(&event, calls, &lumps, seen);
    Some(())
}

fn pg_stat_statements(row: &Row, position: Position, tally: &mut Tally) -> Option<()> {
    let calls = whole(row, "calls")?;
    // Milliseconds with a fraction. The names since version 13, and the older ones.
    let time = |new: &str, old: &str| number(row, new).or_else(|| number(row, old)).map(|value| value * 1e3);
    let total = time("total_exec_time", "total_time")?;
    let bounds = time("min_exec_time", "min_time").zip(time("max_exec_time", "max_time"));
    // Since version 17 these two can be reset separately, and are 0 until the next call.
    let bounds = bounds.filter(|(_, max)| *max > 0.0 || total == 0.0).map(|(min, max)| (rounded(min), rounded(max)));
    let deviation = time("stddev_exec_time", "stddev_time");
    let mean = time("mean_exec_time", "mean_time");
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "squares of microseconds, of a deviation that was rounded itself"
    )]
    let squares = deviation.zip(mean).map(|(sd, mean)| ((sd * sd + mean * mean) * calls as f64).round() as u128);
    let mut lumps = vec![(QUERY_TIME, ServerSums { count: calls, sum: rounded(total), bounds, squares })];
    if let Some(sum) = number(row, "total_plan_time").map(|value| rounded(value * 1e3)).filter(|sum| *sum > 0) {
        let number = time_attribute(&mut tally.attributes, b"Plan_time");
        lumps.extend(number.map(|number| (number, ServerSums { count: calls, sum, ..ServerSums::default() })));
    }
    lumps.extend(sums(
        row,
        &mut tally.attributes,
        calls,
        &[
            ("rows", "Rows", 1),
            ("shared_blks_hit", "Shared_bytes_hit", 8_192),
            ("shared_blks_read", "Shared_bytes_read", 8_192),
            ("shared_blks_dirtied", "Shared_bytes_dirtied", 8_192),
            ("shared_blks_written", "Shared_bytes_written", 8_192),
            ("temp_blks_read", "Temp_bytes_read", 8_192),
            ("temp_blks_written", "Temp_bytes_written", 8_192),
            ("wal_bytes", "Wal_bytes", 1),
        ],
    ));
    let name = |names: [&str; 3]| names.into_iter().find_map(|name| row.get(name)).unwrap_or_default();
    let event = Event {
        kind: Kind::Statement,
        sql: row.get("query").unwrap_or_default().as_bytes(),
        position,
        user: name(["rolname", "usename", "userid"]).as_bytes(),
        database: name(["datname", "database", "dbid"]).as_bytes(),
        ..Event::default()
    };
    tally.add_lumps(&event, calls, &lumps, None);
    Some(())
}

fn time_attribute(attributes: &mut Attributes, name: &[u8]) -> Option<u16> {
    attributes.number(name).filter(|number| attributes.get(*number).is_some_and(|one| one.unit == Unit::Time))
}

impl Counters {
    /// Identifies the statements' account and database.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::PerformanceSchema => Dialect::MySql,
            Self::PgStatStatements => Dialect::PostgreSql,
        }
    }
}

#[cfg(test)]
mod tests;
