//! MariaDB's thread pool: `information_schema.THREAD_POOL_GROUPS` (what each group does) and
//! `THREAD_POOL_QUEUES` (the connections that wait for a thread).

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set;
use super::Kind;
use super::processlist::{self, SOURCE, Waiting};

pub(super) const KIND: Kind = Kind { name: "THREAD_POOL_GROUPS", recognises, read };

const COLUMNS: [(&str, Metric); 6] = [
    ("CONNECTIONS", metrics::mysql::THREAD_POOL_GROUP_CONNECTIONS),
    ("THREADS", metrics::mysql::THREAD_POOL_GROUP_THREADS),
    ("ACTIVE_THREADS", metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS),
    ("STANDBY_THREADS", metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS),
    ("QUEUE_LENGTH", metrics::mysql::THREAD_POOL_GROUP_QUEUE_LENGTH),
    ("IS_STALLED", metrics::mysql::THREAD_POOL_GROUP_STALLED),
];

pub(super) const QUEUES: Kind = Kind {
    name: "THREAD_POOL_QUEUES",
    recognises: |lines| has(lines, &["POSITION", QUEUEING_TIME]),
    read: read_queues,
};

/// The column with a connection's wait so far.
const QUEUEING_TIME: &str = "QUEUEING_TIME_MICROSECONDS";

fn has(lines: &[Line], names: &[&str]) -> bool {
    let is = |columns: &[String], name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    result_set::header(lines).is_some_and(|columns| names.iter().all(|name| is(&columns, name)))
}

fn recognises(lines: &[Line]) -> bool {
    has(lines, &["GROUP_ID", "QUEUE_LENGTH"])
}

fn read_queues(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("THREAD_POOL_QUEUES");
    let waits = set.rows.iter().filter_map(|row| number(set.cell(row, &[QUEUEING_TIME])?));
    let longest_us = waits.fold(0.0, f64::max);
    let unknown = set.rows.iter().filter(|row| set.cell(row, &["CONNECTION_ID"]).is_none()).count();
    for (metric, value) in [
        (metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS, set.rows.len() as f64),
        (metrics::mysql::THREAD_POOL_QUEUED_UNKNOWN_CONNECTIONS, unknown as f64),
        (metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX, longest_us / 1e6),
    ] {
        context.out.gauge(at, SOURCE, metric.name, Labels::none(), value);
    }
    // The list of processes shows them asleep: no thread has read their statement yet.
    let queued = set.rows.iter().filter_map(|row| {
        let id = number(set.cell(row, &["CONNECTION_ID"])?)? as i64;
        Some((id, set.cell(row, &[QUEUEING_TIME]).and_then(number).map(|us| (us * 1e3) as i64)))
    });
    let waiting = Waiting { ids: queued.collect(), command: "Sleep", true_state: "queued" };
    processlist::correct(&waiting, at, context);
    set.used
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("THREAD_POOL_GROUPS");
    let (mut threads, mut queued) = (0.0, 0.0);
    for row in &set.rows {
        let Some(group) = set.cell(row, &["GROUP_ID"]) else { continue };
        for (column, metric) in COLUMNS {
            let Some(value) = set.cell(row, &[column]).and_then(number) else { continue };
            threads += if column == "THREADS" { value } else { 0.0 };
            queued += if column == "QUEUE_LENGTH" { value } else { 0.0 };
            context.out.gauge(at, SOURCE, metric.name, Labels::new([("group", group)]), value);
        }
    }
    context.out.gauge(at, SOURCE, metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, Labels::none(), queued);
    context.out.gauge(at, SOURCE, metrics::mysql::THREAD_POOL_THREADS.name, Labels::none(), threads);
    set.used
}
