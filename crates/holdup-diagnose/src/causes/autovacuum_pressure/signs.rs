//! Workers of autovacuum beside sessions that wait for the disk.

use crate::instant::facts::Facts;
use crate::instant::{MOST, Signs, is_read_wait};
use crate::strength::WEAK;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let (Some(vacuums), Some(sessions)) = (&facts.vacuums, &facts.sessions) else { return };
    if sessions.count(|_, state| is_read_wait(state)) >= MOST * sessions.active() {
        let text = format!("{:.0} workers of autovacuum ran, beside sessions that wait for the disk", vacuums.max);
        signs.add(WEAK, vacuums.evidence(format!("{:.0}", vacuums.max), "0", text));
    }
}
