//! How many requests an app works on at once, by its threads: if each of its workers sleeps in a
//! write to a slow disk, their number stands at one level while requests pile up behind them.

use std::collections::BTreeMap;

use holdup_recording::metrics;

use super::Outside;
use crate::View;
use crate::host::threads::is_database_server;

/// Fewer threads stand at one level by chance.
const LEAST: f64 = 2.0;

/// The level is reached at this share (0-1) of instants: at most.
const MOSTLY: f64 = 0.5;

/// Requests with the server for each of the threads, from which others wait behind them.
const BEHIND: f64 = 1.3;

impl View<'_> {
    /// The most threads of the app that slept uninterruptibly, if as many did at most instants
    /// and more requests were with the server.
    pub fn asleep_at_most(&self, outside: &Outside) -> Option<f64> {
        let apps = self.processes_with(metrics::process::THREADS.name).into_iter();
        let mut asleep: BTreeMap<i64, f64> = BTreeMap::new();
        for app in apps.filter(|app| !is_database_server(app.name)) {
            for (at, count) in self.levels(app.source, metrics::process::THREADS.name, &[("state", "D")]) {
                *asleep.entry(at).or_default() += count;
            }
        }
        let most = asleep.values().copied().fold(0.0, f64::max);
        let full = asleep.values().filter(|count| **count >= most).count() as f64;
        let is_level = most >= LEAST && full >= MOSTLY * asleep.len() as f64;
        (is_level && outside.answering? >= BEHIND * most).then_some(most)
    }
}
