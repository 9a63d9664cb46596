//! What vacuum did over a window: which tables it worked on and for how long, and how much it read
//! and wrote, by the best available source: the server's I/O counters by kind of process (16 and
//! later), its log, or the progress that it reports.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics::Metric;
use holdup_recording::rows::Event;
use holdup_recording::{Labels, metrics};

use crate::Evidence;
use crate::database::tables::POSTGRESQL;
use crate::{Missing, View, Window};

/// Bytes of a page, unless the server says otherwise (block_size).
pub const PAGE_BYTES: f64 = 8_192.0;

/// A vacuum in the log is the observed run on its table if that was last seen at most this long
/// before, nanoseconds.
const LOGGED_NS: i64 = 3_000_000_000;

const ACTIVITY: &str = metrics::postgresql::ACTIVITY_SESSIONS.name;
const TOTAL: &str = metrics::postgresql::PROGRESS_VACUUM_HEAP_BLKS_TOTAL.name;
const SCANNED: &str = metrics::postgresql::PROGRESS_VACUUM_HEAP_BLKS_SCANNED.name;
const VACUUMED: &str = metrics::postgresql::PROGRESS_VACUUM_HEAP_BLKS_VACUUMED.name;
/// Bytes and operations in pg_stat_io.
const BYTES: [Metric; 3] = [
    metrics::postgresql::STAT_IO_READ_BYTES,
    metrics::postgresql::STAT_IO_WRITE_BYTES,
    metrics::postgresql::STAT_IO_EXTEND_BYTES,
];
const OPERATIONS: [Metric; 3] =
    [metrics::postgresql::STAT_IO_READS, metrics::postgresql::STAT_IO_WRITES, metrics::postgresql::STAT_IO_EXTENDS];

/// Source of what vacuum read and wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoSource {
    /// pg_stat_io, of autovacuum workers.
    Counters,
    /// The server's log, for runs that ended; for others their progress.
    Log,
    /// Pages that runs passed, by their progress. Pages already in memory were not read.
    Progress,
}

/// A table that was vacuumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `schema.name`; prefixed by the database if it is not the watched one, so that it matches no
    /// known table.
    pub table: String,
    /// For a TOAST table, the table whose values it holds.
    pub toast_of: Option<String>,
    /// Share (0-1) of the window in which it ran.
    pub running_ratio: f64,
    /// Whether autovacuum did it.
    pub automatic: bool,
    /// Share (0-1) of its pages that it had passed when last seen; none if it is known only from
    /// the log.
    pub done_ratio: Option<f64>,
    /// Pages passed in the window, per second.
    pub pages_per_second: f64,
    /// Pages left when last seen.
    pub pages_left: f64,
}

impl Run {
    /// Its common name.
    pub fn name(&self) -> String {
        match &self.toast_of {
            Some(owner) => format!("{} (TOAST of {owner})", self.table),
            None => self.table.clone(),
        }
    }
}

/// What vacuum did.
#[derive(Clone, Debug, PartialEq)]
pub struct Vacuum {
    /// By table, longest first.
    pub runs: Vec<Run>,
    /// Bytes read and written per second over the window, and the source; none if unknown.
    pub bytes_per_second: Option<(f64, IoSource)>,
    /// Share (0-1) of the window in which at least one ran.
    pub running_ratio: f64,
    /// Mean number of autovacuum workers that waited for a read or write.
    pub waiting: f64,
    evidence: Option<Evidence>,
}

impl Vacuum {
    /// Evidence that points at the source.
    pub fn evidence(&self, observed: String, expected: &str, text: String) -> Option<Evidence> {
        let mut evidence = self.evidence.clone()?.saying(expected, text);
        evidence.observed = observed;
        Some(evidence)
    }
}

/// A run as reported at successive instants.
#[derive(Default)]
struct ReportedRun {
    automatic: bool,
    toast_of: Option<String>,
    /// The table's name in the samples.
    label: Option<String>,
    /// Pages by instant: all, scanned, vacuumed.
    pages: BTreeMap<i64, [f64; 3]>,
}

impl Run {
    /// Before anything was seen of it.
    fn new(table: String, toast_of: Option<String>, automatic: bool) -> Self {
        let (done_ratio, pages_per_second, pages_left) = (None, 0.0, 0.0);
        Self { table, toast_of, running_ratio: 0.0, automatic, done_ratio, pages_per_second, pages_left }
    }
}

impl View<'_> {
    /// What vacuum did.
    ///
    /// # Errors
    /// If no recorded PostgreSQL reports it.
    pub fn vacuum(&self) -> Result<Vacuum, Missing> {
        let instants = self.looked_at();
        let logged = self.vacuums_logged();
        if instants.is_empty() && logged.is_empty() {
            return Err(Missing::new("which vacuums ran (pg_stat_progress_vacuum, or the server's log)", POSTGRESQL));
        }
        let reported = self.reported();
        let mut at_all: BTreeSet<i64> = BTreeSet::new();
        let mut runs: BTreeMap<String, Run> = BTreeMap::new();
        let mut evidence = None;
        let step = self.window.seconds() / instants.len().max(1) as f64;
        let (mut by_progress, mut is_open) = (0.0, false);
        for ((_, _, table), of) in &reported {
            let seen: Vec<(&i64, &[f64; 3])> = of.pages.iter().collect();
            at_all.extend(of.pages.keys());
            let grew = |which: usize| {
                seen.windows(2).map(|pair| (pair[1].1[which] - pair[0].1[which]).max(0.0)).fold(0.0, |sum, n| sum + n)
            };
            let (went_through, removed) = (grew(1), grew(2));
            let is_logged = logged.iter().any(|e| {
                let last = seen.last().map_or(0, |(at, _)| **at);
                self.table_logged(e) == *table && (0..LOGGED_NS).contains(&(e.observed_at - last))
            });
            let is_counted = self.index.series(SCANNED, &[("table", table)]).next().is_some();
            // The log of other runs says nothing about one that is running and counts no pages.
            is_open |= !is_logged && !is_counted;
            if !is_logged {
                // At most what was read of it from outside the server's cache.
                let read = self.blocks_read(table).map_or(went_through, |blocks| went_through.min(blocks));
                by_progress += (read + removed) * PAGE_BYTES / self.window.seconds().max(1e-9);
            }
            let last = seen.last().map_or([0.0; 3], |(_, pages)| **pages);
            let run =
                runs.entry(table.clone()).or_insert_with(|| Run::new(table.clone(), of.toast_of.clone(), of.automatic));
            run.running_ratio = (run.running_ratio + seen.len() as f64 / instants.len().max(1) as f64).min(1.0);
            run.done_ratio = (last[0] > 0.0).then(|| (last[1] / last[0]).min(1.0));
            run.pages_per_second += went_through / (seen.len() as f64 * step).max(1e-9);
            run.pages_left = (last[0] - last[1]).max(0.0);
            let labels = Labels::new([("metric", TOTAL)]);
            let labels = of.label.iter().fold(labels, |labels, table| labels.with("table", table.as_str()));
            evidence.get_or_insert_with(|| Evidence::new("samples", "value", labels, self.window, "", "", ""));
        }
        for event in &logged {
            let table = self.table_logged(event);
            let took = number(event, "elapsed_ms").unwrap_or(0.0) / 1e3;
            let share = (overlap(self.window, event.observed_at, took) / self.window.seconds()).min(1.0);
            evidence.get_or_insert_with(|| {
                let labels = Labels::new([("kind", "autovacuum")]);
                Evidence::new("events", "labels", labels, self.window, "", "", "")
            });
            if !reported.keys().any(|(_, _, t)| *t == table) {
                let toast_of = || event.labels.get("toast_of").map(str::to_owned).or_else(|| self.toast_owner(&table));
                let run = runs.entry(table.clone()).or_insert_with(|| Run::new(table.clone(), toast_of(), true));
                run.running_ratio = (run.running_ratio + share).min(1.0);
            }
        }
        let evidence = evidence.or_else(|| {
            let labels = Labels::new([("metric", ACTIVITY)]);
            (!instants.is_empty()).then(|| Evidence::new("samples", "value", labels, self.window, "", "", ""))
        });
        let mut runs: Vec<Run> = runs.into_values().collect();
        runs.sort_by(|a, b| b.running_ratio.total_cmp(&a.running_ratio));
        let by_samples = at_all.len() as f64 / instants.len().max(1) as f64;
        let running_ratio = runs.first().map_or(0.0, |r| r.running_ratio).max(by_samples.min(1.0));
        let by_log = self.by_log(&logged);
        let how = if by_progress > by_log { IoSource::Progress } else { IoSource::Log };
        let told = (by_log + by_progress > 0.0).then_some((by_log + by_progress, how));
        let bytes_per_second = self.by_counters().or(told.filter(|_| !is_open)).filter(|_| running_ratio > 0.0);
        Ok(Vacuum { runs, bytes_per_second, running_ratio, waiting: self.workers_waiting(instants.len()), evidence })
    }

    /// Mean number of autovacuum workers that waited for a read or write: instants without one have
    /// no sample.
    fn workers_waiting(&self, instants: usize) -> f64 {
        let labels = [("backend_type", "autovacuum worker"), ("wait_event_type", "IO")];
        let series = self.index.series(ACTIVITY, &labels).flat_map(|(_, series)| series);
        let here = series.filter(|(at, _)| self.window.contains(*at)).map(|(_, n)| n);
        here.fold(0.0, |sum, n| sum + n) / instants.max(1) as f64
    }

    /// Instants at which holdup looked for vacuums: it reads progress whenever it reads the
    /// server's processes.
    fn looked_at(&self) -> BTreeSet<i64> {
        let all = self.index.series(ACTIVITY, &[]).flat_map(|(_, series)| series.iter().map(|(at, _)| *at));
        all.filter(|at| self.window.contains(*at)).collect()
    }

    /// Runs by source, process and table. The phase is a label, so one run is several series.
    fn reported(&self) -> BTreeMap<(String, String, String), ReportedRun> {
        let mut runs: BTreeMap<(String, String, String), ReportedRun> = BTreeMap::new();
        for (which, metric) in [TOTAL, SCANNED, VACUUMED].into_iter().enumerate() {
            for ((source, labels), series) in self.index.series(metric, &[]) {
                let label = |name: &str| labels.get(name).unwrap_or_default().to_owned();
                for &(at, value) in series.iter().filter(|(at, _)| self.window.contains(*at)) {
                    let table = self.table_of(&label("database"), &label("table"));
                    let run = runs.entry((source.clone(), label("pid"), table)).or_default();
                    run.label = labels.get("table").map(str::to_owned);
                    run.automatic |= labels.get("worker") == Some("autovacuum");
                    run.toast_of = run.toast_of.take().or_else(|| labels.get("toast_of").map(str::to_owned));
                    run.pages.entry(at).or_default()[which] = value;
                }
            }
        }
        runs
    }

    /// The table that an event of the log is about.
    fn table_logged(&self, event: &Event) -> String {
        let label = |name: &str| event.labels.get(name).unwrap_or_default();
        self.table_of(label("database"), label("table"))
    }

    /// The name of a table, which tables in other databases may share: counted tables belong to the
    /// watched database. Progress has no table name for other databases.
    fn table_of(&self, database: &str, table: &str) -> String {
        let mut watched = self
            .index
            .series(metrics::postgresql::STAT_TABLES_N_TUP_UPD.name, &[])
            .filter_map(|((_, l), _)| l.get("database"))
            .peekable();
        match (table, database) {
            ("", "") => "a table".to_owned(),
            ("", _) => format!("a table of database {database}"),
            (_, "") => table.to_owned(),
            _ if watched.peek().is_none() || watched.any(|known| known == database) => table.to_owned(),
            _ => format!("{table} (database {database})"),
        }
    }

    /// The table whose values a TOAST table holds, from what is known about tables.
    fn toast_owner(&self, table: &str) -> Option<String> {
        let mut all = self.index.series(metrics::postgresql::STAT_TABLES_N_TUP_UPD.name, &[]);
        all.find_map(|((_, l), _)| l.get("toast_of").filter(|_| l.get("table") == Some(table)).map(str::to_owned))
    }

    /// Runs that ended in the window or after it and overlap it, by the server's log.
    fn vacuums_logged(&self) -> Vec<&Event> {
        let events = self.recording.tables.events.with_columns(&["observed_at", "kind", "labels"]).unwrap_or_default();
        let here = |e: &&Event| {
            let took = number(e, "elapsed_ms").unwrap_or(0.0) / 1e3;
            e.kind == "autovacuum" && overlap(self.window, e.observed_at, took.max(1e-3)) > 0.0
        };
        events.iter().filter(here).collect()
    }

    /// pg_stat_io of autovacuum workers: bytes (18), or operations of a page each (16 and 17).
    fn by_counters(&self) -> Option<(f64, IoSource)> {
        let labels = [("backend_type", "autovacuum worker")];
        let rate = |metric: Metric| self.counter(metric.name, &labels, "").ok();
        let bytes: Vec<_> = BYTES.into_iter().filter_map(rate).collect();
        let (counters, each) = if bytes.is_empty() {
            (OPERATIONS.into_iter().filter_map(rate).collect(), PAGE_BYTES)
        } else {
            (bytes, 1.0)
        };
        let all: f64 = counters.iter().map(|c| c.rate() * each).sum();
        (!counters.is_empty() && all > 0.0).then_some((all, IoSource::Counters))
    }

    /// Bytes per second: for the part of each run in the window, pages read from outside memory,
    /// pages dirtied, and the log.
    fn by_log(&self, events: &[&Event]) -> f64 {
        let mut all = 0.0;
        for event in events {
            let took = number(event, "elapsed_ms").unwrap_or(0.0) / 1e3;
            let pages =
                number(event, "buffers_missed").unwrap_or(0.0) + number(event, "buffers_dirtied").unwrap_or(0.0);
            let bytes = pages * PAGE_BYTES + number(event, "wal_bytes").unwrap_or(0.0);
            all += bytes * (overlap(self.window, event.observed_at, took) / took.max(1e-3)).min(1.0);
        }
        all / self.window.seconds().max(1e-9)
    }

    /// Blocks of `table` read from outside the server's cache, for any session; none if not
    /// recorded.
    fn blocks_read(&self, table: &str) -> Option<f64> {
        let of = self.counter(metrics::postgresql::STATIO_TABLES_HEAP_BLKS_READ.name, &[("table", table)], "");
        of.ok().map(|c| c.rate() * self.window.seconds())
    }
}

/// A figure among an event's labels.
fn number(event: &Event, name: &str) -> Option<f64> {
    event.labels.get(name)?.parse().ok()
}

/// Seconds in `window` of an activity that ended at `end` after `took` seconds.
fn overlap(window: Window, end: i64, took: f64) -> f64 {
    let from = end - (took * 1e9) as i64;
    ((end.min(window.to) - from.max(window.from)) as f64 / 1e9).max(0.0)
}
