//! The server's own timing of statements: counters by digest, and single executions from its history. Its
//! digests are replaced by ours, so that sessions, counters and executions meet; its texts never go out as they are.

use std::collections::{BTreeMap, HashMap, HashSet};

use holdup_recording::rows::{Event, Statement};
use holdup_recording::{Batch, Labels, clock};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::Read;
use super::probe::History;
use super::server::{Columns, Failure, Server};

/// Most digests that are read, those with the most time first.
const DIGESTS: usize = 500;

/// Up to so many digests are read at every sample, more at every [`SPARSE`]th.
const FEW: usize = 200;

/// See [`FEW`].
const SPARSE: u64 = 5;

/// Executions that ended so long before the last read are looked for again: an ended one enters the history a little late.
const OVERLAP_NS: i64 = 200_000_000;

/// Text for the row in which the server counts all that found no place in its table of digests.
const BEYOND: &str = "(statements beyond the server's table of digests)";

/// What is remembered between reads.
#[derive(Default)]
pub(super) struct Statements {
    reads: u64,
    digests: usize,
    /// The server's statement timer at the last read, nanoseconds.
    last_ns: Option<i64>,
    /// Executions already taken that the next read will see again: thread, event.
    seen: HashSet<(i64, i64)>,
    /// Instrumented thread -> connection.
    connections: HashMap<i64, i64>,
    /// Whether the last read found the history overrun.
    overrun: bool,
}

impl Statements {
    /// Counters by digest, summed where several of the server's digests are one of ours.
    pub(super) fn digests(&mut self, server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
        self.reads += 1;
        if self.digests >= FEW && self.reads % SPARSE != 1 {
            return Ok(());
        }
        let mut read = Read::begin(source);
        let rows = server.rows(&format!(
            "SELECT SCHEMA_NAME, DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT DIV 1000, SUM_LOCK_TIME DIV 1000, SUM_ROWS_EXAMINED, \
             SUM_ROWS_SENT, SUM_ERRORS FROM performance_schema.events_statements_summary_by_digest \
             ORDER BY SUM_TIMER_WAIT DESC LIMIT {DIGESTS}"
        ))?;
        read.end();
        self.digests = rows.len();
        let mut totals: BTreeMap<(Option<String>, String), Statement> = BTreeMap::new();
        for row in &rows {
            let text = row.text(1).map_or_else(|| BEYOND.to_owned(), |text| digest_text(text, Dialect::MySql));
            let digest = digest_of_text(&text);
            if server.is_own(&digest) {
                continue;
            }
            let number = |index| row.int(index).unwrap_or(0);
            let total = totals.entry((row.text(0), digest.clone())).or_insert_with(|| Statement {
                at: read.at(),
                source: source.to_owned(),
                kind: "digest_total".to_owned(),
                session_id: None,
                digest,
                digest_text: text,
                database: row.text(0),
                calls: 0,
                duration_ns: 0,
                lock_ns: 0,
                rows_examined: 0,
                rows_sent: 0,
                errors: 0,
                trace_id: None,
            });
            total.calls += number(2);
            total.duration_ns = total.duration_ns.saturating_add(number(3));
            total.lock_ns = total.lock_ns.saturating_add(number(4));
            total.rows_examined = total.rows_examined.saturating_add(number(5));
            total.rows_sent = total.rows_sent.saturating_add(number(6));
            total.errors += number(7);
        }
        batch.statements.extend(totals.into_values());
        Ok(())
    }

    /// Executions that ended since the last read; the first read only takes the time.
    ///
    /// The server times them on a clock of its own. A read of ours is on that clock too, and happened between two moments of
    /// our clock: the middle of these is taken, and half their distance recorded as
    /// `mysql_statement_timer_error_seconds`. `at` of every execution may be off by that much.
    pub(super) fn executions(
        &mut self,
        server: &Server,
        history: History,
        source: &str,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        let mut read = Read::begin(source);
        let own = server.rows(
            "SELECT TIMER_START DIV 1000, THREAD_ID FROM performance_schema.events_statements_current WHERE THREAD_ID = \
             (SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()) ORDER BY EVENT_ID LIMIT 1",
        )?;
        read.end();
        let Some((now_ns, own_thread)) = own.first().and_then(|row| row.int(0).zip(row.int(1))) else {
            return Err(Failure::Server(0, "the server's statement timer could not be read".to_owned()));
        };
        let offset_ns = read.at() - now_ns;
        batch.samples.push(read.sample(
            "mysql_statement_timer_error_seconds",
            Labels::none(),
            read.window_ns() as f64 / 2e9,
        ));
        let Some(last_ns) = self.last_ns.replace(now_ns).filter(|last| *last <= now_ns) else {
            self.seen.clear();
            self.connections.clear();
            return Ok(());
        };
        // In picoseconds since the server started this exceeds 63 bits after 106 days.
        let after_ps = i128::from((last_ns - OVERLAP_NS).max(0)) * 1_000;
        let rows = server.rows(&format!(
            "SELECT THREAD_ID, EVENT_ID, TIMER_END DIV 1000, TIMER_WAIT DIV 1000, LOCK_TIME DIV 1000, ROWS_EXAMINED, ROWS_SENT, ERRORS, \
             CURRENT_SCHEMA, DIGEST_TEXT, SQL_TEXT, EVENT_NAME FROM performance_schema.{} WHERE TIMER_END > {after_ps}",
            history.table
        ))?;
        let before = std::mem::take(&mut self.seen);
        let mut fresh: HashMap<i64, usize> = HashMap::new();
        let mut taken = Vec::new();
        for row in &rows {
            let (Some(thread), Some(event), Some(end_ns)) = (row.int(0), row.int(1), row.int(2)) else { continue };
            if end_ns > now_ns - OVERLAP_NS {
                self.seen.insert((thread, event));
            }
            if before.contains(&(thread, event)) {
                continue;
            }
            *fresh.entry(thread).or_default() += 1;
            if thread != own_thread && is_statement(&row.text(11).unwrap_or_default()) && row.text(10).is_some() {
                taken.push((thread, end_ns, row));
            }
        }
        if taken.iter().any(|(thread, _, _)| !self.connections.contains_key(thread)) {
            self.connections = connections(server)?;
        }
        for (thread, end_ns, row) in taken {
            let sql = row.text(10).unwrap_or_default();
            if sql.starts_with(super::server::MARKER) {
                continue;
            }
            // The server's text of the shape is whole where its copy of the statement is cut.
            let text =
                digest_text(row.text(9).filter(|text| !text.is_empty()).as_ref().unwrap_or(&sql), Dialect::MySql);
            let number = |index| row.int(index).unwrap_or(0);
            batch.statements.push(Statement {
                at: end_ns + offset_ns,
                source: source.to_owned(),
                kind: "execution".to_owned(),
                session_id: self.connections.get(&thread).copied(),
                digest: digest_of_text(&text),
                digest_text: text,
                database: row.text(8),
                calls: 1,
                duration_ns: number(3),
                lock_ns: number(4),
                rows_examined: number(5),
                rows_sent: number(6),
                errors: number(7),
                trace_id: trace_id(&sql),
            });
        }
        self.note_overrun(history, &fresh, &read, batch);
        Ok(())
    }

    /// Says whether more ended between two reads than the server keeps.
    fn note_overrun(&mut self, history: History, fresh: &HashMap<i64, usize>, read: &Read<'_>, batch: &mut Batch) {
        let most = if history.per_connection { fresh.values().copied().max() } else { Some(fresh.values().sum()) };
        let overrun = history.size > 0 && most.unwrap_or(0) >= history.size;
        batch.samples.push(read.sample(
            "mysql_statement_history_overrun",
            Labels::none(),
            f64::from(u8::from(overrun)),
        ));
        if overrun && !self.overrun {
            batch.events.push(Event {
                at: clock::now_ns(),
                source: read.source.to_owned(),
                kind: "sampled".to_owned(),
                text: format!(
                    "more executions ended between two reads than {} keeps ({}{}): from here on they are a sample",
                    history.table,
                    history.size,
                    if history.per_connection { " a connection" } else { "" }
                ),
                labels: Labels::none(),
            });
        }
        self.overrun = overrun;
    }

    /// Forgets what belongs to a connection that is lost: the server may have restarted, its clock and ids with it.
    pub(super) fn forget(&mut self) {
        (self.last_ns, self.reads, self.digests) = (None, 0, 0);
    }
}

/// Whether an event is a statement by itself: not a step of a stored program, whose time is in its caller's, and not the
/// preparation of one that is run later.
fn is_statement(event: &str) -> bool {
    !event.starts_with("statement/sp/") && event != "statement/com/Prepare"
}

fn connections(server: &Server) -> Result<HashMap<i64, i64>, Failure> {
    let rows = server
        .rows("SELECT THREAD_ID, PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL")?;
    Ok(rows.iter().filter_map(|row| row.int(0).zip(row.int(1))).collect())
}
