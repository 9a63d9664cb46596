//! A load average that no running thread makes, and threads in uninterruptible sleep at places that are
//! not known. Known places are signs of what they wait for. And threads that the kernel reported to hang
//! for something other than a disk or memory.

use holdup_signals::host::disk_waits::Wait;

use super::LEAST;
use crate::instant::facts::Facts;
use crate::instant::{MANY, Signs, hung};
use crate::strength::{FAIR, STRONG, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for task in hung::tasks(&facts.view, &facts.happened) {
        match task.wait {
            Wait::Directory | Wait::Remote => signs.add(STRONG, task.evidence),
            Wait::Unknown => signs.add(FAIR, task.evidence),
            Wait::Fault | Wait::Read | Wait::Page | Wait::Write | Wait::Swap | Wait::Reclaim => {}
        }
    }
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
