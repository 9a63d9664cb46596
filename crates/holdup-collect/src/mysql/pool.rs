//! MariaDB's thread pool: groups, queues, counters. [`sessions`](super::sessions) learns from it
//! which session waits in a queue.

use std::collections::HashMap;

use holdup_recording::metrics::Metric;
use holdup_recording::{Batch, Labels, metrics};

use super::ReadWindow;
use super::failure::Failure;
use super::server::Server;

/// Nanoseconds waited, by the connection id in the queue.
pub(super) type Queued = HashMap<i64, i64>;

const GROUPS: &str = "SELECT GROUP_ID, CONNECTIONS, THREADS, ACTIVE_THREADS, STANDBY_THREADS, QUEUE_LENGTH, IS_STALLED \
     FROM information_schema.THREAD_POOL_GROUPS";
const QUEUES: &str =
    "SELECT CONNECTION_ID, QUEUEING_TIME_MICROSECONDS, PRIORITY FROM information_schema.THREAD_POOL_QUEUES";
const WAITS: &str = "SELECT REASON, COUNT FROM information_schema.THREAD_POOL_WAITS";

/// Counters of `THREAD_POOL_STATS`, summed over the groups, which all serve the same clients.
const STATS: [(&str, Metric); 10] = [
    ("THREAD_CREATIONS", metrics::mysql::THREAD_POOL_THREAD_CREATIONS),
    ("THREAD_CREATIONS_DUE_TO_STALL", metrics::mysql::THREAD_POOL_THREAD_CREATIONS_DUE_TO_STALL),
    ("WAKES", metrics::mysql::THREAD_POOL_WAKES),
    ("WAKES_DUE_TO_STALL", metrics::mysql::THREAD_POOL_WAKES_DUE_TO_STALL),
    ("THROTTLES", metrics::mysql::THREAD_POOL_THROTTLES),
    ("STALLS", metrics::mysql::THREAD_POOL_STALLS),
    ("POLLS_BY_LISTENER", metrics::mysql::THREAD_POOL_POLLS_BY_LISTENER),
    ("POLLS_BY_WORKER", metrics::mysql::THREAD_POOL_POLLS_BY_WORKER),
    ("DEQUEUES_BY_LISTENER", metrics::mysql::THREAD_POOL_DEQUEUES_BY_LISTENER),
    ("DEQUEUES_BY_WORKER", metrics::mysql::THREAD_POOL_DEQUEUES_BY_WORKER),
];

/// The queue at this moment: adds samples to `batch`, and returns it for the sessions.
pub(super) fn queues(server: &Server, source: &str, batch: &mut Batch) -> Result<Queued, Failure> {
    let mut read = ReadWindow::begin(source);
    let rows = server.rows(QUEUES)?;
    read.end();
    let mut queued = Queued::new();
    let (mut longest_us, mut unknown) = (0, 0.0);
    for row in &rows {
        let waited_us = row.int(1).unwrap_or(0);
        longest_us = longest_us.max(waited_us);
        match row.int(0) {
            Some(id) => {
                queued.insert(id, waited_us.saturating_mul(1_000));
            }
            None => unknown += 1.0,
        }
    }
    for (metric, value) in [
        (metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS, rows.len() as f64),
        // A connection that has not logged in yet, or a server that hides the id.
        (metrics::mysql::THREAD_POOL_QUEUED_UNKNOWN_CONNECTIONS, unknown),
        (metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX, longest_us as f64 / 1e6),
    ] {
        batch.samples.push(read.sample(metric, Labels::none(), value));
    }
    Ok(queued)
}

/// Adds the pool's groups and counters.
pub(super) fn sample(server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
    let mut read = ReadWindow::begin(source);
    let rows = server.rows(GROUPS)?;
    read.end();
    let mut queue_length = 0.0;
    for row in &rows {
        let group = Labels::new([("group", row.text(0).unwrap_or_default())]);
        for (index, metric) in [
            (1, metrics::mysql::THREAD_POOL_GROUP_CONNECTIONS),
            (2, metrics::mysql::THREAD_POOL_GROUP_THREADS),
            (3, metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS),
            (4, metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS),
            (5, metrics::mysql::THREAD_POOL_GROUP_QUEUE_LENGTH),
            (6, metrics::mysql::THREAD_POOL_GROUP_STALLED),
        ] {
            let Some(value) = row.float(index) else { continue };
            queue_length += if metric == metrics::mysql::THREAD_POOL_GROUP_QUEUE_LENGTH { value } else { 0.0 };
            batch.samples.push(read.sample(metric, group.clone(), value));
        }
    }
    batch.samples.push(read.sample(metrics::mysql::THREAD_POOL_QUEUE_LENGTH, Labels::none(), queue_length));
    let sums: Vec<String> = STATS.iter().map(|(column, _)| format!("SUM({column})")).collect();
    let mut read = ReadWindow::begin(source);
    let rows = server.rows(&format!("SELECT {} FROM information_schema.THREAD_POOL_STATS", sums.join(", ")))?;
    read.end();
    for (index, (_, metric)) in STATS.iter().enumerate() {
        if let Some(value) = rows.first().and_then(|row| row.float(index)) {
            batch.samples.push(read.sample(metric, Labels::none(), value));
        }
    }
    let mut read = ReadWindow::begin(source);
    let rows = server.rows(WAITS)?;
    read.end();
    for row in &rows {
        if let (Some(reason), Some(value)) = (row.text(0), row.float(1)) {
            batch.samples.push(read.sample(
                metrics::mysql::THREAD_POOL_WAITS,
                Labels::new([("reason", reason)]),
                value,
            ));
        }
    }
    Ok(())
}
