//! MariaDB's thread pool: groups, queues, counters. [`sessions`](super::sessions) learns from it
//! which session waits in a queue.

use std::collections::HashMap;

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use super::failure::Failure;
use super::server::Server;
use crate::reading::Out;

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

/// Columns of `THREAD_POOL_GROUPS` behind the group's number.
const GROUP: [Metric; 6] = [
    metrics::mysql::THREAD_POOL_GROUP_CONNECTIONS,
    metrics::mysql::THREAD_POOL_GROUP_THREADS,
    metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS,
    metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS,
    metrics::mysql::THREAD_POOL_GROUP_QUEUE_LENGTH,
    metrics::mysql::THREAD_POOL_GROUP_STALLED,
];

/// The queue at this moment: adds its samples, and returns it for the sessions.
pub(super) fn queues(server: &Server, out: &mut Out) -> Result<Queued, Failure> {
    let rows = out.read(|| server.rows(QUEUES))?;
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
    out.put_plain(metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS, rows.len() as f64);
    // A connection that has not logged in yet, or a server that hides the id.
    out.put_plain(metrics::mysql::THREAD_POOL_QUEUED_UNKNOWN_CONNECTIONS, unknown);
    out.put_plain(metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX, longest_us as f64 / 1e6);
    Ok(queued)
}

/// Adds the pool's groups and counters.
pub(super) fn sample(server: &Server, out: &mut Out) -> Result<(), Failure> {
    let rows = out.read(|| server.rows(GROUPS))?;
    for row in &rows {
        let group = Labels::new([("group", row.text(0).unwrap_or_default())]);
        out.put_known(&group, GROUP.into_iter().zip(1..).map(|(metric, place)| (metric, row.float(place))));
    }
    let queue_length = rows.iter().filter_map(|row| row.float(5)).sum();
    out.put_plain(metrics::mysql::THREAD_POOL_QUEUE_LENGTH, queue_length);
    let sums: Vec<String> = STATS.iter().map(|(column, _)| format!("SUM({column})")).collect();
    let sql = format!("SELECT {} FROM information_schema.THREAD_POOL_STATS", sums.join(", "));
    for row in out.read(|| server.rows(&sql))?.iter().take(1) {
        out.put_known(&Labels::none(), STATS.iter().zip(0..).map(|((_, metric), place)| (metric, row.float(place))));
    }
    for row in out.read(|| server.rows(WAITS))? {
        if let Some(reason) = row.text(0) {
            let labels = Labels::new([("reason", reason)]);
            out.put_known(&labels, [(metrics::mysql::THREAD_POOL_WAITS, row.float(1))]);
        }
    }
    Ok(())
}
