//! Single executions, from the history the server keeps of them: its own timing of each, the connection, the trace id.
//! Texts go out as digest texts only. What it can't do: see executions that the server has already overwritten; it says so.

use std::collections::{HashMap, HashSet};

use holdup_recording::rows::{Event, Statement};
use holdup_recording::{Batch, Labels};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};
use mysql::Row;

use super::Read;
use super::probe::History;
use super::server::{Columns, Failure, MARKER, Server};

/// Most executions that are read at once, about. Of more a sample is taken, so that a busy server doesn't make
/// watching it costly.
pub(super) const MOST: i64 = 2_000;

/// Executions that ended so long before the last read are looked for again: an ended one enters the history a little late.
const OVERLAP_NS: i64 = 200_000_000;

/// Not a step of a stored program, whose time is in its caller's, not the preparation of one that is run later.
const STATEMENTS: &str =
    "SQL_TEXT IS NOT NULL AND EVENT_NAME NOT LIKE 'statement/sp/%' AND EVENT_NAME <> 'statement/com/Prepare'";

/// What is remembered between reads of one connection.
#[derive(Default)]
pub(super) struct Executions {
    /// Our own instrumented thread.
    own_thread: Option<i64>,
    /// The server's statement timer at the first and at the last read, nanoseconds.
    first_and_last_ns: Option<(i64, i64)>,
    /// Executions already taken that the next read will see again: thread, event.
    seen: HashSet<(i64, i64)>,
    /// Instrumented thread -> connection.
    connections: HashMap<i64, i64>,
    /// What the last event said of executions being left out.
    said: Option<String>,
}

/// Where the server's statement timer stands against our clock.
struct Timer {
    /// It, when it was read.
    now_ns: i64,
    /// To be added to it for nanoseconds since the epoch.
    offset_ns: i64,
    /// The offset is right within this.
    error_ns: i64,
}

impl Executions {
    /// Executions that ended since the last read; the first read only takes the time.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        history: History,
        source: &str,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        let mut read = Read::begin(source);
        let own_thread = self.own_thread(server)?;
        let timer = timer(server, own_thread)?;
        let Some((first_ns, last_ns)) = self.first_and_last_ns else {
            self.first_and_last_ns = Some((timer.now_ns, timer.now_ns));
            return Ok(());
        };
        // Picoseconds since the server's start exceed 63 bits after 106 days.
        let picoseconds = |ns: i64| i128::from(ns.max(0)) * 1_000;
        let (table, after) = (history.table, picoseconds(last_ns));
        let counts = server.rows(&format!(
            "SELECT MAX(holdup.n), SUM(holdup.n) FROM (SELECT COUNT(*) AS n FROM performance_schema.{table} \
             WHERE TIMER_END > {after} GROUP BY THREAD_ID) AS holdup"
        ))?;
        let count = |index| counts.first().and_then(|row| row.int(index)).unwrap_or(0);
        let (most_of_one, all) = (count(0), count(1));
        let every = all / MOST + 1;
        // Hashed, so that a session that runs its statements in turns isn't seen in every other turn only.
        let sampled = if every > 1 {
            format!(" AND CRC32(CONCAT(THREAD_ID, '-', EVENT_ID)) % {every} = 0")
        } else {
            String::new()
        };
        let rows = server.rows(&format!(
            "SELECT THREAD_ID, EVENT_ID, TIMER_END DIV 1000, TIMER_WAIT DIV 1000, LOCK_TIME DIV 1000, ROWS_EXAMINED, ROWS_SENT, \
             ERRORS, CURRENT_SCHEMA, DIGEST_TEXT, SQL_TEXT FROM performance_schema.{table} WHERE TIMER_END > {} \
             AND THREAD_ID <> {own_thread} AND {STATEMENTS}{sampled}",
            picoseconds((last_ns - OVERLAP_NS).max(first_ns))
        ))?;
        read.end();
        self.first_and_last_ns = Some((first_ns, timer.now_ns));
        let before = std::mem::take(&mut self.seen);
        let mut fresh = Vec::new();
        for row in &rows {
            let (Some(thread), Some(event), Some(end_ns)) = (row.int(0), row.int(1), row.int(2)) else { continue };
            if end_ns > timer.now_ns - OVERLAP_NS {
                self.seen.insert((thread, event));
            }
            if !before.contains(&(thread, event)) {
                fresh.push((thread, end_ns, row));
            }
        }
        if fresh.iter().any(|(thread, _, _)| !self.connections.contains_key(thread)) {
            self.connections = connections(server)?;
        }
        for (thread, end_ns, row) in fresh {
            let session = self.connections.get(&thread).copied();
            batch.statements.extend(execution(source, session, end_ns + timer.offset_ns, row));
        }
        let kept = i64::try_from(history.size).unwrap_or(i64::MAX);
        let newest = if history.per_connection { most_of_one } else { all };
        // Rows that are written while we read are not shown: a few may lack of a history that is all new.
        let overrun = kept > 0 && newest + newest / 50 >= kept;
        for (metric, value) in [
            ("mysql_statement_timer_error_seconds", timer.error_ns as f64 / 1e9),
            ("mysql_statement_history_overrun", f64::from(u8::from(overrun))),
            ("mysql_statement_history_read_ratio", 1.0 / every as f64),
        ] {
            batch.samples.push(read.sample(metric, Labels::none(), value));
        }
        self.say_what_is_left_out(history, overrun, every, &read, batch);
        Ok(())
    }

    fn own_thread(&mut self, server: &Server) -> Result<i64, Failure> {
        if let Some(thread) = self.own_thread {
            return Ok(thread);
        }
        let rows =
            server.rows("SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()")?;
        let thread = rows.first().and_then(|row| row.int(0));
        self.own_thread = thread;
        thread
            .ok_or_else(|| Failure::Server(0, "performance_schema.threads does not list our own connection".to_owned()))
    }

    /// An event whenever it changes what is left out.
    fn say_what_is_left_out(
        &mut self,
        history: History,
        overrun: bool,
        every: i64,
        read: &Read<'_>,
        batch: &mut Batch,
    ) {
        let mut parts = Vec::new();
        if overrun {
            let each = if history.per_connection { " of each connection" } else { "" };
            parts.push(format!("more end between two reads than {} keeps ({}{each})", history.table, history.size));
        }
        if every > 1 {
            parts.push("of those it keeps a random sample is read".to_owned());
        }
        let text = (!parts.is_empty()).then(|| format!("executions are a sample: {}", parts.join("; ")));
        if let Some(text) = text.clone().filter(|text| self.said.as_ref() != Some(text)) {
            batch.events.push(Event {
                observed_at: read.at(),
                source: read.source.to_owned(),
                kind: "sampled".to_owned(),
                text,
                labels: Labels::none(),
            });
        }
        self.said = text;
    }

    /// Forgets what belongs to a connection that is lost: the server may have restarted, its timer and ids with it.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Reads the server's statement timer.
///
/// Of the statement that reads it the server tells when it began and what the time is now. The beginning is after our sending it,
/// now is before our having the answer: what the server spent in between cancels out of the error.
fn timer(server: &Server, own_thread: i64) -> Result<Timer, Failure> {
    let mut read = Read::begin("");
    let rows = server.rows(&format!(
        "SELECT TIMER_START DIV 1000, TIMER_END DIV 1000 FROM performance_schema.events_statements_current \
         WHERE THREAD_ID = {own_thread} ORDER BY EVENT_ID LIMIT 1"
    ))?;
    read.end();
    let row = rows.first();
    let Some(start_ns) = row.and_then(|row| row.int(0)) else {
        return Err(Failure::Server(0, "the server's statement timer could not be read".to_owned()));
    };
    let now_ns = row.and_then(|row| row.int(1)).unwrap_or(start_ns).max(start_ns);
    let (least, most) = (read.begun_at - start_ns, read.ended_at - now_ns);
    Ok(Timer { now_ns, offset_ns: least + (most - least) / 2, error_ns: (most - least).abs() / 2 })
}

/// The row of one execution, unless it is ours.
fn execution(source: &str, session_id: Option<i64>, at: i64, row: &Row) -> Option<Statement> {
    let sql = row.text(10).filter(|sql| !sql.starts_with(MARKER))?;
    // The server's text of the shape is whole where its copy of the statement is cut.
    let shape = row.text(9).filter(|text| !text.is_empty());
    let text = digest_text(shape.as_ref().unwrap_or(&sql), Dialect::MySql);
    let number = |index| row.int(index).unwrap_or(0);
    Some(Statement {
        observed_at: at,
        source: source.to_owned(),
        kind: "execution".to_owned(),
        session_id,
        digest: digest_of_text(&text),
        digest_text: text,
        database: row.text(8),
        calls: 1,
        duration_ns: number(3),
        lock_ns: number(4),
        rows_examined: number(5),
        rows_sent: number(6),
        errors: number(7),
        trace_id: trace_id(&sql, Dialect::MySql),
        ..Statement::default()
    })
}

fn connections(server: &Server) -> Result<HashMap<i64, i64>, Failure> {
    let rows = server
        .rows("SELECT THREAD_ID, PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL")?;
    Ok(rows.iter().filter_map(|row| row.int(0).zip(row.int(1))).collect())
}
