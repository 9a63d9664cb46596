//! One sentence: what is so if this is the cause.

use holdup_signals::Missing;

use super::{Doc, Judge, Outcome, Rule};
use crate::case::Case;

/// The rule.
pub const RULE: Rule = Rule {
    cause: "NAME",
    doc: Doc {
        title: "",
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
    judge: Judge::Alone(judge),
};

fn judge(_case: &Case<'_>) -> Result<Outcome, Missing> {
    Err(Missing::new("this rule is not written yet", "a later holdup"))
}
