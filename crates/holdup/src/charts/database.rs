//! Charts of the database: its sessions, statements, plans and dead rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdup_recording::metrics;

use super::{Plot, Points, Series};

impl Plot<'_> {
    /// Sessions by true state.
    pub(super) fn sessions(&self) -> Vec<Series> {
        if self.stretch.course().is_some() {
            return self.counted_sessions();
        }
        let mut instants: BTreeMap<i64, BTreeMap<&str, f64>> = BTreeMap::new();
        for (at, _) in self.samples(metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name, &[]).into_values().flatten() {
            instants.entry(at).or_default();
        }
        for session in &self.recording.tables.sessions.rows {
            *instants.entry(session.observed_at).or_default().entry(&session.true_state).or_default() += 1.0;
        }
        ["queued", "lock_wait", "executing", "idle"]
            .iter()
            .map(|state| {
                let points = instants.iter().map(|(at, counts)| (*at, Some(counts.get(state).copied().unwrap_or(0.0))));
                self.series(state, points.collect())
            })
            .filter(|s| s.y.iter().flatten().any(|v| *v > 0.0))
            .collect()
    }

    /// The same by the server's counts, where the rows of sessions were not all read.
    fn counted_sessions(&self) -> Vec<Series> {
        let counts = [metrics::mysql::SESSIONS.name, metrics::postgresql::SESSIONS.name];
        let of_state = |state: &'static str| {
            let labels = [("true_state", state)];
            let mut series = self.gauges(&counts.map(|metric| (state, metric, labels.as_slice())));
            series.retain(|s| s.y.iter().flatten().any(|value| *value > 0.0));
            series
        };
        ["queued", "lock_wait", "executing", "idle"].into_iter().flat_map(of_state).collect()
    }

    /// Median duration per second of the digests that took the most time.
    pub(super) fn statements(&self) -> Vec<Series> {
        const MOST_DIGESTS: usize = 5;
        #[derive(Default)]
        struct Digest<'a> {
            total_ns: i64,
            text: &'a str,
            by_second_ms: BTreeMap<i64, Vec<f64>>,
        }
        let mut digests: BTreeMap<&str, Digest<'_>> = BTreeMap::new();
        let condensed =
            self.stretch.course().map_or_else(|| Arc::clone(&self.condensed), |_| super::condensed(self.stretch));
        for one in condensed.executions.within(i64::MIN, i64::MAX) {
            let second = self.start + (one.observed_at - self.start).div_euclid(1_000_000_000) * 1_000_000_000;
            let digest = digests.entry(one.digest).or_default();
            digest.total_ns += one.duration_ns;
            digest.text = one.digest_text;
            digest.by_second_ms.entry(second).or_default().push(one.duration_ns as f64 / 1e6);
        }
        let mut ranked: Vec<Digest<'_>> = digests.into_values().collect();
        ranked.sort_by_key(|d| std::cmp::Reverse(d.total_ns));
        let series = ranked.into_iter().take(MOST_DIGESTS).map(|digest| {
            let points = digest.by_second_ms.into_iter().map(|(at, mut values)| {
                values.sort_by(f64::total_cmp);
                (at, values.get(values.len() / 2).copied())
            });
            self.series(&digest.text.chars().take(60).collect::<String>(), points.collect())
        });
        series.collect()
    }

    /// Durations of executions with a recorded plan, for statements with more than one plan shape.
    pub(super) fn plans(&self) -> Vec<Series> {
        const MOST_SHAPES: usize = 8;
        let mut shapes: BTreeMap<&str, BTreeMap<&str, Points>> = BTreeMap::new();
        for plan in &self.stretch.tables.plans.rows {
            if let Some(ns) = plan.duration_ns {
                let by_shape = shapes.entry(&plan.digest).or_default();
                by_shape.entry(&plan.shape).or_default().push((plan.observed_at, Some(ns as f64 / 1e6)));
            }
        }
        let several = shapes.into_iter().filter(|(_, by_shape)| by_shape.len() > 1);
        let all = several
            .flat_map(|(digest, by_shape)| by_shape.into_iter().map(move |(shape, points)| (digest, shape, points)));
        let series = all.take(MOST_SHAPES).map(|(digest, shape, mut points)| {
            points.sort_by_key(|(at, _)| *at);
            let start = |text: &str| text.chars().take(8).collect::<String>();
            let named = format!("{}, shape {}", start(digest), start(shape));
            Series { style: "points", ..self.series(&named, points) }
        });
        series.collect()
    }

    /// Dead rows of the tables with the most of them, as the server counts them.
    pub(super) fn dead_rows(&self) -> Vec<Series> {
        const MOST_TABLES: usize = 6;
        /// A vacuum removes fewer than this at once.
        const FEWEST_ROWS: f64 = 100.0;
        let most = |points: &[(i64, f64)]| points.iter().fold(0.0, |most: f64, (_, rows)| most.max(*rows));
        let mut tables: Vec<_> =
            self.samples(metrics::postgresql::STAT_TABLES_N_DEAD_TUP.name, &[]).into_iter().collect();
        tables.retain(|(_, points)| most(points) >= FEWEST_ROWS);
        tables.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)));
        let named = |labels: &str| {
            let labels = holdup_recording::Labels::from(labels);
            let table = labels.get("table").unwrap_or_default().to_owned();
            labels.get("toast_of").map_or(table, |of| format!("TOAST of {of}"))
        };
        tables
            .into_iter()
            .take(MOST_TABLES)
            .map(|((_, labels), points)| {
                self.series(&named(&labels), points.into_iter().map(|(at, rows)| (at, Some(rows))).collect())
            })
            .collect()
    }
}
