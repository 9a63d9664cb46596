//! A server that executes one command at a time, such as Redis: what it costs a request that something
//! keeps its thread.

use holdup_recording::metrics;
use holdup_signals::View;

/// What to record for such a server.
pub(crate) const ENABLE: &str = "--watch redis://USER@HOST:PORT";

/// Commands that persist the data or fork for that, by their names in the slow log: their time is that of
/// the fork.
const PERSISTENCE: [&str; 3] = ["SAVE", "BGSAVE", "BGREWRITEAOF"];

/// Whether a command of the slow log, such as `BGSAVE ?`, persists the data.
pub(crate) fn is_persistence(text: &str) -> bool {
    PERSISTENCE.contains(&text.split(' ').next().unwrap_or_default())
}

/// The time for which the thread of a server was kept in a window.
pub(crate) struct Kept {
    /// Seconds, by each time that it was kept.
    pub seconds: Vec<f64>,
    /// What a command that arrives at any time waits for it on average, seconds.
    pub wait_s: f64,
    /// Commands of a request.
    pub commands: f64,
}

impl Kept {
    /// The thread of `source` was kept for these `seconds`; so many `requests` completed meanwhile.
    pub(crate) fn new(view: &View<'_>, source: &str, seconds: Vec<f64>, requests: f64) -> Self {
        // A command that arrives while it is kept waits for what is left of it: half of it on average.
        let wait_s = seconds.iter().map(|s| s * s).sum::<f64>() / (2.0 * view.window.seconds().max(1e-3));
        Self { seconds, wait_s, commands: commands(view, source, requests) }
    }

    /// Seconds in all.
    pub(crate) fn total_s(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// The longest time, seconds.
    pub(crate) fn longest_s(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    /// Milliseconds that the commands of a request wait for it.
    pub(crate) fn waited_ms(&self) -> f64 {
        1e3 * self.commands * self.wait_s
    }
}

/// Commands of a request at `source`; 0 if unknown.
pub(crate) fn commands(view: &View<'_>, source: &str, requests: f64) -> f64 {
    let processed = metrics::redis::INFO_TOTAL_COMMANDS_PROCESSED.name;
    let all = view.counter_where(|of| of == source, processed, &[], ENABLE);
    all.map_or(0.0, |all| all.delta) / requests.max(1.0)
}
