//! One sentence: what is so if this is the cause.

use super::{Doc, Outcome, Rule};
use crate::case::Case;
use crate::signals::Missing;

/// The rule.
pub const RULE: Rule = Rule {
    cause: "out_of_memory_kill",
    doc: Doc {
        title: "out_of_memory_kill",
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
