//! Whether a verdict is honest about what is so.

use holdup_diagnose::verdict::{Answer, Diagnosis};

use crate::truth::Truth;

/// Surer than this a wrong culprit may not be named.
const SURE: f64 = 0.5;

/// Whether `diagnosis` is right or honestly undecided: no surer than [`SURE`] of another culprit, naming none where nothing is broken,
/// and not calling healthy what is. What stays within every objective `whole` may be named if these can't be judged any more.
pub fn is_honest(diagnosis: &Diagnosis, truth: &Truth, whole: impl FnOnce() -> Diagnosis) -> bool {
    match (truth, &diagnosis.culprit) {
        (Truth::Healthy, Some(culprit)) => whole().minor.as_ref() == Some(culprit),
        (Truth::Broken(expected), Some(culprit)) => {
            expected == culprit.slug() || confidence(diagnosis).is_some_and(|sure| sure <= SURE)
        }
        (Truth::Broken(_), None) => diagnosis.verdict != Answer::Healthy,
        (Truth::Healthy | Truth::Unknown, culprit) => culprit.is_none(),
    }
}

/// How sure a diagnosis is of its culprit; none without one.
pub fn confidence(diagnosis: &Diagnosis) -> Option<f64> {
    diagnosis.findings.iter().find(|f| Some(&f.cause) == diagnosis.culprit.as_ref()).map(|f| f.confidence)
}
