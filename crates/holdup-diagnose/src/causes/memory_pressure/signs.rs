//! Threads that wait for memory, and pages that are swapped while hardly any is available.

use holdup_signals::host::disk_waits::Wait;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG};

/// Memory with less available than this share (0-1) is short.
const SHORT: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for evidence in facts.asleep_in(|_, wait| matches!(wait, Wait::Swap | Wait::Reclaim)) {
        signs.add(STRONG, evidence);
    }
    if let [Some((strength, evidence)), ..] = &facts.counts.stalled {
        signs.add(*strength, evidence.clone());
    }
    if let (Some((rate, swapped)), Some((share, available))) = (&facts.swapped, &facts.available)
        && *rate >= 1.0
        && *share <= SHORT
    {
        signs.add(STRONG, swapped.clone());
        signs.add(FAIR, available.clone());
    }
}
