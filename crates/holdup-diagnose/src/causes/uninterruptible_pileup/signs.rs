//! A load average that no running thread makes, and threads in uninterruptible sleep at places that are
//! not known. Known places are signs of what they wait for.

use super::LEAST;
use crate::instant::facts::Facts;
use crate::instant::{MANY, Signs};
use crate::strength::{FAIR, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let asleep = facts.asleep.as_ref();
    let located = asleep.map_or(0.0, |asleep| asleep.mean_where(|place| place.function().is_some()));
    if located >= LEAST {
        return;
    }
    // Threads that wait for a disk are one of the reasons; its own signs say so.
    let is_disk = facts.full_disk().is_some() || facts.idle.as_ref().is_some_and(|(_, waiting, _)| *waiting >= 0.2);
    signs.extend(WEAK, facts.load_beside_idle().filter(|_| !is_disk));
    if let Some(asleep) = asleep.filter(|asleep| asleep.mean >= MANY.max(facts.cpus.unwrap_or(0.0))) {
        let text = format!("{:.0} threads were in uninterruptible sleep; where is not known", asleep.mean);
        signs.add(FAIR, asleep.counted(format!("{:.0} threads", asleep.mean), "about 0", text));
    }
}
