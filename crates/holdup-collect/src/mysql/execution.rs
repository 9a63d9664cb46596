//! Turns one execution from the server's statement event tables into a row, and relates the
//! server's statement timer to our clock. [`history`](super::history) and
//! [`capture`](super::capture) decide which executions to read, and when.

use std::collections::HashMap;

use holdup_recording::clock;
use holdup_recording::rows::{Stage, Statement};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::failure::Failure;
use super::server::{MARKER, Row, Server};

/// The columns that [`Execution::from_row`] reads, in order. Both `NO_INDEX` flags mean that a table was
/// read without a (good) index.
pub(super) const COLUMNS: &str = "THREAD_ID, EVENT_ID, TIMER_END DIV 1000, TIMER_WAIT DIV 1000, LOCK_TIME DIV 1000, \
     ROWS_EXAMINED, ROWS_SENT, ERRORS, CURRENT_SCHEMA, LEFT(DIGEST_TEXT, 8192), LEFT(SQL_TEXT, 8192), ROWS_AFFECTED, \
     NO_INDEX_USED OR NO_GOOD_INDEX_USED, CREATED_TMP_TABLES, CREATED_TMP_DISK_TABLES";

/// Characters read of a digest's or a statement's text: the server keeps 1,024 of each unless
/// configured otherwise.
pub(super) const TEXT_BYTES: usize = 8_192;

/// Excludes steps of stored programs, whose time is in their caller's, and the preparation of
/// statements that are executed later.
pub(super) const STATEMENTS: &str = "(SQL_TEXT IS NOT NULL OR EVENT_NAME = 'statement/com/Execute') \
     AND EVENT_NAME NOT LIKE 'statement/sp/%' AND EVENT_NAME <> 'statement/com/Prepare'";

/// Stands for the text of an execution by the binary protocol: MariaDB keeps its time and rows, but
/// neither text nor digest.
const PREPARED: &str = "(prepared statement whose text the server does not keep)";

/// Largest number of stages per read.
const STAGES_MAX: u32 = 10_000;

/// The server's statement timer relative to our clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// Its value when it was read, nanoseconds.
    pub(super) now_ns: i64,
    /// Added to it, this gives nanoseconds since the epoch.
    pub(super) offset_ns: i64,
    /// Largest error of the offset.
    pub(super) error_ns: i64,
}

/// Reads the server's statement timer.
///
/// The statement that reads the timer reports its own start and the present time. The start is
/// after our sending it, the present before our receiving the answer: the server's own time between
/// the two cancels out of the error.
pub(super) fn timer(server: &Server, own_thread: i64) -> Result<Timer, Failure> {
    let begun_at = clock::now_ns();
    let rows = server.rows(&format!(
        "SELECT TIMER_START DIV 1000, TIMER_END DIV 1000 FROM performance_schema.events_statements_current \
         WHERE THREAD_ID = {own_thread} ORDER BY EVENT_ID LIMIT 1"
    ))?;
    let ended_at = clock::now_ns();
    let row = rows.first();
    let Some(start_ns) = row.and_then(|row| row.int(0)) else {
        return Err(Failure::Server(0, "cannot read the server's statement timer: performance_schema.events_statements_current has no row of this connection".to_owned()));
    };
    let now_ns = row.and_then(|row| row.int(1)).unwrap_or(start_ns).max(start_ns);
    let (least, most) = (begun_at - start_ns, ended_at - now_ns);
    Ok(Timer { now_ns, offset_ns: least + (most - least) / 2, error_ns: (most - least).abs() / 2 })
}

/// The instrumented thread of this connection.
pub(super) fn own_thread(server: &Server) -> Result<i64, Failure> {
    let rows =
        server.rows("SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()")?;
    rows.first().and_then(|row| row.int(0)).ok_or_else(|| {
        Failure::Server(
            0,
            "performance_schema.threads does not list holdup's own connection: are its instruments on?".to_owned(),
        )
    })
}

/// Connection ids by instrumented thread.
pub(super) fn connections(server: &Server) -> Result<HashMap<i64, i64>, Failure> {
    let rows = server
        .rows("SELECT THREAD_ID, PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL")?;
    Ok(rows.iter().filter_map(|row| row.int(0).zip(row.int(1))).collect())
}

/// Nanoseconds as the picoseconds of the server's tables, which exceed 63 bits 106 days after its
/// start.
pub(super) fn picoseconds(ns: i64) -> i128 {
    i128::from(ns.max(0)) * 1_000
}

/// One finished execution.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    /// The instrumented thread.
    pub(super) thread: i64,
    /// Its event id.
    pub(super) event: i64,
    /// Its end by the server's timer, nanoseconds.
    pub(super) end_ns: i64,
    /// The row, without connection id, and with times by the server's timer.
    row: Statement,
}

impl Execution {
    /// Reads [`COLUMNS`]; none if the execution is holdup's own or has not ended.
    pub(super) fn from_row(row: &Row) -> Option<Self> {
        let (thread, event, end_ns) = (row.int(0)?, row.int(1)?, row.int(2)?);
        let sql = row.text(10);
        if sql.is_some_and(|sql| sql.starts_with(MARKER)) {
            return None;
        }
        // The server's digest text is complete even when its copy of the statement is cut.
        let shape = row.text(9).filter(|text| !text.is_empty());
        let shape = shape.or(sql).map(|text| digest_text(text, Dialect::MySql));
        let text = shape.unwrap_or_else(|| PREPARED.to_owned());
        let number = |index| row.int(index).unwrap_or(0);
        let statement = Statement {
            kind: "execution".to_owned(),
            digest: digest_of_text(&text),
            digest_text: text,
            database: row.text(8).map(str::to_owned),
            calls: 1,
            duration_ns: number(3),
            lock_ns: number(4),
            rows_examined: number(5),
            rows_sent: number(6),
            errors: number(7),
            rows_affected: number(11),
            no_index: number(12),
            temporary_tables: number(13),
            temporary_disk_tables: number(14),
            trace_id: sql.and_then(|sql| trace_id(sql, Dialect::MySql)),
            ..Statement::default()
        };
        Some(Self { thread, event, end_ns, row: statement })
    }

    /// Its start by the server's timer, nanoseconds.
    pub(super) fn begin_ns(&self) -> i64 {
        self.end_ns - self.row.duration_ns
    }

    /// The trace id in its text.
    pub(super) fn trace_id(&self) -> Option<&str> {
        self.row.trace_id.as_deref()
    }

    /// The row with connection id, and with times by our clock.
    pub(super) fn row(&self, source: &str, connections: &HashMap<i64, i64>, timer: Timer) -> Statement {
        Statement {
            observed_at: self.end_ns + timer.offset_ns,
            source: source.to_owned(),
            session_id: connections.get(&self.thread).copied(),
            ..self.row.clone()
        }
    }
}

/// The stages of `executions`, from this table of the server; `chosen` narrows the query (` AND
/// …`).
pub(super) fn stages(
    server: &Server,
    source: &str,
    (table, chosen): (&str, &str),
    executions: &[Execution],
    connections: &HashMap<i64, i64>,
    timer: Timer,
) -> Result<Vec<Stage>, Failure> {
    let Some(from_ns) = executions.iter().map(Execution::begin_ns).min() else { return Ok(Vec::new()) };
    let by_event: HashMap<(i64, i64), &Execution> =
        executions.iter().map(|execution| ((execution.thread, execution.event), execution)).collect();
    let rows = server.rows(&format!(
        "SELECT THREAD_ID, NESTING_EVENT_ID, EVENT_NAME, TIMER_END DIV 1000, TIMER_WAIT DIV 1000 \
         FROM performance_schema.{table} WHERE TIMER_END > {}{chosen} AND NESTING_EVENT_TYPE = 'STATEMENT' LIMIT {STAGES_MAX}",
        picoseconds(from_ns)
    ))?;
    let stage = |row: &Row| {
        let execution = by_event.get(&(row.int(0)?, row.int(1)?))?;
        Some(Stage {
            observed_at: row.int(3)? + timer.offset_ns,
            source: source.to_owned(),
            session_id: connections.get(&execution.thread).copied(),
            digest: execution.row.digest.clone(),
            stage: row.text(2)?.to_owned(),
            duration_ns: row.int(4)?,
            trace_id: execution.row.trace_id.clone(),
        })
    };
    Ok(rows.iter().filter_map(stage).collect())
}
