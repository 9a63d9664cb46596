//! `SHOW REPLICA STATUS` and `SHOW SLAVE STATUS`, one row for each channel, mostly in the vertical form;
//! and what a replica of PostgreSQL says of itself. Of an error only its number and its beginning up
//! to the first literal are kept: the rest may hold values of a row.

use holdup_recording::metrics::{mysql, postgresql};
use holdup_recording::rows::Event;
use holdup_recording::{Labels, events};

use super::pg_units::{interval_s, position};
use super::{Context, Kind, Row, Table, clock, number, postgresql as pg, processlist};

pub(super) const KIND: Kind = Kind::table(
    "SHOW REPLICA STATUS",
    |columns| columns.has_any(&["Replica_IO_Running", "Slave_IO_Running", "Replica_IO_State", "Slave_IO_State"]),
    read,
);

/// A select of one's own, of several replicas.
pub(super) const LAGS: Kind = Kind::table("lag of replicas", |columns| columns.has_any(&LAG), read);

pub(super) const POSTGRESQL: Kind = Kind::table(
    "PostgreSQL replica",
    |columns| columns.has_any(&REPLAYED) || columns.has_any(&RECEIVED) && columns.has_any(&REPLAYED_TO),
    read_postgresql,
);

const LAG: [&str; 2] = ["Seconds_Behind_Source", "Seconds_Behind_Master"];

/// What tells replicas, or the channels of one, apart.
const CHANNEL: [&str; 6] = ["Channel_Name", "Connection_name", "hostname", "host", "instance", "server"];

/// Of each thread: whether it runs, the number of its last error, and that in words.
type Thread = (&'static str, [&'static str; 2], &'static str, &'static str);
const THREADS: [Thread; 2] = [
    ("io", ["Replica_IO_Running", "Slave_IO_Running"], "Last_IO_Errno", "Last_IO_Error"),
    ("sql", ["Replica_SQL_Running", "Slave_SQL_Running"], "Last_SQL_Errno", "Last_SQL_Error"),
];

/// Longest beginning of an error that is kept, characters.
const ERROR_CHARS: usize = 120;

const REPLAYED: [&str; 1] = ["pg_last_xact_replay_timestamp"];
const RECEIVED: [&str; 2] = ["pg_last_wal_receive_lsn", "pg_last_xlog_receive_location"];
const REPLAYED_TO: [&str; 2] = ["pg_last_wal_replay_lsn", "pg_last_xlog_replay_location"];

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of(KIND.name);
    for row in table.rows() {
        let channel = row.text(&CHANNEL).unwrap_or_default();
        let labels = Labels::new([("channel", channel)]);
        let mut put = |metric: holdup_recording::metrics::Metric, value: Option<f64>| {
            if let Some(value) = value {
                context.out.gauge(at, processlist::SOURCE, metric.name, labels.clone(), value);
            }
        };
        put(mysql::REPLICA_LAG, row.number(&LAG));
        put(mysql::REPLICA_DELAY, row.number(&["SQL_Delay"]));
        let runs = |names: &[&str]| row.text(names).map(|state| f64::from(u8::from(state == "Yes")));
        put(mysql::REPLICA_IO_RUNNING, runs(&THREADS[0].1));
        put(mysql::REPLICA_SQL_RUNNING, runs(&THREADS[1].1));
        for (thread, running, errno, error) in THREADS {
            let Some(errno) = row.text(&[errno]).filter(|errno| number(errno).is_some_and(|errno| errno > 0.0)) else {
                continue;
            };
            let state = if row.text(&running) == Some("Yes") { "had stopped" } else { "is stopped" };
            let words = row.text(&[error]).map(beginning).filter(|words| !words.is_empty());
            let words = words.map_or_else(String::new, |words| format!(": {words}"));
            let text = format!("the replica's {} {state} with error {errno}{words}", thread_words(thread));
            let labels = Labels::new([
                ("error", events::REPLICATION_STOPPED),
                ("thread", thread),
                ("errno", errno),
                ("channel", channel),
            ]);
            put_error(at, text, labels, context);
        }
    }
}

fn thread_words(thread: &str) -> &'static str {
    if thread == "io" { "receiver (IO thread)" } else { "applier (SQL thread)" }
}

fn put_error(at: i64, text: String, labels: Labels, context: &mut Context) {
    let (source, kind) = (processlist::SOURCE.to_owned(), events::ERROR.to_owned());
    context.out.batch.events.push(Event { observed_at: at, source, kind, text, labels });
}

/// An error's words before its first quoted or numeric value.
fn beginning(error: &str) -> String {
    let end = error.find(['\'', '"', '`', '=']).unwrap_or(error.len());
    let words = error.get(..end).unwrap_or_default().trim();
    words.trim_end_matches([':', ';', ',', '.']).chars().take(ERROR_CHARS).collect()
}

/// The age of the last transaction that was replayed, and what was received and not replayed.
fn read_postgresql(table: &Table, context: &mut Context) {
    let at = context.instant_of(POSTGRESQL.name);
    for row in table.rows() {
        let now = row.text(&["now", "clock_timestamp", "current_timestamp"]).and_then(stamp).unwrap_or(at);
        let replayed = row.text(&REPLAYED).and_then(stamp).filter(|replayed| *replayed <= now);
        let age = replayed.map(|replayed| now.saturating_sub(replayed) as f64 / 1e9).or_else(|| stated(&row));
        let place = |names: &[&str]| row.text(names).and_then(position);
        let bytes = place(&RECEIVED).zip(place(&REPLAYED_TO)).map(|(received, replayed)| received - replayed);
        for (metric, value) in [(postgresql::REPLICA_REPLAYED_AGE, age), (postgresql::REPLICA_REPLAY_LAG_BYTES, bytes)]
        {
            if let Some(value) = value {
                context.out.gauge(at, pg::SOURCE, metric.name, Labels::none(), value);
            }
        }
    }
}

/// The lag that the select itself worked out.
fn stated(row: &Row<'_, '_>) -> Option<f64> {
    row.text(&["replication_delay", "replication_lag", "replay_delay", "replica_lag", "lag"]).and_then(interval_s)
}

/// A moment as PostgreSQL prints it: `2026-11-26 10:11:12.123+00`.
fn stamp(text: &str) -> Option<i64> {
    clock::leading(text).0
}
