//! MariaDB's thread pool: `information_schema.THREAD_POOL_GROUPS` (what each group does) and
//! `THREAD_POOL_QUEUES` (the connections that wait for a thread).

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::processlist::{self, SOURCE, Waiting};
use super::{Context, Kind, Table};

pub(super) const KIND: Kind =
    Kind::table("THREAD_POOL_GROUPS", |columns| columns.has(&["GROUP_ID", "QUEUE_LENGTH"]), read);

const COLUMNS: [(&str, Metric); 6] = [
    ("CONNECTIONS", metrics::mysql::THREAD_POOL_GROUP_CONNECTIONS),
    ("THREADS", metrics::mysql::THREAD_POOL_GROUP_THREADS),
    ("ACTIVE_THREADS", metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS),
    ("STANDBY_THREADS", metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS),
    ("QUEUE_LENGTH", metrics::mysql::THREAD_POOL_GROUP_QUEUE_LENGTH),
    ("IS_STALLED", metrics::mysql::THREAD_POOL_GROUP_STALLED),
];

pub(super) const QUEUES: Kind =
    Kind::table("THREAD_POOL_QUEUES", |columns| columns.has(&["POSITION", QUEUEING_TIME]), read_queues);

/// The column with a connection's wait so far.
const QUEUEING_TIME: &str = "QUEUEING_TIME_MICROSECONDS";

fn read_queues(table: &Table, context: &mut Context) {
    let at = context.instant_of("THREAD_POOL_QUEUES");
    let longest_us = table.rows().filter_map(|row| row.number(&[QUEUEING_TIME])).fold(0.0, f64::max);
    let unknown = table.rows().filter(|row| row.text(&["CONNECTION_ID"]).is_none()).count();
    for (metric, value) in [
        (metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS, table.rows().count() as f64),
        (metrics::mysql::THREAD_POOL_QUEUED_UNKNOWN_CONNECTIONS, unknown as f64),
        (metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX, longest_us / 1e6),
    ] {
        context.out.gauge(at, SOURCE, metric.name, Labels::none(), value);
    }
    // The list of processes shows them asleep: no thread has read their statement yet.
    let queued = table.rows().filter_map(|row| {
        let id = row.number(&["CONNECTION_ID"])? as i64;
        Some((id, row.number(&[QUEUEING_TIME]).map(|us| (us * 1e3) as i64)))
    });
    let waiting = Waiting { ids: queued.collect(), command: "Sleep", true_state: "queued" };
    processlist::correct(&waiting, at, context);
}

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of("THREAD_POOL_GROUPS");
    let (mut threads, mut queued) = (0.0, 0.0);
    for row in table.rows() {
        let Some(group) = row.text(&["GROUP_ID"]) else { continue };
        for (column, metric) in COLUMNS {
            let Some(value) = row.number(&[column]) else { continue };
            threads += if column == "THREADS" { value } else { 0.0 };
            queued += if column == "QUEUE_LENGTH" { value } else { 0.0 };
            context.out.gauge(at, SOURCE, metric.name, Labels::new([("group", group)]), value);
        }
    }
    context.out.gauge(at, SOURCE, metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, Labels::none(), queued);
    context.out.gauge(at, SOURCE, metrics::mysql::THREAD_POOL_THREADS.name, Labels::none(), threads);
}
