//! Most active sessions wait for a lock.

use crate::instant::facts::Facts;
use crate::instant::{MOST, Signs};
use crate::strength::STRONG;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(STRONG, facts.sessions_in(MOST, "waited for a lock", |of, _| of == "lock_wait"));
}
