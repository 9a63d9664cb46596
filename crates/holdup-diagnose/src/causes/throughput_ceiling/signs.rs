//! Most of PostgreSQL's sessions wait for the disk.

use crate::instant::facts::Facts;
use crate::instant::{MOST, Signs, is_log_wait, is_read_wait};
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if facts.is_postgresql {
        let waits = |_: &str, state: &str| is_read_wait(state) || is_log_wait(state);
        facts.holds(signs, (FAIR * 0.9, MOST), "waited for the disk", waits);
    }
}
