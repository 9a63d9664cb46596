//! Requests whose connecting took as long as the timers after which TCP asks for a connection
//! again: a first packet was dropped, at whichever place.

use holdup_recording::Labels;
use holdup_recording::words::{ms, thousands};
use holdup_signals::evidence::Evidence;

use crate::case::Case;

/// Connecting took the first, second or third timer if it took this long, milliseconds; timers end
/// on a tick.
const TIMERS_MS: [(f64, f64); 3] = [(950.0, 1_400.0), (2_900.0, 3_600.0), (6_800.0, 7_800.0)];

/// Milliseconds that one dropped packet adds at most, where three in a row make seven seconds.
const PER_DROP_MS: f64 = 7_000.0 / 3.0;

/// What they were in the slow window.
pub struct LateConnects {
    count: f64,
    connected: f64,
    worst_ms: f64,
    /// The time that they took to connect, over all requests that ended.
    request_ms: f64,
    completed: f64,
}

impl LateConnects {
    /// None if no connection was late, or no request was recorded.
    pub fn measure(case: &Case<'_>) -> Option<Self> {
        let rows = case.slow_requests().ok()?;
        let completed = case.completed_in(case.slow().window).ok()?.max(1.0);
        let took: Vec<(f64, f64)> = rows.iter().map(|r| (r.connect_ns as f64 / 1e6, r.count() as f64)).collect();
        let is_late = |(ms, _): &&(f64, f64)| TIMERS_MS.iter().any(|(from, to)| *from <= *ms && *ms < *to);
        let count = took.iter().filter(is_late).map(|(_, count)| count).sum();
        (count > 0.0).then(|| Self {
            count,
            connected: took.iter().filter(|(ms, _)| *ms > 0.0).map(|(_, count)| count).sum(),
            worst_ms: took.iter().map(|(ms, _)| *ms).fold(0.0, f64::max),
            request_ms: took.iter().filter(is_late).map(|(ms, count)| ms * count).sum::<f64>() / completed,
            completed,
        })
    }

    /// Milliseconds of a mean request that `dropped` packets account for.
    pub fn explained_ms(&self, dropped: f64) -> f64 {
        self.request_ms.min(dropped * PER_DROP_MS / self.completed)
    }

    /// How many they were.
    pub fn evidence(&self, case: &Case<'_>) -> Evidence {
        let text = format!(
            "connecting took 1, 3 or 7 seconds for {} of {} requests, {} at most: the first packet was dropped and resent",
            thousands(self.count),
            thousands(self.connected),
            ms(self.worst_ms)
        );
        let window = case.slow().window;
        Evidence::new("requests", "connect_ns", Labels::none(), window, thousands(self.count), "0", text)
    }
}
