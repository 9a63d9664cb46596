//! Most of PostgreSQL's sessions wait for the disk, or a managed database's volume moves all the bytes
//! that it may.

use holdup_signals::host::throttle::Unit;

use crate::instant::facts::Facts;
use crate::instant::{MOST, Signs, is_log_wait, is_read_wait};
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    facts.add_of_volume(signs, |database| database.at_ceiling(Unit::Bytes));
    // A provider's figures show the volume itself.
    if facts.is_postgresql && !facts.clouds.iter().any(|database| database.sees_volume()) {
        let waits = |_: &str, state: &str| is_read_wait(state) || is_log_wait(state);
        signs.extend(FAIR * 0.9, facts.sessions_in(MOST, "waited for the disk", waits));
    }
}
