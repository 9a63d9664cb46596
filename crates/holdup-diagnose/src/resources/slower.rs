//! Statements whose calls take longer than in the baseline window.

use holdup_recording::words::ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View};

use crate::case::{Band, Change};

/// What all of `slower` take longer together, milliseconds of a request.
pub fn all_ms(slower: &[Slowdown<'_>]) -> f64 {
    slower.iter().fold(0.0, |sum, of| sum + of.extra_ms)
}

/// The same in words, with the pointer to the counters of `first`.
pub fn took_together(first: &DigestUse, all_ms: f64, view: &View<'_>) -> Evidence {
    let text = format!("all statements together take {} of a request longer than before", ms(all_ms));
    view.digest_evidence(first, "duration_ns", format!("{} a request", ms(all_ms)), "", text)
}

/// A statement that takes longer.
pub struct Slowdown<'e> {
    /// Its use now.
    pub now: &'e DigestUse,
    /// Milliseconds of a mean execution, before and now.
    pub each_ms: (f64, f64),
    /// By their means over calls.
    pub change: Change,
    /// Its additional milliseconds per request.
    pub extra_ms: f64,
}

impl<'e> Slowdown<'e> {
    /// Those of `executed` that take longer than they did `before`, by what they cost a request.
    pub fn all(executed: &'e [DigestUse], before: &[DigestUse], completed: f64) -> Vec<Self> {
        let mut slower: Vec<_> = executed.iter().filter_map(|now| Self::between(now, before, completed)).collect();
        slower.sort_by(|a, b| b.extra_ms.total_cmp(&a.extra_ms));
        slower
    }

    fn between(now: &'e DigestUse, before: &[DigestUse], completed: f64) -> Option<Self> {
        let same = |of: &&DigestUse| of.digest == now.digest && of.database == now.database && of.source == now.source;
        let then = before.iter().find(same)?;
        let each_ms = (then.seconds / then.calls * 1e3, now.seconds / now.calls * 1e3);
        let extra_ms = (each_ms.1 - each_ms.0) * now.calls / completed;
        let change = Band::of_mean(each_ms.1, now.calls).since(Band::of_mean(each_ms.0, then.calls));
        (extra_ms > 0.0).then_some(Self { now, each_ms, change, extra_ms })
    }

    /// What a call takes, and took.
    pub fn took(&self, view: &View<'_>) -> Evidence {
        let (before, now) = self.each_ms;
        let text = format!(
            "a call takes {}, against {} in the baseline window: {} of a request",
            ms(now),
            ms(before),
            ms(self.extra_ms)
        );
        view.digest_evidence(self.now, "duration_ns", format!("{} a call", ms(now)), ms(before), text)
    }
}
