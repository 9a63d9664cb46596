//! The database's statements of a slow request, read as soon as the request has ended, before the
//! server overwrites them. A separate thread and connection watch the list of slow requests and
//! look up their trace ids in the history. The regular read does not wait for it, and no execution
//! is recorded twice.
//!
//! The cost for the server is bounded: a look takes it some microseconds per row of its history,
//! and each look is followed by a pause [`SHARE`] times as long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::{Batch, Labels, clock};

use super::address::Address;
use super::execution::{self, COLUMNS, Execution, STATEMENTS, Timer, picoseconds};
use super::failure::Failure;
use super::recorded::{REMEMBERED_NS, RecordedExecutions};
use super::server::{OwnDigests, Server};
use crate::connections::Connections;
use crate::own_thread::{OwnThread, lock};
use crate::reading::event;
use crate::slow::{Reader, SlowRequest, SlowRequests};

/// Largest number of trace ids per look: each adds one comparison per row.
const IDS_MAX: usize = 16;

/// Numbers of ids that statements are built for, so that the server's digest table gets three
/// shapes instead of sixteen.
const IDS_STEPS: [usize; 3] = [1, 4, IDS_MAX];

/// The pause after a look, as a multiple of its duration: at most 1 % of one core.
const SHARE: u32 = 100;

/// The same for repeated looks, which may go to a much longer table: half a percent.
const SHARE_AGAIN: u32 = 200;

/// Shortest and longest pause between two looks. A stalled machine makes a look seem costly, so
/// there is a maximum.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// How often the thread checks whether it should end.
const WAIT: Duration = Duration::from_millis(100);

/// Largest number of looks per request: a statement may still be running when its request was given
/// up.
const TRIES: u32 = 3;

/// Largest difference between the clocks of the reporter and of the server; within it a statement
/// counts as the request's.
const SLACK_NS: i64 = 50_000_000;

/// Largest number of executions that one look reads from those connections.
const ROWS_MAX: u32 = 2_000;

/// Tables in which the server keeps executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryTables {
    /// The first table to search.
    pub(super) first: &'static str,
    /// A longer one, for requests that the first has already forgotten.
    pub(super) then: Option<&'static str>,
    /// The table of stages, if they are on.
    pub(super) stages: Option<&'static str>,
}

/// The thread that waits for slow requests; dropping this ends it.
pub(super) struct Capture {
    end: Arc<AtomicBool>,
    caught: Arc<Mutex<Batch>>,
    thread: OwnThread,
}

impl Capture {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        (address, source): (&Address, &str),
        board: &SlowRequests,
        places: HistoryTables,
        recorded: &RecordedExecutions,
        (own, connections): (&OwnDigests, &Connections),
    ) -> std::io::Result<Self> {
        let (end, caught) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Batch::default())));
        let mut look = CaptureLoop {
            address: address.clone(),
            source: source.to_owned(),
            places,
            recorded: recorded.clone(),
            own: own.clone(),
            connections: connections.clone(),
            server: None,
            reader: board.reader(),
            end: Arc::clone(&end),
            caught: Arc::clone(&caught),
        };
        let thread = OwnThread::spawn("collect captured", move || look.run())?;
        Ok(Self { end, caught, thread })
    }

    /// Whether its thread has panicked.
    pub(super) fn has_panicked(&mut self) -> bool {
        self.thread.has_panicked()
    }

    /// Takes the statements captured since the last call.
    pub(super) fn take(&self) -> Batch {
        std::mem::take(&mut lock(&self.caught))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

struct CaptureLoop {
    address: Address,
    source: String,
    places: HistoryTables,
    recorded: RecordedExecutions,
    own: OwnDigests,
    connections: Connections,
    /// The connection and its own instrumented thread.
    server: Option<(Server, i64)>,
    reader: Reader,
    end: Arc<AtomicBool>,
    caught: Arc<Mutex<Batch>>,
}

/// A slow request whose statements are wanted.
struct CaptureRequest {
    slow: SlowRequest,
    tries: u32,
}

impl CaptureLoop {
    fn run(&mut self) {
        // Requests without statements so far: searched again while no new ones arrive.
        let mut late: VecDeque<CaptureRequest> = VecDeque::new();
        let (mut next, mut next_again) = (Instant::now(), Instant::now());
        while !self.end.load(Ordering::Relaxed) {
            let rest = next.saturating_duration_since(Instant::now());
            if !rest.is_zero() {
                std::thread::sleep(rest.min(WAIT));
                continue;
            }
            let fresh = self.reader.wait(WAIT, IDS_MAX);
            let is_fresh = !fresh.is_empty();
            let wanted: Vec<CaptureRequest> = if is_fresh {
                fresh.into_iter().map(|slow| CaptureRequest { slow, tries: 0 }).collect()
            } else if Instant::now() >= next_again {
                late.drain(..).collect()
            } else {
                continue;
            };
            if wanted.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let table = self.places.then.filter(|_| !is_fresh).unwrap_or(self.places.first);
            match self.look(table, &wanted) {
                Ok((batch, missing)) => {
                    late.extend(missing);
                    lock(&self.caught).append(batch);
                }
                Err(failure) => {
                    if !matches!(failure, Failure::Server(..)) {
                        self.server = None;
                    }
                    late.extend(wanted.into_iter().map(|one| CaptureRequest { tries: one.tries + 1, ..one }));
                }
            }
            self.give_up(&mut late);
            let pause = |share| Instant::now() + (begun.elapsed() * share).clamp(PAUSE.0, PAUSE.1);
            if is_fresh {
                next = pause(SHARE);
            } else {
                next_again = pause(SHARE_AGAIN);
            }
        }
    }

    /// Reports the requests without statements, and forgets them.
    fn give_up(&self, late: &mut VecDeque<CaptureRequest>) {
        let mut batch = Batch::default();
        while let Some(at) =
            late.iter().position(|one| one.tries >= TRIES).or_else(|| (late.len() > IDS_MAX).then_some(0))
        {
            if let Some(one) = late.remove(at) {
                let why = "no statement in the server's history carries its trace id: is the id in a comment of each statement, and is the history long enough?";
                batch.events.push(self.event(&one.slow, 0, why));
            }
        }
        lock(&self.caught).append(batch);
    }

    /// Searches for `wanted` once: the statements, and the requests without any.
    fn look(&mut self, table: &str, wanted: &[CaptureRequest]) -> Result<(Batch, Vec<CaptureRequest>), Failure> {
        if self.server.is_none() {
            let connections = &self.connections;
            let server = connections.attempt(|| Server::reach(&self.address, &self.own, connections))?;
            let thread = execution::own_thread(&server)?;
            self.server = Some((server, thread));
        }
        let Some((server, own_thread)) = &self.server else { return Ok((Batch::default(), Vec::new())) };
        let timer = execution::timer(server, *own_thread)?;
        let found = find(server, table, *own_thread, timer, wanted)?;
        let (mut batch, mut missing, mut executions) = (Batch::default(), Vec::new(), Vec::new());
        for one in wanted {
            let of_it = belonging(&found, &one.slow, timer);
            if of_it.is_empty() {
                missing.push(CaptureRequest { slow: one.slow.clone(), tries: one.tries + 1 });
                continue;
            }
            let why = format!("took {} ms", (one.slow.ended_at - one.slow.begun_at) / 1_000_000);
            batch.events.push(self.event(&one.slow, of_it.len(), &why));
            let is_fresh = |e: &&Execution| self.recorded.mark(e.thread, e.event, e.end_ns);
            executions.extend(of_it.into_iter().filter(is_fresh).cloned());
        }
        if executions.is_empty() {
            return Ok((batch, missing));
        }
        let connections = execution::connections(server)?;
        batch.statements.extend(executions.iter().map(|e| e.row(&self.source, &connections, timer)));
        if let Some(stages) = self.places.stages {
            let threads: BTreeSet<String> = executions.iter().map(|e| e.thread.to_string()).collect();
            let chosen = format!(" AND THREAD_ID IN ({})", threads.into_iter().collect::<Vec<_>>().join(", "));
            let steps = execution::stages(server, &self.source, (stages, &chosen), &executions, &connections, timer)?;
            batch.stages.extend(steps);
        }
        Ok((batch, missing))
    }

    fn event(&self, slow: &SlowRequest, statements: usize, why: &str) -> Event {
        let text = format!("{statements} statements of the slow request {}: {why}", slow.trace_id);
        let count = statements.to_string();
        let labels = Labels::new([("trace_id", slow.trace_id.as_str()), ("statements", &count), ("why", why)]);
        event(&self.source, clock::now_ns(), "captured", text, labels)
    }
}

/// Executions of all connections that ran a statement with one of the trace ids, since the start of
/// the first of those requests.
fn find(
    server: &Server,
    table: &str,
    own_thread: i64,
    timer: Timer,
    wanted: &[CaptureRequest],
) -> Result<Vec<Execution>, Failure> {
    let began_at = wanted.iter().map(|one| one.slow.begun_at).min().unwrap_or_default();
    // The regular read may have taken older executions, and forgotten since that it did.
    let after = (began_at - SLACK_NS - timer.offset_ns).max(timer.now_ns - REMEMBERED_NS);
    let ids: Vec<&str> = wanted.iter().map(|one| one.slow.trace_id.as_str()).collect();
    let read = |condition: &str| -> Result<Vec<Execution>, Failure> {
        let rows = server.rows(&format!(
            "SELECT {COLUMNS} FROM performance_schema.{table} WHERE TIMER_END > {} AND THREAD_ID <> {own_thread} \
             AND {STATEMENTS}{condition} LIMIT {ROWS_MAX}",
            picoseconds(after)
        ))?;
        Ok(rows.iter().filter_map(Execution::from_row).collect())
    };
    let of_ids = read(&has_any(&ids))?;
    let threads: BTreeSet<String> = of_ids.iter().map(|execution| execution.thread.to_string()).collect();
    if threads.is_empty() {
        return Ok(Vec::new());
    }
    let threads = threads.into_iter().collect::<Vec<_>>().join(", ");
    let mut all: BTreeMap<(i64, i64), Execution> = BTreeMap::new();
    for execution in of_ids.into_iter().chain(read(&format!(" AND THREAD_ID IN ({threads})"))?) {
        all.insert((execution.thread, execution.event), execution);
    }
    Ok(all.into_values().collect())
}

/// The condition that a statement's text contains one of `ids`, which are hex digits only; padded
/// to one of a few numbers of ids.
fn has_any(ids: &[&str]) -> String {
    let filled = IDS_STEPS.into_iter().find(|step| *step >= ids.len()).unwrap_or(IDS_MAX);
    let last = ids.last().copied();
    let conditions: Vec<String> =
        ids.iter().copied().chain(last).cycle().take(filled).map(|id| format!("SQL_TEXT LIKE '%{id}%'")).collect();
    format!(" AND ({})", conditions.join(" OR "))
}

/// The request's executions: those with its id, and those without any id that the same connection
/// ran meanwhile.
fn belonging<'a>(found: &'a [Execution], slow: &SlowRequest, timer: Timer) -> Vec<&'a Execution> {
    let is_named = |execution: &&Execution| execution.trace_id() == Some(slow.trace_id.as_str());
    let threads: BTreeSet<i64> = found.iter().filter(is_named).map(|execution| execution.thread).collect();
    let from = slow.begun_at - SLACK_NS - timer.offset_ns;
    let to = slow.ended_at + SLACK_NS - timer.offset_ns;
    let is_meanwhile = |execution: &Execution| {
        threads.contains(&execution.thread)
            && execution.trace_id().is_none()
            && execution.begin_ns() >= from
            && execution.end_ns <= to
    };
    found.iter().filter(|execution| is_named(execution) || is_meanwhile(execution)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_shapes_of_statements() {
        let ids = ["a", "b", "c", "d", "e"];
        assert_eq!(has_any(&ids[..1]), " AND (SQL_TEXT LIKE '%a%')");
        let count = |n: usize| has_any(&ids[..n]).matches("LIKE").count();
        assert_eq!((count(2), count(4), count(5)), (4, 4, 16));
        for id in ids {
            assert!(has_any(&ids).contains(&format!("'%{id}%'")), "{id} is looked for");
        }
    }
}
