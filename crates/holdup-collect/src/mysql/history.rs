//! Single executions from the server's history: its own timing of each, the connection, the trace
//! id. Texts leave as digest texts only. It cannot see executions that the server has already
//! overwritten, and reports that.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use holdup_recording::{Labels, metrics};

use super::execution::{self, COLUMNS, Execution, STATEMENTS, picoseconds};
use super::failure::Failure;
use super::recorded::RecordedExecutions;
use super::server::Server;
use crate::reading::Out;

/// Where the server keeps executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct History {
    /// The table's name.
    pub(super) table: &'static str,
    /// Rows it holds, in total or per connection.
    pub(super) size: usize,
    /// Whether `size` counts per connection.
    pub(super) per_connection: bool,
    /// The table of the executions' stages, if they are on.
    pub(super) stages: Option<&'static str>,
}

/// Approximate number of executions per read. From more than that a sample is taken, so that
/// watching a busy server stays cheap.
pub(super) const MOST: i64 = 2_000;

/// Largest number of rows in one answer, far more than such a sample has.
const ROWS_MAX: i64 = 4 * MOST;

/// Each read goes back this long before the last one: a finished execution enters the history a
/// little late.
const OVERLAP_NS: i64 = 200_000_000;

/// A long history is read less often than once a sample: reading takes the server some 4 µs per
/// kept row, new or not (measured on MariaDB 10.11), and may take one part in this many of a core.
const SHARE: u32 = 100;

/// Longest pause between two reads.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Number of reads whose shortest time counts, because a read on a stalled machine says nothing
/// about its cost.
const COUNTED: usize = 3;

/// State between reads over one connection.
#[derive(Default)]
pub(super) struct Executions {
    /// Shared with the capture, which reads the same history.
    pub(super) recorded: RecordedExecutions,
    /// holdup's own instrumented thread.
    own_thread: Option<i64>,
    /// The server's statement timer at the first and at the last read, nanoseconds.
    first_and_last_ns: Option<(i64, i64)>,
    /// Connection ids by instrumented thread.
    connections: HashMap<i64, i64>,
    /// The text of the last event about left-out executions.
    said: Option<String>,
    /// How long the last reads took, and when the last one was.
    took: Vec<Duration>,
    read_at: Option<Instant>,
}

impl Executions {
    /// Adds the executions that ended since the last read; the first read only notes the time.
    /// Unless `at_once`, a read that is costly for the server is postponed: the next one covers the
    /// same executions.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        history: History,
        at_once: bool,
        out: &mut Out,
    ) -> Result<(), Failure> {
        if !at_once && self.read_at.is_some_and(|at| at.elapsed() < self.pause()) {
            return Ok(());
        }
        let begun = Instant::now();
        out.begin();
        let own_thread = match self.own_thread {
            Some(thread) => thread,
            None => *self.own_thread.insert(execution::own_thread(server)?),
        };
        let timer = execution::timer(server, own_thread)?;
        let Some((first_ns, last_ns)) = self.first_and_last_ns else {
            self.first_and_last_ns = Some((timer.now_ns, timer.now_ns));
            return Ok(());
        };
        let (table, after) = (history.table, picoseconds(last_ns));
        let counts = server.rows(&format!(
            "SELECT MAX(holdup.n), SUM(holdup.n) FROM (SELECT COUNT(*) AS n FROM performance_schema.{table} \
             WHERE TIMER_END > {after} GROUP BY THREAD_ID) AS holdup"
        ))?;
        let count = |index| counts.first().and_then(|row| row.int(index)).unwrap_or(0);
        let (most_of_one, all) = (count(0), count(1));
        let every = all / MOST + 1;
        let rows = server.rows(&format!(
            "SELECT {COLUMNS} FROM performance_schema.{table} WHERE TIMER_END > {} \
             AND THREAD_ID <> {own_thread} AND {STATEMENTS}{} LIMIT {ROWS_MAX}",
            picoseconds((last_ns - OVERLAP_NS).max(first_ns)),
            sampled(every, "EVENT_ID")
        ))?;
        out.at();
        self.took.truncate(COUNTED - 1);
        self.took.insert(0, begun.elapsed());
        self.read_at = Some(Instant::now());
        self.first_and_last_ns = Some((first_ns, timer.now_ns));
        let is_fresh = |execution: &Execution| self.recorded.mark(execution.thread, execution.event, execution.end_ns);
        let fresh: Vec<Execution> = rows.iter().filter_map(Execution::from_row).filter(is_fresh).collect();
        if fresh.iter().any(|execution| !self.connections.contains_key(&execution.thread)) {
            self.connections = execution::connections(server)?;
        }
        let source = out.source();
        let statements = fresh.iter().map(|execution| execution.row(source, &self.connections, timer));
        out.batch.statements.extend(statements);
        let kept = i64::try_from(history.size).unwrap_or(i64::MAX);
        let newest = if history.per_connection { most_of_one } else { all };
        // Rows written during the read are hidden, so a history that is entirely new may lack a
        // few.
        let overrun = kept > 0 && newest + newest / 50 >= kept;
        for (metric, value) in [
            (metrics::mysql::STATEMENT_TIMER_ERROR, timer.error_ns as f64 / 1e9),
            (metrics::mysql::STATEMENT_HISTORY_OVERRUN, f64::from(u8::from(overrun))),
            (metrics::mysql::STATEMENT_HISTORY_READ_RATIO, 1.0 / every as f64),
        ] {
            out.put_plain(metric, value);
        }
        self.say_what_is_left_out(history, overrun, every, out);
        let Some(stages) = history.stages else { return Ok(()) };
        // Of the same sample.
        let chosen = sampled(every, "NESTING_EVENT_ID");
        let steps = execution::stages(server, source, (stages, &chosen), &fresh, &self.connections, timer)?;
        out.batch.stages.extend(steps);
        Ok(())
    }

    /// The pause between two reads.
    fn pause(&self) -> Duration {
        let shortest = self.took.iter().min().filter(|_| self.took.len() == COUNTED);
        shortest.map_or(Duration::ZERO, |took| (*took * SHARE).min(PAUSE_MAX))
    }

    /// Adds an event whenever the reasons for left-out executions change.
    fn say_what_is_left_out(&mut self, history: History, overrun: bool, every: i64, out: &mut Out) {
        let mut parts = Vec::new();
        if overrun {
            let each = if history.per_connection { " of each connection" } else { "" };
            parts.push(format!(
                "more executions end between two reads than {} keeps ({}{each})",
                history.table, history.size
            ));
        }
        if every > 1 {
            parts.push("holdup reads a random sample of those it keeps".to_owned());
        }
        let text = (!parts.is_empty()).then(|| format!("executions are a sample: {}", parts.join("; ")));
        if let Some(text) = text.clone().filter(|text| self.said.as_ref() != Some(text)) {
            out.say("sampled", text, Labels::none());
        }
        self.said = text;
    }

    /// Forgets the state of a lost connection: a server restart resets its timer and ids.
    pub(super) fn forget(&mut self) {
        self.recorded.forget();
        *self = Self { recorded: self.recorded.clone(), ..Self::default() };
    }
}

/// Selects one of `every` executions, whose event id is in `column`. The id is hashed, so that a
/// session which repeats a sequence of statements is not always sampled at the same step.
fn sampled(every: i64, column: &str) -> String {
    if every > 1 { format!(" AND CRC32(CONCAT(THREAD_ID, '-', {column})) % {every} = 0") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_history_is_read_less_often_and_a_stall_is_not_its_cost() {
        let took = |times: &[u64]| Executions {
            took: times.iter().copied().map(Duration::from_millis).collect(),
            ..Executions::default()
        };
        assert_eq!(took(&[900, 900]).pause(), Duration::ZERO, "too few to know");
        assert_eq!(took(&[900, 1, 900]).pause(), Duration::from_millis(100));
        assert_eq!(took(&[40, 45, 50]).pause(), Duration::from_secs(4));
        assert_eq!(took(&[400, 450, 500]).pause(), PAUSE_MAX);
    }
}
