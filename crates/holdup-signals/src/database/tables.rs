//! What happened to PostgreSQL's tables over a window: rows inserted, changed and deleted, and so
//! the dead ones that vacuum has to remove. For each table with values out of line, also how many
//! rows of its TOAST table an update wrote. Rules interpret it.

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use crate::Evidence;
use crate::{Missing, View};

/// What to record for tables.
pub const POSTGRESQL: &str = "--watch postgresql://USER@HOST:PORT, as a member of pg_monitor";

/// Bytes of a value in one row of a TOAST table: four such rows fill a page of 8 KiB
/// (TOAST_MAX_CHUNK_SIZE).
pub const CHUNK_BYTES: f64 = 1_996.0;

/// Bytes that such a row takes in its page with its header: a quarter.
pub const CHUNK_ROW_BYTES: f64 = 2_048.0;

/// Up to this many inserts or deletes per update (0-1), their out-of-line writes do not count.
const A_FEW: f64 = 0.1;

const UPDATED: &str = metrics::postgresql::STAT_TABLES_N_TUP_UPD.name;

/// What happened to one table's rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableWrites {
    /// The server.
    pub source: String,
    /// Its database.
    pub database: String,
    /// `schema.name`.
    pub table: String,
    /// For a TOAST table, the table whose values it holds.
    pub toast_of: Option<String>,
    /// Rows inserted.
    pub inserted: f64,
    /// Rows changed.
    pub updated: f64,
    /// Updates within their page that touch no index (HOT): no work for vacuum.
    pub hot: f64,
    /// Rows deleted.
    pub deleted: f64,
    /// Seconds that the counts cover.
    pub seconds: f64,
    /// Dead rows at the end, by the server's estimate.
    pub dead: Option<f64>,
    /// Live rows at the end, by the server's estimate.
    pub live: Option<f64>,
    labels: Labels,
}

impl TableWrites {
    /// New dead rows that only vacuum removes.
    pub fn dead_made(&self) -> f64 {
        (self.updated - self.hot).max(0.0) + self.deleted
    }

    /// The same per second.
    pub fn dead_per_second(&self) -> f64 {
        self.dead_made() / self.seconds.max(1e-9)
    }

    /// Rows written: inserted, changed and deleted.
    pub fn written(&self) -> f64 {
        self.inserted + self.updated + self.deleted
    }

    /// Its common name; a TOAST table's includes its owner.
    pub fn name(&self) -> String {
        match &self.toast_of {
            Some(owner) => format!("{} (TOAST of {owner})", self.table),
            None => self.table.clone(),
        }
    }
}

/// A table and the cost of its out-of-line values.
#[derive(Clone, Debug, PartialEq)]
pub struct Toast {
    /// The table.
    pub owner: TableWrites,
    /// Its TOAST table.
    pub toast: TableWrites,
}

impl Toast {
    /// Least number of TOAST rows that replaced others. An update that writes a value out of line
    /// deletes the old value's rows, whether it differs or not. Inserts write rows as well and
    /// deletes leave dead ones, and both may go on at once (a queue): those are not counted.
    pub fn rewritten(&self) -> f64 {
        let by_updates = |rows: f64, others: f64| match self.rows_each() {
            Some(each) => rows - others * each,
            // The size of values is unknown: what inserts or deletes may have written is not the
            // updates', apart from a few.
            None if others > A_FEW * self.owner.updated => 0.0,
            None => rows,
        };
        let (written, dead) = (self.toast.inserted, self.toast.deleted);
        by_updates(written, self.owner.inserted).min(by_updates(dead, self.owner.deleted)).max(0.0)
    }

    /// TOAST rows per row of the table, by the server's estimates of live rows.
    fn rows_each(&self) -> Option<f64> {
        let known = |rows: Option<f64>| rows.filter(|rows| *rows > 0.0);
        Some(known(self.toast.live)? / known(self.owner.live)?)
    }

    /// TOAST rows per update of the table.
    pub fn per_update(&self) -> f64 {
        self.rewritten() / self.owner.updated.max(1.0)
    }

    /// Least number of bytes per second written for it: to the log, and to the table.
    pub fn bytes_per_second(&self) -> f64 {
        2.0 * self.rewritten() * CHUNK_ROW_BYTES / self.toast.seconds.max(1e-9)
    }

    /// Size of value, at most, that fits the rows of one update, bytes.
    pub fn value_bytes(&self) -> f64 {
        self.per_update() * CHUNK_BYTES
    }
}

impl View<'_> {
    /// Every table that was recorded, most dead rows made first.
    ///
    /// # Errors
    /// If no table was recorded in the window.
    pub fn table_writes(&self) -> Result<Vec<TableWrites>, Missing> {
        let mut tables: Vec<TableWrites> = Vec::new();
        for ((source, labels), _) in self.index.series(UPDATED, &[]) {
            let grew = |metric: Metric| self.grown(metric.name, source, labels);
            let last = |metric: Metric| self.last(metric.name, source, labels);
            let Some((updated, seconds)) = grew(metrics::postgresql::STAT_TABLES_N_TUP_UPD) else { continue };
            let count = |metric: Metric| grew(metric).map_or(0.0, |(delta, _)| delta);
            tables.push(TableWrites {
                source: source.clone(),
                database: labels.get("database").unwrap_or_default().to_owned(),
                table: labels.get("table").unwrap_or_default().to_owned(),
                toast_of: labels.get("toast_of").map(str::to_owned),
                inserted: count(metrics::postgresql::STAT_TABLES_N_TUP_INS),
                updated,
                hot: count(metrics::postgresql::STAT_TABLES_N_TUP_HOT_UPD),
                deleted: count(metrics::postgresql::STAT_TABLES_N_TUP_DEL),
                seconds,
                dead: last(metrics::postgresql::STAT_TABLES_N_DEAD_TUP),
                live: last(metrics::postgresql::STAT_TABLES_N_LIVE_TUP),
                labels: labels.clone(),
            });
        }
        if tables.is_empty() {
            return Err(Missing::new("row changes by table (postgresql_stat_tables_n_tup_upd)", POSTGRESQL));
        }
        tables.sort_by(|a, b| b.dead_made().total_cmp(&a.dead_made()));
        Ok(tables)
    }

    /// Every recorded table with a TOAST table, most rewritten first.
    ///
    /// # Errors
    /// Like [`Self::table_writes`].
    pub fn toasts(&self) -> Result<Vec<Toast>, Missing> {
        let tables = self.table_writes()?;
        let owner_of = |toast: &TableWrites| {
            let of = toast.toast_of.as_deref()?;
            tables.iter().find(|t| t.source == toast.source && t.database == toast.database && t.table == of).cloned()
        };
        let mut toasts: Vec<Toast> =
            tables.iter().filter_map(|toast| Some(Toast { owner: owner_of(toast)?, toast: toast.clone() })).collect();
        toasts.sort_by(|a, b| b.rewritten().total_cmp(&a.rewritten()));
        Ok(toasts)
    }

    /// Growth of one series in the window and the seconds it covers; none without two samples
    /// around it. A fall is a restart.
    pub fn grown(&self, metric: &str, source: &str, labels: &Labels) -> Option<(f64, f64)> {
        let (_, series) = self.index.series(metric, &[]).find(|((s, l), _)| s == source && l == labels)?;
        let (mut delta, mut seconds) = (0.0, 0.0);
        for pair in series.windows(2) {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            if self.window.contains(from + (to - from) / 2) && after >= before {
                delta += after - before;
                seconds += (to - from) as f64 / 1e9;
            }
        }
        (seconds > 0.0).then_some((delta, seconds))
    }

    /// Last value of one series in the window, or before it if it is read less often.
    pub fn last(&self, metric: &str, source: &str, labels: &Labels) -> Option<f64> {
        let (_, series) = self.index.series(metric, &[]).find(|((s, l), _)| s == source && l == labels)?;
        series.iter().rev().find(|(at, _)| *at < self.window.to).map(|(_, value)| *value)
    }

    /// Evidence that points at a counter of `table`, e.g. `n_tup_ins`.
    pub fn table_evidence(
        &self,
        table: &TableWrites,
        column: Metric,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = table.labels.clone().with("metric", column.name);
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }

    /// Bytes of `table` without its TOAST table and indexes, if recorded.
    pub fn table_bytes(&self, table: &TableWrites) -> Option<f64> {
        let same = |labels: &Labels| {
            labels.get("table") == Some(&table.table) && labels.get("database") == Some(&table.database)
        };
        let mut all = self.index.series(metrics::postgresql::TABLE_SIZE_BYTES.name, &[]);
        let (_, series) = all.find(|((source, labels), _)| *source == table.source && same(labels))?;
        series.last().map(|(_, bytes)| *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    const DB: &str = "postgresql://db";

    /// A second of a queue: 100 rows with five rows of TOAST each inserted, updated twice without their value, and deleted.
    fn queue(live: Option<(f64, f64)>) -> Toast {
        let rows = |inserted, updated, live| TableWrites {
            inserted,
            updated,
            deleted: inserted,
            seconds: 1.0,
            live,
            ..TableWrites::default()
        };
        Toast { owner: rows(100.0, 200.0, live.map(|l| l.0)), toast: rows(500.0, 0.0, live.map(|l| l.1)) }
    }

    #[test]
    fn inserts_and_deletes_do_not_count_as_rewrites() {
        assert_eq!(queue(Some((1_000.0, 5_000.0))).rewritten(), 0.0);
        assert_eq!(queue(Some((0.0, 0.0))).rewritten(), 0.0, "it is empty most of the time");
        let both =
            Toast { toast: TableWrites { inserted: 1_500.0, deleted: 1_500.0, ..queue(None).toast }, ..queue(None) };
        let live = |of: &TableWrites, live| TableWrites { live: Some(live), ..of.clone() };
        let known = Toast { owner: live(&both.owner, 1_000.0), toast: live(&both.toast, 5_000.0) };
        assert_eq!((known.rewritten(), known.per_update()), (1_000.0, 5.0), "each update wrote five");
        assert_eq!(both.rewritten(), 0.0, "it is not known how many rows a value has");
    }

    #[test]
    fn dead_rows_and_rows_of_toast_are_counted_by_table() {
        let owner = [("database", "app"), ("table", "public.article")];
        let toast = [("database", "app"), ("table", "pg_toast.pg_toast_7"), ("toast_of", "public.article")];
        let metric = |column: &str| format!("postgresql_stat_tables_{column}");
        let made = SyntheticRecording::new(10)
            .counter(DB, &metric("n_tup_upd"), &owner, 100.0)
            .counter(DB, &metric("n_tup_hot_upd"), &owner, 40.0)
            .counter(DB, &metric("n_tup_del"), &owner, 5.0)
            .gauge(DB, &metric("n_dead_tup"), &owner, 123.0)
            .counter(DB, &metric("n_tup_upd"), &toast, 0.0)
            .counter(DB, &metric("n_tup_ins"), &toast, 620.0)
            .counter(DB, &metric("n_tup_del"), &toast, 600.0);
        made.seen(|view| {
            let tables = view.table_writes().unwrap();
            assert_eq!((tables[0].table.as_str(), tables[0].dead_made()), ("pg_toast.pg_toast_7", 6_000.0));
            assert_eq!((tables[1].dead_made(), tables[1].dead), (650.0, Some(123.0)));
            let toasts = view.toasts().unwrap();
            assert_eq!((toasts.len(), toasts[0].per_update()), (1, 6.0));
            assert_eq!(toasts[0].bytes_per_second(), 2.0 * 600.0 * 2_048.0);
        });
        assert!(SyntheticRecording::new(10).seen(|view| view.table_writes().is_err()));
    }
}
