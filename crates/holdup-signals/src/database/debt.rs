//! The work that a PostgreSQL server still has to do when a recording ends: dead rows above the
//! threshold of vacuum, vacuums in progress, a checkpoint being written. A fix that makes fewer
//! dead rows leaves the existing ones. Until they are gone the disk is as busy as before, and a
//! verdict right after the fix still describes the time before it.

use holdup_recording::metrics;

use crate::database::autovacuum::fires_at;
use crate::database::tables::TableWrites;
use crate::database::vacuum::Run;
use crate::{View, Window};

/// Length of the end of the recording that counts, nanoseconds.
const END_NS: i64 = 15_000_000_000;

/// Least number of dead rows that counts as debt: small tables are vacuumed in a moment.
const LEAST_ROWS: f64 = 10_000.0;

/// … and a run with fewer pages to go is over in a moment.
const LEAST_PAGES: f64 = 1_000.0;

/// A table with dead rows to remove.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDebt {
    /// `schema.name`.
    pub table: String,
    /// For a TOAST table, the table whose values it holds.
    pub toast_of: Option<String>,
    /// Dead rows.
    pub dead: f64,
    /// Dead rows at which vacuum starts.
    pub fires_at: f64,
    /// New dead rows per second at the end.
    pub made_per_second: f64,
    /// Whether a vacuum of it is running.
    pub under_way: bool,
    /// Seconds until that vacuum has passed the table once, at its present pace; none if the pace
    /// is unknown.
    pub seconds: Option<f64>,
}

/// The work that is still to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Debt {
    /// Tables, most dead rows first.
    pub tables: Vec<TableDebt>,
    /// Whether a checkpoint is writing.
    pub checkpoint: bool,
}

impl Debt {
    /// Seconds until it is done, as far as running vacuums tell.
    pub fn seconds(&self) -> Option<f64> {
        self.tables.iter().filter_map(|t| t.seconds).max_by(f64::total_cmp)
    }

    /// Whether a verification has to wait: for old dead rows, or for ones being removed.
    pub fn is_any(&self) -> bool {
        !self.tables.is_empty()
    }
}

impl View<'_> {
    /// The work left at the end of the view's window. Empty if no PostgreSQL was recorded.
    pub fn debt(&self) -> Debt {
        let end = Window { from: self.window.from.max(self.last_instant().saturating_sub(END_NS)), ..self.window };
        let view = View { window: end, ..*self };
        let tables = view.table_writes().unwrap_or_default();
        let runs: Vec<Run> = view.vacuum().map(|v| v.runs).unwrap_or_default();
        let of = |table: &TableWrites| {
            let run = runs.iter().find(|r| r.table == table.table && r.pages_left >= LEAST_PAGES);
            let (dead, fires_at) = (table.dead?, fires_at(&view, table));
            let is_owed = dead >= LEAST_ROWS && dead > fires_at;
            (is_owed || run.is_some()).then(|| TableDebt {
                table: table.table.clone(),
                toast_of: table.toast_of.clone(),
                dead,
                fires_at,
                made_per_second: table.dead_per_second(),
                under_way: run.is_some(),
                seconds: run.filter(|r| r.pages_per_second > 0.0).map(|r| r.pages_left / r.pages_per_second),
            })
        };
        let mut owed: Vec<TableDebt> = tables.iter().filter_map(of).collect();
        owed.sort_by(|a, b| b.dead.total_cmp(&a.dead));
        Debt { tables: owed, checkpoint: view.checkpoint_writes() }
    }

    /// When PostgreSQL's tables or sessions were last read.
    fn last_instant(&self) -> i64 {
        let metrics = [metrics::postgresql::STAT_TABLES_N_TUP_UPD.name, metrics::postgresql::ACTIVITY_SESSIONS.name];
        let last = metrics.iter().flat_map(|m| self.index.series(m, &[])).filter_map(|(_, series)| series.last());
        last.map(|(at, _)| *at).filter(|at| self.window.contains(*at)).max().unwrap_or(self.window.to)
    }

    /// Whether the checkpointer wrote, or paused between writes.
    fn checkpoint_writes(&self) -> bool {
        let series =
            self.index.series(metrics::postgresql::ACTIVITY_SESSIONS.name, &[("backend_type", "checkpointer")]);
        let is_at_it = |labels: &holdup_recording::Labels| {
            labels.get("wait_event_type") == Some("IO") || labels.get("wait_event") == Some("CheckpointWriteDelay")
        };
        let here = |series: &[(i64, f64)]| series.iter().any(|(at, n)| self.window.contains(*at) && *n > 0.0);
        series.into_iter().any(|((_, labels), series)| is_at_it(labels) && here(series))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    const DB: &str = "postgresql://db";

    fn made(dead: f64, pages: f64) -> SyntheticRecording {
        let labels = [("database", "app"), ("table", "public.article")];
        let run = [("pid", "9"), ("table", "public.article"), ("phase", "scanning heap"), ("worker", "autovacuum")];
        let metric = |column: &str| format!("postgresql_stat_tables_{column}");
        SyntheticRecording::new(40)
            .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 3.0)
            .counter(DB, &metric("n_tup_upd"), &labels, 10.0)
            .gauge(DB, &metric("n_live_tup"), &labels, 100_000.0)
            .gauge(DB, &metric("n_dead_tup"), &labels, dead)
            .gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 60_000.0)
            .counter(DB, "postgresql_progress_vacuum_heap_blks_scanned", &run, pages)
    }

    #[test]
    fn dead_rows_and_runs_under_way_are_owed_with_the_time_they_take() {
        let debt = made(90_000.0, 500.0).seen(|view| view.debt());
        let table = &debt.tables[0];
        assert!(table.under_way && debt.is_any(), "{debt:?}");
        assert_eq!((table.dead, table.fires_at), (90_000.0, 20_050.0));
        // 1,000 at the beginning and 500 a second: 39,500 are left at 39 s.
        let seconds = debt.seconds().unwrap();
        assert!((70.0..90.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn few_dead_rows_and_nothing_under_way_are_no_debt() {
        let none = made(900.0, 0.0).without("postgresql_progress_vacuum_heap_blks_total");
        let none = none.without("postgresql_progress_vacuum_heap_blks_scanned");
        assert!(!none.seen(|view| view.debt()).is_any());
        assert!(!SyntheticRecording::new(5).seen(|view| view.debt()).is_any(), "no PostgreSQL");
    }
}
