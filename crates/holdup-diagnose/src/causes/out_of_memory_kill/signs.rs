//! What the kernel and Kubernetes say of kills: by its log, by its counter, and of containers.

use holdup_recording::events;

use super::kills::{Kills, ended};
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{CERTAIN, FAIR};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    facts.pods.memory_kills(signs);
    let logged = facts.happened.by(events::OUT_OF_MEMORY_KILL, "process");
    for (_, kills) in &logged {
        signs.add(CERTAIN, kills.told());
    }
    if !logged.is_empty() {
        return;
    }
    // The counter does not say who was killed: the end of a watched process at that moment does.
    let kills = Kills::count(&facts.view);
    let is_own =
        kills.are_of_cgroup() || ended(&facts.view, &kills.times(&facts.view)).is_ok_and(|ended| !ended.is_empty());
    for evidence in kills.counted() {
        signs.add(if is_own { CERTAIN } else { FAIR }, evidence);
    }
}
