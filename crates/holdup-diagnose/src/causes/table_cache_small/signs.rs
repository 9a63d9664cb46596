//! Sessions that open and close tables.

use crate::instant::SOME;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let of_cache = |_: &str, state: &str| {
        let state = state.to_lowercase();
        state.contains("opening table") || state.contains("closing table")
    };
    signs.extend(FAIR, facts.sessions_in(SOME, "opened or closed tables", of_cache));
}
