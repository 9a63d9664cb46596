//! Time: how much of it is left, and how long a step has to be to show something.

use std::time::Duration;

use crate::judge::{Analysis, MEMORY_MOST, memory};
use crate::{Config, Move, Purpose};

/// The time that is left.
pub(crate) struct Budget {
    left: f64,
    timeout: f64,
    /// All of it.
    pub whole: f64,
}

impl Budget {
    pub fn of(config: &Config, now: Duration) -> Self {
        let whole = config.budget.as_secs_f64();
        let timeout = config.timeout.as_secs_f64();
        let kept = timeout.min(0.25 * whole) + config.gap.as_secs_f64();
        Self { left: (whole - now.as_secs_f64() - kept).max(0.0), timeout, whole }
    }

    /// Seconds that the next step may take at most.
    pub fn left(&self) -> f64 {
        self.left
    }

    /// How long a drain may take: what is in flight has ended or timed out by then.
    pub fn drain(&self) -> Duration {
        Duration::from_secs_f64((self.timeout + 1.0).min(self.left.max(1.0)))
    }
}

/// A step at `rate`: as long as it takes to see `requests` of them, `seconds` at least, a few response times at least; but
/// never more than a sixth of what is left.
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
    // A step begins with an empty queue; one that varies forgets that in about so long.
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

/// No step waits longer than this for its queue to forget, seconds.
const LONGEST_MEMORY: f64 = 3.0;

/// The largest share of a capacity at which a step of a few seconds is long against the memory of the queue.
pub(crate) fn highest_share(capacity: f64) -> f64 {
    (1.0 - (1.0 / (LONGEST_MEMORY * capacity)).sqrt()).max(0.0).powi(2)
}
