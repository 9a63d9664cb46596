//! One sentence: what is so if this is the cause.

use holdup_signals::Missing;

use super::{Doc, Judge, Occurs, Outcome, Rule};
use crate::case::Case;

pub const RULE: Rule = Rule {
    cause: "NAME",
    occurs: Occurs::Anywhere,
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
