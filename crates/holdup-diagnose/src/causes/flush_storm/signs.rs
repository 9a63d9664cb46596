//! A disk that mostly writes, sessions that wait for pages to be written, and checkpoints that the log
//! asked for.

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, Signs, stacks};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_recording::rows::Event;
use holdup_recording::words::ms;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::Writes));
    signs.extend(STRONG, stacks::many(facts, &["flush"], "waited until pages were written"));
    slow_syncs(facts, signs);
    let flushes = |_: &str, state: &str| kind(state) == WaitKind::Flush;
    let waiting = facts.sessions_in(MOST, "waited until pages were written", flushes);
    // Checkpoints may be usual, so they count beside sessions that wait.
    if waiting.is_some() {
        for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.requested_checkpoints()) {
            signs.add(strength, evidence);
        }
    }
    signs.extend(STRONG, waiting);
}

/// Checkpoints whose files took seconds to reach the disk, by the server's log: pages are written over minutes, and the flush
/// at the end holds up others.
fn slow_syncs(facts: &Facts<'_>, signs: &mut Signs) {
    const SLOW_MS: f64 = 3_000.0;
    let sync_ms = |event: &Event| event.labels.get("sync_ms").and_then(|ms| ms.parse::<f64>().ok());
    let slow = facts.happened.of("checkpoint", |event| sync_ms(event).is_some_and(|ms| ms >= SLOW_MS));
    if let Some(slow) = slow {
        let most = ms(slow.most("sync_ms").unwrap_or(0.0));
        let text = format!("checkpoints waited up to {most} until their files were on the disk, {}", slow.when());
        signs.add(if slow.count > 1 { STRONG } else { FAIR }, slow.evidence(text));
    }
}
