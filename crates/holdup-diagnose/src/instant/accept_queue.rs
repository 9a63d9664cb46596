//! The accept queue of an instant: whether it is full and whether it stands. And the workers of an app
//! server: whether they were seen to be busy, and whether requests wait for one. Neither says why.

use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::MANY;
use crate::resources::workers::{MOSTLY, says_of_limit};

/// A listening socket whose queue was full.
pub(crate) struct AcceptQueue {
    pub evidence: Evidence,
    /// Whether half of it was taken at several readings, or at every one: a burst drains at once, a line that
    /// stands does not, and a single look meets what lasts.
    pub stands: bool,
    /// Whether that was seen at several readings.
    pub is_sure: bool,
}

/// The workers of an app server.
pub(crate) struct SeenWorkers {
    /// That all of them were busy, by their own figures or as the kernel shows it.
    pub busy: Option<Evidence>,
    /// That requests waited for one of them, by the server's own count.
    pub queued: Option<Evidence>,
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
                let is_sure = taken >= READINGS;
                let stands = is_sure || taken == lengths.len();
                let often = format!("; half of it was taken at {taken} of {} readings", lengths.len());
                let often = if is_sure { often } else { String::new() };
                let text = format!(
                    "{:.0} connections waited at port {port}, whose queue takes {limit:.0}{often}",
                    waiting.max
                );
                let evidence = waiting.evidence(format!("{:.0}", waiting.max), "0", text);
                Self { evidence, stands, is_sure }
            })
        })
    }
}

impl SeenWorkers {
    /// As the server's own figures show them; else by the kernel: the server has a fixed number of requests
    /// whenever others wait in front of it.
    pub(crate) fn read(view: &View<'_>) -> Option<Self> {
        let Some(workers) = view.workers() else {
            let outside = view.outside().ok()?;
            let most = outside.takes_at_once?;
            let busy = outside.hand_evidence(format!("{most:.1}"), "", says_of_limit(None, most, &outside.port));
            return Some(Self { busy: Some(busy), queued: None });
        };
        let name = workers.name();
        let often = percent(workers.full_ratio);
        let text = format!("all {:.0} {name} were busy at {often} of the instants", workers.most);
        let busy = || workers.evidence(format!("below {:.0} at most instants", workers.most), text);
        let queued = workers.queue.filter(|queued| *queued >= MANY).map(|queued| {
            workers.evidence(
                "0 that wait",
                format!("{queued:.0} requests waited for one of the {:.0} {name}", workers.most),
            )
        });
        Some(Self { busy: (workers.full_ratio >= MOSTLY).then(busy), queued })
    }
}
