//! Disks without room or soon without any, and sessions that stand at the end of a write meanwhile.

use crate::resources::full_disk::ShownBy;

use super::filling::worth;
use super::{is_write, strength};
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for full in &facts.full {
        // A full file system alone may hold nothing that is written.
        let shows_write = matches!(full.shown_by, ShownBy::Write | ShownBy::Cloud);
        signs.add(if shows_write { strength(full.shown_by) } else { FAIR }, full.evidence.clone());
    }
    for filling in &facts.filling {
        signs.add(worth(filling), filling.evidence.clone());
    }
    let Some(sessions) = facts.sessions.as_ref().filter(|_| !facts.full.is_empty()) else { return };
    let writes = |of: &str, state: &str| of == "executing" && is_write(state);
    let count = sessions.count(writes);
    if count >= 2.0 {
        let text = format!("{count:.0} of {:.0} active sessions stood at the end of a write", sessions.active());
        signs.extend(STRONG, sessions.evidence(writes, "few", text));
    }
}
