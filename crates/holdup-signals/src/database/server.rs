//! What a MySQL or MariaDB server counts and has set, by its own names; and what each statement did
//! in a window, from the server's counters by digest. Rules interpret it.

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;

use crate::Evidence;
use crate::{Counter, Gauge, Missing, View};

/// What to record for a server.
pub const DATABASE: &str = "--watch mysql://USER@HOST:PORT, as an account with PROCESS";

/// What makes the server count by digest.
const DIGESTS: &str =
    "--watch mysql://USER@HOST:PORT, with performance_schema=ON and its consumer statements_digest on";

/// Growth of one statement's counters in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestUse {
    /// The server.
    pub source: String,
    /// Identity of the statement.
    pub digest: String,
    /// Its text, literals replaced.
    pub text: String,
    /// Default database.
    pub database: Option<String>,
    /// Calls.
    pub calls: f64,
    /// Total time by the server's own timing, seconds.
    pub seconds: f64,
    /// Part of it spent in table locks, seconds.
    pub lock_seconds: f64,
    /// Rows examined.
    pub rows_examined: f64,
    /// Rows sent or changed.
    pub rows_used: f64,
    /// Rows changed.
    pub rows_changed: f64,
    /// Calls that used no index for at least one table.
    pub no_index: f64,
    /// Temporary tables made on disk.
    pub temporary_disk_tables: f64,
}

impl DigestUse {
    /// Rows examined by a mean call.
    pub fn examined_each(&self) -> f64 {
        self.rows_examined / self.calls.max(1.0)
    }
}

impl View<'_> {
    /// Growth of the server's status counter `variable`.
    ///
    /// # Errors
    /// If it was not recorded.
    pub fn status(&self, variable: Metric) -> Result<Counter, Missing> {
        self.counter(variable.name, &[], DATABASE)
    }

    /// The server's status `variable`, a gauge.
    ///
    /// # Errors
    /// If it was not recorded.
    pub fn status_level(&self, variable: Metric) -> Result<Gauge, Missing> {
        self.gauge(variable.name, &[], DATABASE)
    }

    /// Setting `name` of a server, as a number.
    ///
    /// # Errors
    /// If it was not recorded, or is not a number.
    pub fn setting_number(&self, name: &str) -> Result<f64, Missing> {
        let text = self.setting(name, DATABASE)?;
        text.parse().map_err(|_| Missing::new(format!("setting {name} as a number"), DATABASE))
    }

    /// Evidence that points at a setting of any server.
    pub fn variable_evidence(&self, name: &str, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        let value = self.setting(name, DATABASE).unwrap_or_default().to_owned();
        Evidence::new("settings", "value", Labels::new([("name", name)]), self.window, value, expected, text)
    }

    /// Calls by statement, longest total time first. holdup reads the counters every few seconds
    /// where statements are many, so the growth is that between the first and the last read in the
    /// window or just beside it.
    ///
    /// # Errors
    /// If counters by digest were not recorded, or lack one of `columns`.
    pub fn executed(&self, columns: &[&'static str]) -> Result<Vec<DigestUse>, Missing> {
        let all = ["observed_at", "source", "kind", "digest", "calls", "duration_ns"];
        let wanted: Vec<&'static str> = all.into_iter().chain(columns.iter().copied()).collect();
        let missing = |what: String| Missing::new(what, DIGESTS);
        self.recording.tables.statements.with_columns(&wanted).map_err(missing)?;
        let totals = &self.index.condensed.totals;
        if totals.is_empty() {
            return Err(missing("the server's counters by statement (statements, kind digest_total)".to_owned()));
        }
        let mut executed = Vec::new();
        for total in totals {
            let mut of = DigestUse {
                source: total.source.clone(),
                digest: total.digest.clone(),
                text: total.text.clone(),
                database: total.database.clone(),
                calls: 0.0,
                seconds: 0.0,
                lock_seconds: 0.0,
                rows_examined: 0.0,
                rows_used: 0.0,
                rows_changed: 0.0,
                no_index: 0.0,
                temporary_disk_tables: 0.0,
            };
            // There may be one more reading beside the window on either side.
            let readings = &total.readings;
            let from = readings.partition_point(|r| r.observed_at < self.window.from).saturating_sub(1);
            let to = readings.partition_point(|r| r.observed_at < self.window.to).saturating_add(1).min(readings.len());
            for pair in readings.get(from..to).unwrap_or_default().windows(2) {
                let (a, b) = (pair[0], pair[1]);
                // A fall means a restart, or that the digest left the server's table and came back.
                let is_in = self.window.contains(a.observed_at + (b.observed_at - a.observed_at) / 2);
                if !is_in || b.calls < a.calls || b.duration_ns < a.duration_ns {
                    continue;
                }
                let grew = |after: i64, before: i64| (after - before).max(0) as f64;
                of.calls += grew(b.calls, a.calls);
                of.seconds += grew(b.duration_ns, a.duration_ns) / 1e9;
                of.lock_seconds += grew(b.lock_ns, a.lock_ns) / 1e9;
                of.rows_examined += grew(b.rows_examined, a.rows_examined);
                let changed = grew(b.rows_affected, a.rows_affected);
                of.rows_used += grew(b.rows_sent, a.rows_sent) + changed;
                of.rows_changed += changed;
                of.no_index += grew(b.no_index, a.no_index);
                of.temporary_disk_tables += grew(b.temporary_disk_tables, a.temporary_disk_tables);
            }
            if of.calls > 0.0 {
                executed.push(of);
            }
        }
        executed.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Ok(executed)
    }

    /// Evidence that points at the counters of one statement.
    pub fn digest_evidence(
        &self,
        of: &DigestUse,
        column: &str,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = Labels::new([("kind", "digest_total"), ("digest", of.digest.as_str())]);
        Evidence::new("statements", column, labels, self.window, observed, expected, text)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    #[test]
    fn counters_grow_within_the_window_and_restarts_say_nothing() {
        let made = SyntheticRecording::new(10).digest("SELECT 1", |second| (10 * second, 20 * second, 0, 0, 0));
        let executed = made.seen(|view| view.executed(&[]).unwrap());
        assert_eq!((executed.len(), executed[0].calls), (1, 100.0));
        assert!((executed[0].seconds - 0.2).abs() < 1e-9, "{executed:?}");
        let restarted =
            SyntheticRecording::new(10).digest("SELECT 1", |second| (10 * (second % 6), 20 * (second % 6), 0, 0, 0));
        let executed = restarted.seen(|view| view.executed(&[]).unwrap());
        assert_eq!(executed[0].calls, 90.0);
        assert!(SyntheticRecording::new(10).seen(|view| view.executed(&[]).is_err()));
    }
}
