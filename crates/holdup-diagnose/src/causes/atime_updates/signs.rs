//! A file system that was mounted so that each read of a file writes its access time.

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::resources::mounts;
use crate::strength::WEAK;

/// Worth (0-1) of the option where no disk was seen to be waited for.
const ALONE: f64 = 0.5;

/// The option is rare, because relatime is the default, and its effect is small as a rule: many reads of one
/// file update a single inode. It cannot be more than the part of the disk's operations that are writes.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    // A disk with time left, or CPUs that wait for none, leave nothing to explain.
    let Some(is_waited_for) = facts.is_disk_waited_for() else { return };
    for mount in facts.strict_mounts() {
        let text = "each read of a file writes its access time, too";
        let strength = match &facts.disk {
            Some(disk) => {
                let all = disk.read.operations + disk.write.operations;
                WEAK * (disk.write.operations / all.max(1.0))
            }
            None if is_waited_for => WEAK,
            None => WEAK * ALONE,
        };
        signs.add(strength, mounts::options(&facts.view, &mount, text));
    }
}
