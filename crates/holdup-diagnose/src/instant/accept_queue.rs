//! The accept queue of an instant: whether it is full, whether it stands, and whether the workers behind it
//! were seen to be busy. It does not say why connections are not accepted.

use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use crate::resources::workers::{MOSTLY, says_of_limit};

/// A listening socket whose queue was full.
pub(crate) struct AcceptQueue {
    pub evidence: Evidence,
    /// Whether half of it was taken at several readings: a burst drains at once, a line that stands does not.
    pub stands: bool,
    /// That all workers behind it were busy; none if no source showed it.
    pub busy_workers: Option<Evidence>,
}

impl AcceptQueue {
    pub(crate) fn read(view: &View<'_>) -> Option<Self> {
        /// So many are more than chance.
        const READINGS: usize = 3;
        let ports = view.label_values(metrics::tcp::ACCEPT_QUEUE_LENGTH.name, "port");
        ports.iter().find_map(|port| {
            let of = |metric: &str| view.gauge(metric, &[("port", port.as_str())], "").ok();
            let waiting = of(metrics::tcp::ACCEPT_QUEUE_LENGTH.name)?;
            let limit = of(metrics::tcp::ACCEPT_QUEUE_LIMIT.name)?.max;
            (limit > 0.0 && waiting.max >= limit).then(|| {
                let label = [("port", port.as_str())];
                let series = view.index.series(metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &label);
                let lengths: Vec<f64> =
                    series.flat_map(|(_, series)| series.iter().map(|(_, length)| *length)).collect();
                let taken = lengths.iter().filter(|length| 2.0 * **length >= limit).count();
                let stands = taken >= READINGS;
                let often = format!("; half of it was taken at {taken} of {} readings", lengths.len());
                let often = if stands { often } else { String::new() };
                let text = format!(
                    "{:.0} connections waited at port {port}, whose queue takes {limit:.0}{often}",
                    waiting.max
                );
                let evidence = waiting.evidence(format!("{:.0}", waiting.max), "0", text);
                Self { evidence, stands, busy_workers: busy_workers(view) }
            })
        })
    }
}

/// Workers are busy by the server's own figures, or as the kernel shows it: the server has a fixed number of
/// requests whenever others wait in front of it.
fn busy_workers(view: &View<'_>) -> Option<Evidence> {
    if let Some(workers) = view.workers() {
        let text = format!(
            "all {:.0} {} were busy at {} of the instants",
            workers.most,
            workers.name(),
            percent(workers.full_ratio)
        );
        let is_busy = workers.full_ratio >= MOSTLY;
        return is_busy.then(|| workers.evidence(format!("below {:.0} at most instants", workers.most), text));
    }
    let outside = view.outside().ok()?;
    let most = outside.takes_at_once?;
    Some(outside.hand_evidence(format!("{most:.1}"), "", says_of_limit(None, most, &outside.port)))
}
