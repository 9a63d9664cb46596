//! Logs of MongoDB's servers: each `Slow query`, in JSON since 4.4 and as text before, with its plan and
//! the server's own figures; and what the server says of its own work. It reads a line at a time, and
//! leaves the line itself to `holdup-mongodb`.

use holdup_mongodb::{LogLine, Logged, Message, OWN_NAME, SlowOperation, is_log_json, is_log_text, logged};

use crate::digest::attribute::{ERRORS, LOCK_TIME, QUERY_TIME, ROWS_EXAMINED, ROWS_SENT};
use crate::digest::block::Block;
use crate::digest::event::{Event, Kind, Position};
use crate::digest::plan::LoggedPlan;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// Bytes in front of a line of JSON that a collector of logs may have added.
const MOST_PREFIX: usize = 120;

/// Counts of an operation, and their attributes.
const COUNTS: [(&str, &str); 4] = [
    ("keys_examined", "Keys_examined"),
    ("write_conflicts", "Write_conflicts"),
    ("yields", "Yields"),
    ("response_bytes", "Bytes_sent"),
];

/// Times of an operation, and their attributes.
const TIMES: [(&str, &str); 9] = [
    ("storage_read", "Storage_read_time"),
    ("storage_write", "Storage_write_time"),
    ("cache_wait", "Cache_wait"),
    ("schema_lock_wait", "Schema_lock_wait"),
    ("handle_lock_wait", "Handle_lock_wait"),
    ("flow_control_wait", "Flow_control_wait"),
    ("ticket_wait", "Ticket_wait"),
    ("write_concern_wait", "Write_concern_wait"),
    ("cpu", "Cpu_time"),
];

/// A reader of such logs.
#[derive(Debug, Default)]
pub struct Mongod;

/// How many of the first lines belong to such a log.
pub fn likeness(head: &[u8]) -> usize {
    let lines = head.split(|byte| *byte == b'\n').take(50);
    lines.filter(|line| is_log_json(after_prefix(line)) || is_log_text(&String::from_utf8_lossy(line))).count()
}

/// Whether half of the first lines at least belong to such a log.
pub fn is_log(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(50).count();
    lines > 0 && 2 * likeness(head) >= lines
}

/// The line without what a collector of logs put in front of its JSON.
fn after_prefix(line: &[u8]) -> &[u8] {
    let head = line.get(..line.len().min(MOST_PREFIX)).unwrap_or_default();
    let at = memchr::memchr(b'{', head).filter(|at| line.get(*at..).is_some_and(is_log_json));
    at.and_then(|at| line.get(at..)).unwrap_or(line)
}

impl Mongod {
    /// Reads a block of whole lines.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        for (at, line, is_cut) in block.lines() {
            Self::line(after_prefix(line), block.position(at), is_cut, tally);
        }
    }

    fn line(line: &[u8], position: Position, is_cut: bool, tally: &mut Tally) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        match logged(&text) {
            Some(Logged { at, zone_seconds, connection, line: LogLine::Slow(slow) }) => {
                if slow.application.as_deref() == Some(OWN_NAME) {
                    return tally.server.count("operations_of_holdup");
                }
                let at_us = at / 1_000 + zone_seconds * 1_000_000;
                operation(&slow, (at_us, connection), position, tally);
            }
            Some(Logged { line: LogLine::Message(message), .. }) => count(&message, tally),
            Some(_) => {}
            None => tally.problems.add(if is_cut { Problem::TooLong } else { Problem::Malformed }, position),
        }
    }
}

/// Counts an operation that ended at `ended_us`.
fn operation(slow: &SlowOperation, (ended_us, connection): (i64, Option<i64>), position: Position, tally: &mut Tally) {
    let took_us = u64::try_from(slow.duration_ns / 1_000).unwrap_or(0);
    let mut measures = vec![(QUERY_TIME, took_us), (ERRORS, u64::from(slow.error.is_some()))];
    for (name, number) in [("documents_examined", ROWS_EXAMINED), ("returned", ROWS_SENT)] {
        measures.extend(slow.count(name).map(|count| (number, count)));
    }
    measures.extend(slow.time_ns("lock_wait").map(|wait_ns| (LOCK_TIME, microseconds(wait_ns))));
    let changed = slow.changed();
    for (name, attribute) in COUNTS {
        let count = slow.count(name);
        measures.extend(count.and_then(|count| Some((tally.attributes.number(attribute.as_bytes())?, count))));
    }
    for (name, attribute) in TIMES {
        let time = slow.time_ns(name).map(microseconds);
        measures.extend(time.and_then(|time| Some((tally.attributes.number(attribute.as_bytes())?, time))));
    }
    if changed > 0 {
        measures.extend(tally.attributes.number(b"Rows_affected").map(|number| (number, changed)));
    }
    let mut flags = Vec::new();
    for (name, is_so) in [("Filesort", slow.has_sort), ("Filesort_on_disk", slow.used_disk)] {
        flags.extend(tally.attributes.number(name.as_bytes()).map(|number| (number, is_so)));
    }
    if slow.plan.is_some() {
        flags.extend(tally.attributes.number(b"Full_scan").map(|number| (number, slow.is_scan)));
    }
    let host = slow.client.as_deref().map_or("", |client| client.rsplit_once(':').map_or(client, |(host, _)| host));
    let event = Event {
        kind: Kind::Shaped,
        sql: slow.shape.as_bytes(),
        position,
        at_us: Some(ended_us.saturating_sub(i64::try_from(took_us).unwrap_or(0))),
        ended_us: Some(ended_us),
        session: connection.and_then(|id| u64::try_from(id).ok()).unwrap_or(0),
        user: slow.user.as_deref().unwrap_or_default().as_bytes(),
        host: host.as_bytes(),
        database: slow.database.as_bytes(),
        application: slow.application.as_deref().unwrap_or_default().as_bytes(),
        measures: &measures,
        flags: &flags,
        ..Event::default()
    };
    tally.add(&event);
    if let Some(plan) = &slow.plan {
        let plan = LoggedPlan { shape: plan.clone(), steps: plan.clone() };
        tally.add_plan(&event, &plan, took_us);
    }
}

fn microseconds(ns: i64) -> u64 {
    u64::try_from(ns / 1_000).unwrap_or(0)
}

/// Counts what the server did itself.
fn count(message: &Message, tally: &mut Tally) {
    let server = &mut tally.server;
    match message {
        Message::IndexBegun(_) => server.count("index_builds_begun"),
        Message::IndexScanned(ns) => server.figure("index_build_scan_us", microseconds(*ns)),
        Message::IndexDone(collection) => {
            server.count("index_builds_done");
            server.named("index_builds_by_collection", collection.as_bytes(), 0);
        }
        Message::Checkpoint { is_over: false, .. } => {}
        Message::Checkpoint { seconds, megabytes, is_over: true } => {
            server.figure("long_checkpoint_us", seconds.saturating_mul(1_000_000));
            server.figure("long_checkpoint_megabytes", *megabytes);
        }
        Message::FlowControl => server.count("flow_control_engaged"),
        Message::Connected => server.count("connections_accepted"),
        Message::Disconnected => server.count("connections_ended"),
    }
}

#[cfg(test)]
mod tests;
