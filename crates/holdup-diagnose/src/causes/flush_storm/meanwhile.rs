//! What the server changed while pages had to be written first, and at other times. Under a steady load as
//! much is changed in a storm as before it: each change takes longer. So only a burst of changes refutes one.
//! The log alone does not show a burst: after each checkpoint PostgreSQL logs a changed page whole.

use holdup_recording::metrics::{self, Metric};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Growth, View, Window};

use super::{SLOWER, bytes, thousands};

/// From this factor on, more is changed than at other times.
const BURST: f64 = 1.25;

/// A change takes this many times as much log where pages are logged whole.
const WHOLE_PAGES: f64 = 1.5;

/// Rows that the server changed, by all statements.
const ROWS: [Metric; 6] = [
    metrics::postgresql::STAT_DATABASE_TUP_INSERTED,
    metrics::postgresql::STAT_DATABASE_TUP_UPDATED,
    metrics::postgresql::STAT_DATABASE_TUP_DELETED,
    metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED,
    metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED,
    metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_DELETED,
];

/// Its log; the first that was recorded.
const LOG: [Metric; 3] = [
    metrics::postgresql::WAL_POSITION_BYTES,
    metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN,
    metrics::mysql::GLOBAL_STATUS_INNODB_LSN_CURRENT,
];

/// Changes in storms and at other times.
pub(super) struct Meanwhile {
    /// How many times as much is changed in storms as at other times of the episode, by rows or else by the
    /// log; none without other times.
    factor: Option<f64>,
    /// How many times as much log a changed row takes then; 1 if unknown.
    log_factor: f64,
    /// The figures.
    pub evidence: Evidence,
}

impl Meanwhile {
    /// In `view`: inside `storms`, and outside of them. Without such time, `baseline` shows the
    /// usual figures; that more is changed than then does not refute a storm, because changes may be what
    /// fills the log. None if neither rows nor log were recorded on both sides.
    pub(super) fn measure(view: &View<'_>, storms: &[Window], baseline: Option<&View<'_>>) -> Option<Self> {
        let usual = |of: &[Metric]| {
            let other_times = rate(view, of, storms, false);
            other_times.or_else(|| rate(baseline?, of, &[], false))
        };
        let both = |of: &[Metric]| Some((rate(view, of, storms, true)?, usual(of)?));
        let (log, counted) = LOG.iter().find_map(|log| Some((both(&[*log])?, log)))?;
        let rows = both(&ROWS).filter(|(_, usual)| *usual > 0.0);
        let times = |(now, usual): (f64, f64)| now / usual.max(f64::MIN_POSITIVE);
        let each = rows.filter(|(then, _)| *then > 0.0).map(|(then, usual)| (log.0 / then, log.1 / usual));
        let text = match (rows, each) {
            (Some((then, usual)), Some((each, usual_each))) => format!(
                "while pages had to be written first {} rows/s were changed, with {} of log each; at other times {} rows/s, with {}",
                thousands(then),
                bytes(each),
                thousands(usual),
                bytes(usual_each)
            ),
            _ => format!(
                "while pages had to be written first the log grew by {}/s, at other times by {}/s",
                bytes(log.0),
                bytes(log.1)
            ),
        };
        let evidence = view.counter(counted.name, &[], "").ok()?.evidence(
            format!("{}/s", bytes(log.0)),
            format!("{}/s", bytes(log.1)),
            text,
        );
        let has_other_times = rate(view, &[*counted], storms, false).is_some();
        let factor = has_other_times.then(|| times(rows.unwrap_or(log)));
        Some(Self { factor, log_factor: each.map_or(1.0, times), evidence })
    }

    /// Whether more was changed than at other times: then that is what sessions pile up for.
    pub(super) fn is_burst(&self) -> bool {
        self.factor.is_some_and(|factor| factor >= BURST)
    }

    /// Whether less was changed than at other times: changes had to stop.
    pub(super) fn is_slower(&self) -> bool {
        self.factor.is_some_and(|factor| factor <= SLOWER)
    }

    /// Whether about as much was changed as at other times.
    pub(super) fn is_steady(&self) -> bool {
        self.factor.is_some() && !self.is_burst() && !self.is_slower()
    }

    /// Whether a changed row took far more log than at other times: pages were logged whole.
    pub(super) fn logs_whole_pages(&self) -> bool {
        self.log_factor >= WHOLE_PAGES
    }
}

/// What the counters `of` grew by per second inside `storms`, or outside of them; none without such a time.
pub(super) fn rate(view: &View<'_>, of: &[Metric], storms: &[Window], is_storm: bool) -> Option<f64> {
    let middle = |g: &Growth| g.window.from + (g.window.to - g.window.from) / 2;
    let one = |metric: &Metric| {
        let growths = view.growths(|_| true, metric.name, &[]);
        let meant = growths.iter().filter(|g| storms.iter().any(|w| w.contains(middle(g))) == is_storm);
        let (delta, seconds) = meant.fold((0.0, 0.0), |(d, s), g| (d + g.delta, s + g.window.seconds()));
        (seconds > 0.0).then(|| delta / seconds)
    };
    of.iter().filter_map(one).reduce(|sum, rate| sum + rate)
}
