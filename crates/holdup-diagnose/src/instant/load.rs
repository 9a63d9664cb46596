//! Performance Insights' load as sessions: how many were active on average, by what they waited for.
//! Wait events have the engine's own names, and a table says what kind each is.

use std::collections::BTreeMap;

use holdup_recording::{Labels, clock};
use holdup_signals::view::stretches::within;
use holdup_signals::{View, Window};

const TOTAL: &str = "aws_pi_db_load";
/// Parts of the load by what sessions waited for.
pub(crate) const BY_WAIT: &str = "aws_pi_db_load_by_wait_event";
/// Parts of the load by statement; the first that there is counts.
const BY_STATEMENT: [&str; 2] = ["aws_pi_db_load_by_sql_tokenized", "aws_pi_db_load_by_sql"];

/// The busiest time is that from this part (0-1) of the highest load on: sessions of a whole day say
/// nothing of an hour in it.
const BUSY: f64 = 0.5;

/// As many of the highest points may be a moment, such as the first minute of what a user named.
const PEAK: usize = 4;

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// It runs.
    Cpu,
    /// A lock of rows, tables or metadata.
    Lock,
    /// Pages that are not in memory.
    Read,
    /// Pages that must be written first.
    Flush,
    /// The log.
    Log,
    /// Temporary files.
    Temporary,
    /// Anything else.
    Other,
}

/// Beginnings of the names of wait events, and their kinds (Amazon RDS and Aurora user guides, "Wait
/// events"; PostgreSQL documentation, "Wait Events"; MySQL, "Performance Schema Instrument Naming").
const KINDS: [(&str, WaitKind); 46] = [
    ("CPU", WaitKind::Cpu),
    ("cpu", WaitKind::Cpu),
    ("Lock:", WaitKind::Lock),
    ("IO:DataFileRead", WaitKind::Read),
    ("IO:DataFilePrefetch", WaitKind::Read),
    ("IO:DataFileWrite", WaitKind::Flush),
    ("IO:DataFileFlush", WaitKind::Flush),
    ("IO:DataFileSync", WaitKind::Flush),
    ("IO:DataFileImmediateSync", WaitKind::Flush),
    ("IO:DataFileExtend", WaitKind::Flush),
    ("IO:SLRUSync", WaitKind::Flush),
    ("IO:SLRUFlushSync", WaitKind::Flush),
    ("LWLock:CheckpointerComm", WaitKind::Flush),
    ("IPC:Checkpoint", WaitKind::Flush),
    ("IO:RegisterSyncRequest", WaitKind::Flush),
    ("Timeout:RegisterSyncRequest", WaitKind::Flush),
    ("IO:WAL", WaitKind::Log),
    ("IO:XactSync", WaitKind::Log),
    ("IO:CommitSync", WaitKind::Log),
    ("LWLock:WALWrite", WaitKind::Log),
    ("LWLock:WALInsert", WaitKind::Log),
    ("LWLock:wal_insert", WaitKind::Log),
    ("IO:BufFile", WaitKind::Temporary),
    ("io/file/innodb/innodb_data_file", WaitKind::Read),
    ("io/file/innodb/innodb_dblwr", WaitKind::Flush),
    ("synch/cond/innodb/page_cleaner", WaitKind::Flush),
    ("synch/mutex/innodb/flush_list_mutex", WaitKind::Flush),
    ("synch/mutex/innodb/buf_dblwr", WaitKind::Flush),
    ("synch/mutex/innodb/dblwr", WaitKind::Flush),
    ("synch/mutex/innodb/log_checkpointer", WaitKind::Flush),
    ("synch/cond/innodb/log_checkpointer", WaitKind::Flush),
    ("io/file/innodb/innodb_log_file", WaitKind::Log),
    ("io/aurora_redo_log_flush", WaitKind::Log),
    ("io/redo_log_flush", WaitKind::Log),
    ("io/file/sql/binlog", WaitKind::Log),
    ("synch/mutex/innodb/log_", WaitKind::Log),
    ("synch/cond/sql/MYSQL_BIN_LOG", WaitKind::Log),
    ("io/file/innodb/innodb_temp_file", WaitKind::Temporary),
    ("io/file/innodb/innodb_tablespace_open", WaitKind::Other),
    ("io/file/sql/", WaitKind::Other),
    ("lock/", WaitKind::Lock),
    ("synch/cond/innodb/row_lock_wait", WaitKind::Lock),
    ("synch/mutex/innodb/aurora_lock_thread_slot", WaitKind::Lock),
    ("synch/cond/mysys/my_thread_var::suspend", WaitKind::Lock),
    ("synch/cond/sql/MDL_context::COND_wait_status", WaitKind::Lock),
    ("synch/rwlock/sql/MDL", WaitKind::Lock),
];

/// The kind of a wait event, by PostgreSQL's `Type:Name` or MySQL's name, with or without `wait/`.
pub(crate) fn kind(event: &str) -> WaitKind {
    let event = event.strip_prefix("wait/").unwrap_or(event);
    KINDS.iter().find(|(begins, _)| event.starts_with(begins)).map_or(WaitKind::Other, |(_, kind)| *kind)
}

/// The load by wait event: mean active sessions in the busiest time of the view.
pub(crate) struct Load {
    /// By the event's name.
    pub by_event: BTreeMap<String, f64>,
    /// The busiest time.
    pub window: Window,
    /// Names have PostgreSQL's form.
    pub is_postgresql: bool,
}

/// A statement that makes up a part of the load.
pub(crate) struct Heaviest {
    /// The statement without its values, or its id.
    pub statement: String,
    /// Its part (0-1) of the load.
    pub share: f64,
    metric: &'static str,
    labels: Labels,
    window: Window,
}

impl Load {
    pub fn read(view: &View<'_>) -> Option<Self> {
        let window = busiest(view)?;
        let mut by_event: BTreeMap<String, f64> = BTreeMap::new();
        let instants = instants(view, BY_WAIT, window);
        for ((_, labels), points) in view.index.series(BY_WAIT, &[]) {
            // Other statistics of the same load would count it twice.
            let Some(event) = labels.get("wait_event").filter(|_| labels.get("stat").is_none()) else { continue };
            let sum: f64 = within(points, window).iter().map(|(_, value)| *value).sum();
            *by_event.entry(full_name(event, labels)).or_default() += sum / instants;
        }
        by_event.retain(|_, sessions| *sessions > 0.0);
        let is_postgresql = by_event.keys().any(|event| event.contains(':') && !event.contains('/'));
        (!by_event.is_empty()).then_some(Self { by_event, window, is_postgresql })
    }

    /// The statement with the largest part of the load in the busiest time.
    pub fn heaviest(view: &View<'_>) -> Option<Heaviest> {
        let window = busiest(view)?;
        let metric = BY_STATEMENT.into_iter().find(|metric| view.index.series(metric, &[]).next().is_some())?;
        let instants = instants(view, metric, window);
        let mean = |points: &[(i64, f64)]| within(points, window).iter().map(|(_, v)| *v).sum::<f64>() / instants;
        let all: Vec<_> =
            view.index.series(metric, &[]).filter(|((_, labels), _)| labels.get("stat").is_none()).collect();
        let sum: f64 = all.iter().map(|(_, points)| mean(points)).sum();
        let total = total(view, window).unwrap_or(sum).max(sum);
        let ((_, labels), points) = all.into_iter().max_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))?;
        let named = labels.get("statement").filter(|text| !text.is_empty());
        let statement = named.or_else(|| labels.get("sql_tokenized_id")).or_else(|| labels.get("sql_id"))?.to_owned();
        let share = mean(points) / total;
        (share > 0.0).then(|| Heaviest { statement, share, metric, labels: labels.clone(), window })
    }
}

impl Heaviest {
    /// What points at it.
    pub fn evidence(&self) -> holdup_signals::Evidence {
        /// Letters of a statement in a sentence.
        const SHOWN: usize = 120;
        let part = holdup_recording::words::percent(self.share);
        let statement: String = self.statement.chars().take(SHOWN).collect();
        let text = format!("{part} of the database's load was one statement: {statement}");
        let labels = self.labels.clone().with("metric", self.metric);
        holdup_signals::Evidence::new("samples", "value", labels, self.window, part, "many statements alike", text)
    }
}

/// PostgreSQL's events have their type before the name, wherever the agent wrote it.
fn full_name(event: &str, labels: &Labels) -> String {
    match labels.get("wait_event_type") {
        Some(of) if !event.contains([':', '/']) && of != event => format!("{of}:{event}"),
        _ => event.to_owned(),
    }
}

/// How many points the series of `metric` have in `window` at most: where nothing waited for an event,
/// it has no point.
fn instants(view: &View<'_>, metric: &str, window: Window) -> f64 {
    let own = view.index.series(metric, &[]).map(|(_, points)| within(points, window).len()).max().unwrap_or(0);
    own.max(1) as f64
}

fn total(view: &View<'_>, window: Window) -> Option<f64> {
    let (_, points) = view.index.series(TOTAL, &[]).find(|((_, labels), _)| labels.get("stat").is_none())?;
    let within = within(points, window);
    (!within.is_empty()).then(|| within.iter().map(|(_, value)| *value).sum::<f64>() / within.len() as f64)
}

/// From the first to the last moment at which the load was at least half of its highest, peaks aside.
fn busiest(view: &View<'_>) -> Option<Window> {
    let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
    for metric in [TOTAL, BY_WAIT, BY_STATEMENT[0], BY_STATEMENT[1]] {
        for ((_, labels), points) in view.index.series(metric, &[]) {
            if labels.get("stat").is_none() {
                within(points, view.window).iter().for_each(|(at, value)| *sums.entry(*at).or_default() += value);
            }
        }
        if !sums.is_empty() {
            break;
        }
    }
    let mut loads: Vec<f64> = sums.values().copied().collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    let highest = loads.get(PEAK.min(loads.len() / 4)).copied().unwrap_or(0.0);
    let mut busy = sums.iter().filter(|(_, load)| **load >= BUSY * highest).map(|(at, _)| *at);
    let first = busy.next()?;
    Some(Window { from: first, to: busy.next_back().unwrap_or(first).saturating_add(1) })
}

/// The time of day, UTC.
pub(crate) fn time(ns: i64) -> String {
    clock::rfc3339(ns).get(11..16).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_signals::testing::SyntheticRecording;

    #[test]
    fn events_of_each_engine_have_their_kind() {
        for (event, expected) in [
            ("Lock:transactionid", WaitKind::Lock),
            ("LWLock:WALWrite", WaitKind::Log),
            ("IO:DataFileRead", WaitKind::Read),
            ("IO:BufFileWrite", WaitKind::Temporary),
            ("wait/io/file/innodb/innodb_data_file", WaitKind::Read),
            ("wait/synch/cond/innodb/row_lock_wait_cond", WaitKind::Lock),
            ("wait/lock/metadata/sql/mdl", WaitKind::Lock),
            ("io/aurora_redo_log_flush", WaitKind::Log),
            ("wait/io/table/sql/handler", WaitKind::Other),
            ("CPU", WaitKind::Cpu),
            ("Client:ClientRead", WaitKind::Other),
        ] {
            assert_eq!(kind(event), expected, "{event}");
        }
    }

    #[test]
    fn the_busiest_time_counts_and_absent_points_add_nothing() {
        let wait = |event| [("wait_event", event), ("wait_event_type", "IO")];
        let made = SyntheticRecording::new(100)
            .counted("pi", TOTAL, &[], |s| if (40..60).contains(&s) { 20.0 } else { 1.0 })
            .counted("pi", BY_WAIT, &wait("DataFileRead"), |s| if (40..60).contains(&s) { 15.0 } else { 0.0 });
        let load = made.seen(Load::read).unwrap();
        assert_eq!(load.by_event.into_iter().collect::<Vec<_>>(), [("IO:DataFileRead".to_owned(), 15.0)]);
        assert!(load.is_postgresql);
        let made =
            made.counted("pi", BY_STATEMENT[0], &[("statement", "SELECT ?"), ("sql_tokenized_id", "A")], |_| 5.0);
        let heaviest = made.seen(Load::heaviest).unwrap();
        assert_eq!((heaviest.share, heaviest.statement.as_str()), (0.25, "SELECT ?"));
    }
}
