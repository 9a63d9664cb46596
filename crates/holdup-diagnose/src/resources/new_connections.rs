//! Connections that a database opened, by its own counter, and how much longer requests wait for one
//! since the baseline window. Two rules ask it: whether each request brings its own, and whether many
//! came at once.

use holdup_recording::metrics;
use holdup_signals::app::timing;
use holdup_signals::{Counter, Gauge, Growth, Missing, View};

use super::connections::NAMES;
use crate::case::Case;

/// What to record for such a counter.
pub const DATABASE: &str = "--watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE";

/// Connections opened for each request, beyond those of the baseline window, from which it is a
/// habit: every other request opens one.
pub const EACH: f64 = 0.5;

/// Counters of opened connections, and the gauges of those that are open.
const COUNTS: [[&str; 2]; 3] = [
    [metrics::mysql::GLOBAL_STATUS_CONNECTIONS.name, metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name],
    [metrics::postgresql::STAT_DATABASE_SESSIONS.name, metrics::postgresql::CONNECTIONS.name],
    [
        metrics::mongodb::SERVER_STATUS_CONNECTIONS_TOTAL_CREATED.name,
        metrics::mongodb::SERVER_STATUS_CONNECTIONS_CURRENT.name,
    ],
];

/// Connections that a database opened.
pub struct NewConnections {
    /// How many.
    pub counter: Counter,
    /// For each request.
    pub each: f64,
    /// The names of the counter and of the gauge beside it.
    names: [&'static str; 2],
}

impl NewConnections {
    /// In `view`.
    ///
    /// # Errors
    /// If no database counted them.
    pub fn measure(case: &Case<'_>, view: &View<'_>) -> Result<Self, Missing> {
        let [mysql, others @ ..] = COUNTS;
        let of = |names: [&'static str; 2]| Ok::<_, Missing>((view.counter(names[0], &[], DATABASE)?, names));
        let first = of(mysql).or_else(|missing| others.into_iter().find_map(|names| of(names).ok()).ok_or(missing));
        let (counter, names) = first?;
        let each = counter.delta / case.completed_in(view.window)?.max(1.0);
        Ok(Self { counter, each, names })
    }

    /// From sample to sample in `view`.
    pub fn growths(&self, view: &View<'_>) -> Vec<Growth> {
        view.growths(|_| true, self.names[0], &[])
    }

    /// Those that are open in `view`.
    ///
    /// # Errors
    /// If they were not recorded.
    pub fn open(&self, view: &View<'_>) -> Result<Gauge, Missing> {
        view.gauge(self.names[1], &[], DATABASE)
    }
}

/// Milliseconds by which a request waits longer for a connection by the app's pool, and whether the
/// pool says so. Without a pool's metrics, the excess without what statements grew by.
pub fn waited_longer_ms(case: &Case<'_>, view: &View<'_>, baseline: &View<'_>) -> (f64, bool) {
    let each = |view: &View<'_>, metric: &str| -> Option<f64> {
        let mean = view.mean(metric, &[], timing::APP_METRICS).ok()?;
        Some(mean.ms * mean.count / case.completed_in(view.window).ok()?.max(1.0))
    };
    let grown = |metric: &str| Some(each(view, metric)? - each(baseline, metric)?);
    match NAMES.iter().find_map(|names| grown(names.wait)) {
        Some(waited) => (waited.max(0.0), true),
        None => ((case.excess_ms() - grown(timing::OPERATION).unwrap_or(0.0)).max(0.0), false),
    }
}
