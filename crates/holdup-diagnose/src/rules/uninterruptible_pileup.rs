//! One sentence: what is so if this is the cause.

use super::{Doc, Outcome, Rule};
use crate::case::Case;
use crate::signals::Missing;

/// The rule.
pub const RULE: Rule = Rule {
    cause: "uninterruptible_pileup",
    doc: Doc {
        title: "uninterruptible_pileup",
        what: "",
        hurts: "",
        needs: "",
        predicts: "",
        clears: "",
        looks_like: "",
        fix: "",
        prove: "",
        references: "",
    },
    judge,
};

fn judge(_case: &Case<'_>) -> Result<Outcome, Missing> {
    Err(Missing::new("this rule is not written yet", "a later holdup"))
}
