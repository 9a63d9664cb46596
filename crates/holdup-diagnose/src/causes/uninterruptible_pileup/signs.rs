//! Threads that the kernel reported to hang for something other than a disk or memory.

use holdup_signals::host::disk_waits::Wait;

use crate::instant::facts::Facts;
use crate::instant::{Signs, hung};
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for task in hung::tasks(&facts.view, &facts.happened) {
        match task.wait {
            Wait::Directory | Wait::Remote => signs.add(STRONG, task.evidence),
            Wait::Unknown => signs.add(FAIR, task.evidence),
            Wait::Fault | Wait::Read | Wait::Page | Wait::Write | Wait::Swap | Wait::Reclaim => {}
        }
    }
}
