//! A statement whose calls take longer than in the baseline window.

use holdup_recording::words::ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View};

use crate::case::{Band, Change};

/// A statement that takes longer.
pub(super) struct Slowdown<'e> {
    pub now: &'e DigestUse,
    /// Milliseconds of a mean execution, before and now.
    pub each_ms: (f64, f64),
    /// By their means over calls.
    pub change: Change,
    /// Its additional milliseconds per request.
    pub extra_ms: f64,
}

impl<'e> Slowdown<'e> {
    pub fn between(now: &'e DigestUse, before: &[DigestUse], completed: f64) -> Option<Self> {
        let same = |of: &&DigestUse| of.digest == now.digest && of.database == now.database && of.source == now.source;
        let then = before.iter().find(same)?;
        let each_ms = (then.seconds / then.calls * 1e3, now.seconds / now.calls * 1e3);
        let extra_ms = (each_ms.1 - each_ms.0) * now.calls / completed;
        let change = Band::of_mean(each_ms.1, now.calls).since(Band::of_mean(each_ms.0, then.calls));
        (extra_ms > 0.0).then_some(Self { now, each_ms, change, extra_ms })
    }
}

pub(super) fn took(of: &Slowdown<'_>, view: &View<'_>) -> Evidence {
    let text = format!(
        "a call takes {}, against {} in the baseline window: {} of a request",
        ms(of.each_ms.1),
        ms(of.each_ms.0),
        ms(of.extra_ms)
    );
    view.digest_evidence(of.now, "duration_ns", format!("{} a call", ms(of.each_ms.1)), ms(of.each_ms.0), text)
}
