//! What came of a recorded mix: how well it was played, and what held it back.

use holdup_load::engine::{OperationSummary, Summary};
use holdup_load::stats::histogram;
use serde::Serialize;

/// What came of a recorded mix.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlayedFacts {
    /// Statements that ended well, and that did not.
    pub completed: u64,
    /// See `completed`.
    pub failed: u64,
    /// Statements that were due while the one before them in their session was under way.
    pub held_back: u64,
    /// How long they waited, in all and at most, milliseconds.
    pub held_back_ms: f64,
    /// See `held_back_ms`.
    pub held_back_longest_ms: f64,
    /// Sessions that came while as many were connected as may be.
    pub unseated: u64,
    /// How late statements went out although nothing held them back, milliseconds: the generator's own delay.
    pub lag_p50_ms: f64,
    /// See `lag_p50_ms`.
    pub lag_p99_ms: f64,
    /// See `lag_p50_ms`.
    pub lag_max_ms: f64,
}

impl PlayedFacts {
    /// Of what the load engine says; none if it did not play a mix.
    pub fn of(summary: &Summary) -> Option<Self> {
        let bound = summary.bound?;
        let mut lag = histogram();
        let sum = |f: fn(&OperationSummary) -> u64| summary.operations.iter().map(f).sum();
        for operation in summary.operations.iter().filter(|operation| !operation.latencies.is_nothing()) {
            let _ = lag.add(&operation.latencies.send_lag);
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        Some(Self {
            completed: sum(|o| o.completed),
            failed: sum(|o| o.errors),
            held_back: bound.statements,
            held_back_ms: ms(bound.waited_ns),
            held_back_longest_ms: ms(bound.longest_ns),
            unseated: bound.unseated,
            lag_p50_ms: ms(lag.value_at_quantile(0.5)),
            lag_p99_ms: ms(lag.value_at_quantile(0.99)),
            lag_max_ms: ms(lag.max()),
        })
    }

    /// The same in words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} ended well, {} did not; sent within {:.3} ms (p99) of when they were due, at most {:.1} ms",
            self.completed, self.failed, self.lag_p99_ms, self.lag_max_ms
        )];
        if self.held_back > 0 {
            lines.push(format!(
                "the log's own concurrency binds: {} statements were due before the one before them in their session had ended; they waited {:.1} ms in all, {:.1} ms at most",
                self.held_back, self.held_back_ms, self.held_back_longest_ms
            ));
        }
        if self.unseated > 0 {
            lines.push(format!(
                "{} sessions waited until another one left: as many were connected as may be",
                self.unseated
            ));
        }
        lines
    }
}
