//! What Kubernetes itself says of its containers.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    facts.pods.memory_kills(signs);
}
