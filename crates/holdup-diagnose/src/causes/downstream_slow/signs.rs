//! Threads of the app that stand in a call of another service, by their stacks.

use crate::instant::facts::Facts;
use crate::instant::{Signs, stacks};
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(FAIR, stacks::many(facts, &["http"], "stood in a call of another service"));
}
