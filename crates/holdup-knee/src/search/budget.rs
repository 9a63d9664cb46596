//! The time budget: how much is left, and how long a step has to be to show something.

use std::time::Duration;

use crate::judge::{Analysis, MEMORY_MOST, memory};
use crate::{Config, Move, Purpose};

/// The remaining time.
pub(crate) struct Budget {
    left: f64,
    timeout: f64,
    /// Total time.
    pub whole: f64,
}

impl Budget {
    pub fn new(config: &Config, now: Duration) -> Self {
        let whole = config.budget.as_secs_f64();
        let timeout = config.timeout.as_secs_f64();
        let kept = timeout.min(0.25 * whole) + config.gap.as_secs_f64();
        Self { left: (whole - now.as_secs_f64() - kept).max(0.0), timeout, whole }
    }

    /// Most seconds that the next step may take.
    pub fn left(&self) -> f64 {
        self.left
    }

    /// Longest drain: by then everything in flight has ended or timed out.
    pub fn drain(&self) -> Duration {
        Duration::from_secs_f64((self.timeout + 1.0).min(self.left.max(1.0)))
    }
}

/// The length of a step at `rate`: long enough for `requests`, at least `seconds` and a few
/// response times; but never more than a sixth of the remaining time.
pub(crate) fn offer(
    rate: f64,
    requests: f64,
    seconds: f64,
    purpose: Purpose,
    analysis: &Analysis,
    budget: &Budget,
) -> Move {
    let response = analysis.base_response().unwrap_or(0.0).min(5.0);
    let filling = 1.0 + if response > 0.2 { 2.0 * response } else { 0.0 };
    // A step begins with an empty queue; a queue with variation forgets that in about this time.
    let memory = match analysis.capacity {
        Some(capacity) if !analysis.variation.is_little() && rate < capacity.value => {
            (memory(rate / capacity.value) / capacity.value).min(LONGEST_MEMORY)
        }
        _ => 0.0,
    };
    let settle = filling.max(1.5 * memory).ceil();
    let wanted = seconds.max(requests / rate).max(3.0 * response).max(1.05 * memory / MEMORY_MOST).ceil();
    let measured = wanted.min((budget.left() / 6.0).floor()).max(seconds.min(wanted));
    Move::Offer {
        rate,
        length: Duration::from_secs_f64(settle + measured.max(1.0)),
        settle: Duration::from_secs_f64(settle),
        purpose,
    }
}

/// Longest time that a step waits for its queue to forget, seconds.
const LONGEST_MEMORY: f64 = 3.0;

/// The largest share of a capacity at which a step of a few seconds is long compared with the
/// memory of the queue.
pub(crate) fn highest_share(capacity: f64) -> f64 {
    (1.0 - (1.0 / (LONGEST_MEMORY * capacity)).sqrt()).max(0.0).powi(2)
}
