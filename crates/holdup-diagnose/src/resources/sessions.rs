//! Sessions of the database: how many there are, and how many more of them execute in some moments
//! than in others.

use std::collections::BTreeSet;

use holdup_recording::metrics;
use holdup_recording::words::{ms, percent};
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Gauge, Missing, View, Window};

use crate::case::Case;

pub use crate::resources::slowed_operations::ALWAYS;

/// How sessions are counted, whatever they do.
const COUNTS: [&str; 2] = [metrics::mysql::SESSIONS.name, metrics::postgresql::SESSIONS.name];

/// The count of all sessions, or of those with `labels`; none if they were not recorded.
pub fn counted(view: &View<'_>, labels: &[(&str, &str)]) -> Option<Gauge> {
    COUNTS.iter().find_map(|metric| view.gauge(metric, labels, DATABASE).ok())
}

/// Sessions executing while something stands in their way, and at other times.
pub struct PileUp {
    /// Share (0-1) of the instants at which it does.
    pub ratio: f64,
    /// Sessions executing then, on average.
    then: f64,
    /// The excess over other instants, on average.
    pub more: f64,
}

impl PileUp {
    /// Inside and outside `storms`.
    ///
    /// # Errors
    /// If sessions were not recorded.
    pub fn measure(case: &Case<'_>, view: &View<'_>, storms: &[Window]) -> Result<Self, Missing> {
        let in_storm = |at: i64| storms.iter().any(|w| w.contains(at));
        let (then, instants) = executing(view, &in_storm)?;
        let (other, others) = executing(view, &|at| !in_storm(at))?;
        let ratio = instants / (instants + others).max(1.0);
        let then = then / instants.max(1.0);
        // If the storm never ends, the baseline window shows the usual number.
        let usual = match case.baseline().filter(|_| ratio >= ALWAYS) {
            Some(baseline) => {
                executing(&baseline, &|_| true).map(|(sessions, instants)| sessions / instants.max(1.0)).unwrap_or(0.0)
            }
            None if others > 0.0 => other / others,
            None => 0.0,
        };
        Ok(Self { ratio, then, more: (then - usual).max(0.0) })
    }

    /// Milliseconds of a request, by Little's law: sessions that stand still = rate x time that
    /// they stand still.
    pub fn request_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        self.more * self.ratio / (completed / view.window.seconds()) * 1e3
    }

    /// Evidence of what it costs a request.
    pub fn evidence(&self, view: &View<'_>, explains_ms: f64) -> Option<Evidence> {
        let text = format!(
            "{:.1} sessions executed on average in the {} of the time when pages had to be written first, {:.1} more than at other times: {} per request",
            self.then,
            percent(self.ratio),
            self.more,
            ms(explains_ms)
        );
        Some(counted(view, &[])?.evidence(format!("{:.1} more", self.more), "as many as at other times", text))
    }
}

/// Sightings of executing sessions at the instants that are `meant`, and the number of these.
fn executing(view: &View<'_>, meant: &dyn Fn(i64) -> bool) -> Result<(f64, f64), Missing> {
    let rows = view.sessions(&["observed_at", "true_state"])?;
    let series = COUNTS.into_iter().flat_map(|metric| view.index.series(metric, &[]));
    let series = series.flat_map(|(_, series)| series.iter().map(|(at, _)| *at));
    let instants: BTreeSet<i64> = series.filter(|at| view.window.contains(*at) && meant(*at)).collect();
    let sessions = rows.iter().filter(|s| s.true_state == "executing" && meant(s.observed_at)).count() as f64;
    Ok((sessions, instants.len() as f64))
}
