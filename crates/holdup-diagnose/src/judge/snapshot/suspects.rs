//! The suspects of an instant, by the signs that each cause finds in it. The time before and after is
//! not known, so no suspect becomes certain.

use holdup_signals::evidence::Evidence;

use crate::causes::Cause;
use crate::instant::Signs;
use crate::instant::facts::Facts;

/// The most (0-1) that one instant can show: the same state may be usual here.
const INSTANT: f64 = 0.8;

/// A possible cause of what the instant shows.
pub(super) struct Suspect {
    pub cause: Cause,
    /// 0-1.
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
}

/// The suspects, the likeliest first.
pub(super) fn suspects(facts: &Facts<'_>) -> Vec<Suspect> {
    let suspect = |cause: &Cause| {
        let mut signs = Signs::default();
        cause.definition().signs?(facts, &mut signs);
        let weighed = signs.weigh()?;
        Some(Suspect { cause: *cause, confidence: INSTANT * weighed.chance, evidence: weighed.evidence })
    };
    let mut all: Vec<Suspect> = Cause::ALL.iter().filter_map(suspect).collect();
    all.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    all
}
