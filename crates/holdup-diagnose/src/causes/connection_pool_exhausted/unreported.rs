//! A pool that the app does not report, by the connections that the kernel sees.

use crate::change::Fix;
use holdup_signals::yardstick::MATTERS;

use super::advice::POOL_RISK;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role};
use crate::resources::connections::UnreportedPool;
use crate::strength::{AS_SYMPTOM, STRONG};

/// None if no queue is seen: a connection may also be held without awaiting an answer.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let pool = UnreportedPool::for_case(case).ok()?;
    let explains_ms = pool.queued_ms();
    if case.share(explains_ms) < MATTERS {
        return None;
    }
    let is_longer = pool.to_explain_ms().is_some_and(f64::is_finite);
    let (role, part) = if is_longer { (Role::Symptom, AS_SYMPTOM) } else { (Role::Root, 1.0) };
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![pool.evidence()],
        weights: vec![STRONG * part],
        fixes: vec![Fix {
            text: "Let the app report its pool (connections in use, allowed and awaited), then hold each for less time or raise the pool."
                .to_owned(),
            command: None,
            keep: None,
            risk: Some(POOL_RISK.to_owned()),
        }],
        prove: "Run the same scenario again: not all of the app's connections await an answer.".to_owned(),
        role,
    }))
}
