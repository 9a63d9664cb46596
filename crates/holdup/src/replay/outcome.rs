//! The outcome of a replay: how faithfully it was played, and what delayed it.

use holdup_load::engine::{OperationSummary, Summary};
use holdup_load::stats::histogram;
use serde::Serialize;

/// The outcome of a recorded mix.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlayedFacts {
    /// Statements that succeeded.
    pub completed: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Statements that were due while the previous one in their session was still running.
    pub held_back: u64,
    /// Their wait in total, milliseconds.
    pub held_back_ms: f64,
    /// Their longest wait, milliseconds.
    pub held_back_longest_ms: f64,
    /// Sessions that came while all allowed connections were in use.
    pub unseated: u64,
    /// How late statements were sent although nothing delayed them, milliseconds: the generator's
    /// own lag.
    pub lag_p50_ms: f64,
    /// See `lag_p50_ms`.
    pub lag_p99_ms: f64,
    /// See `lag_p50_ms`.
    pub lag_max_ms: f64,
}

impl PlayedFacts {
    /// The outcome in the engine's summary; none if the load was not a mix.
    pub fn from_summary(summary: &Summary) -> Option<Self> {
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
            "{} succeeded, {} failed; sent within {:.3} ms (p99) of their due time, at most {:.1} ms",
            self.completed, self.failed, self.lag_p99_ms, self.lag_max_ms
        )];
        if self.held_back > 0 {
            lines.push(format!(
                "the sessions themselves are the limit: {} statements were due before the previous one in their session had ended; they waited {:.1} ms in total, {:.1} ms at most",
                self.held_back, self.held_back_ms, self.held_back_longest_ms
            ));
        }
        if self.unseated > 0 {
            lines.push(format!(
                "{} sessions waited for another to leave, because all allowed connections were in use",
                self.unseated
            ));
        }
        lines
    }
}
