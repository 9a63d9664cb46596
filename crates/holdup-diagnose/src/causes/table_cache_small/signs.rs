//! Sessions that open and close tables.

use crate::instant::facts::Facts;
use crate::instant::{SOME, Signs};
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let of_cache = |_: &str, state: &str| {
        let state = state.to_lowercase();
        state.contains("opening table") || state.contains("closing table")
    };
    facts.holds(signs, (FAIR, SOME), "opened or closed tables", of_cache);
}
