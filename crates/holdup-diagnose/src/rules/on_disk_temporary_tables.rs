//! One sentence: what is so if this is the cause.

use super::{Doc, Outcome, Rule};
use crate::case::Case;
use crate::signals::Missing;

/// The rule.
pub const RULE: Rule = Rule {
    cause: "on_disk_temporary_tables",
    doc: Doc {
        title: "on_disk_temporary_tables",
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
