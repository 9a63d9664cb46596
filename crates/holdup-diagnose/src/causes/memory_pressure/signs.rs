//! Threads that wait for memory, and pages that are swapped while hardly any is available.

use holdup_recording::{events, metrics};
use holdup_signals::host::disk_waits::Wait;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::instant::hung;
use crate::strength::{FAIR, STRONG, WEAK};

/// Memory with less available than this share (0-1) is short.
const SHORT: f64 = 0.05;

/// With more available than this share (0-1), pages that come back had been put away long before.
const AMPLE: f64 = 0.2;

/// Pages a second that go out and come in at the same time: memory is taken from what needs it …
const THRASHES: f64 = 100.0;

/// … and hardly anything else is done from this many in all.
const STORM: f64 = 2_000.0;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for sign in facts.asleep_in(|_, wait| matches!(wait, Wait::Swap | Wait::Reclaim)) {
        signs.add(STRONG, sign);
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
    } else {
        storm(facts, signs);
    }
    let waits = hung::tasks(&facts.view, &facts.happened);
    for task in waits.into_iter().filter(|task| matches!(task.wait, Wait::Swap | Wait::Reclaim)) {
        signs.add(STRONG, task.evidence);
    }
    signs.extend(WEAK, facts.happened.errors(events::OUT_OF_MEMORY).map(|errors| errors.told()));
    signs.extend(WEAK, facts.happened.of("page_allocation_failure", |_| true).map(|failed| failed.told()));
}

/// Pages go out and come in at once, where nothing shows that much memory is available.
fn storm(facts: &Facts<'_>, signs: &mut Signs) {
    let has_memory = facts.available.as_ref().is_some_and(|(share, _)| *share >= AMPLE);
    let pages = |direction: &str| {
        let labels = [("direction", direction)];
        facts.view.counter(metrics::host::PAGING_OPERATIONS.name, &labels, "").map_or(0.0, |pages| pages.rate())
    };
    let thrashes = pages("in") >= THRASHES && pages("out") >= THRASHES;
    if let Some((rate, swapped)) = facts.swapped.as_ref().filter(|_| thrashes && !has_memory) {
        signs.add(STRONG * (rate / STORM), swapped.clone());
    }
    for (strength, evidence) in facts.clouds.iter().flat_map(|database| database.out_of_memory()) {
        signs.add(strength, evidence);
    }
}
