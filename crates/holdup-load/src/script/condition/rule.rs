//! Comparisons joined by `and`, `or` and `not`.

use super::compare::Comparison;
use crate::script::template::node::Work;
use crate::script::{Context, Response, StepFailure};

/// See the module.
#[derive(Clone)]
pub(super) enum Rule {
    /// All of them; evaluation stops at the first that does not hold.
    All(Box<[Rule]>),
    /// At least one; evaluation stops at the first that holds.
    Any(Box<[Rule]>),
    Not(Box<Rule>),
    Comparison(Box<Comparison>),
}

impl Rule {
    pub(super) fn holds(
        &self,
        ctx: &mut Context<'_>,
        work: &mut Work,
        response: Option<&Response<'_>>,
    ) -> Result<bool, StepFailure> {
        match self {
            Self::All(rules) => {
                for rule in rules {
                    if !rule.holds(ctx, work, response)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(rules) => {
                for rule in rules {
                    if rule.holds(ctx, work, response)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(rule) => rule.holds(ctx, work, response).map(|holds| !holds),
            Self::Comparison(comparison) => comparison.holds(ctx, work, response),
        }
    }

    /// Calls `see` with every comparison.
    pub(super) fn each(&self, see: &mut dyn FnMut(&Comparison)) {
        match self {
            Self::All(rules) | Self::Any(rules) => rules.iter().for_each(|rule| rule.each(see)),
            Self::Not(rule) => rule.each(see),
            Self::Comparison(comparison) => see(comparison),
        }
    }
}
