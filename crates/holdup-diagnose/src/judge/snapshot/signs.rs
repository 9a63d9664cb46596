//! Signs of causes at an instant, as the readers of facts find them.

use std::collections::BTreeMap;

use holdup_signals::evidence::Evidence;

use crate::strength::Strength;

/// The signs of all causes.
#[derive(Default)]
pub(super) struct Signs(BTreeMap<&'static str, Vec<(Strength, Option<Evidence>)>>);

impl Signs {
    pub(super) fn add(&mut self, cause: &'static str, strength: Strength, evidence: Option<Evidence>) {
        self.0.entry(cause).or_default().push((strength, evidence));
    }

    /// The signs of each cause.
    pub(super) fn by_cause(self) -> impl Iterator<Item = (&'static str, Vec<(Strength, Option<Evidence>)>)> {
        self.0.into_iter()
    }
}
