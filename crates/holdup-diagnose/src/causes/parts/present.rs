//! A cause that is there by itself, whatever requests say: judged by the same signs that one instant
//! shows.

use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use crate::causes::{CauseFinding, Outcome, Role};
use crate::change::Fix;
use crate::instant::Signs;
use crate::strength::{FAIR, Strength};

/// What shows a cause, and how much each is worth; pieces of no worth show that it is absent.
pub(crate) type Shown = Vec<(Strength, Evidence)>;

/// The outcome by what was shown. `unknown` is what no source shows of its cost.
pub(crate) fn outcome(shown: Shown, fixes: Vec<Fix>, prove: &str, unknown: Missing) -> Outcome {
    let is_there = shown.iter().any(|(strength, _)| *strength >= FAIR);
    let (weights, evidence) = shown.into_iter().unzip();
    if !is_there {
        return Outcome::Cleared(evidence);
    }
    let found = CauseFinding { explains_ms: 0.0, evidence, weights, fixes, prove: prove.to_owned(), role: Role::Root };
    Outcome::Uncounted(found, unknown)
}

/// The pieces that speak for it, as signs.
pub(crate) fn signs(shown: Shown, signs: &mut Signs) {
    for (strength, evidence) in shown.into_iter().filter(|(strength, _)| strength.chance() > 0.0) {
        signs.add(strength, evidence);
    }
}

/// One step of a remedy.
pub(crate) fn step(text: &str, command: Option<&str>, risk: Option<&str>) -> Fix {
    Fix { text: text.to_owned(), command: command.map(str::to_owned), keep: None, risk: risk.map(str::to_owned) }
}
