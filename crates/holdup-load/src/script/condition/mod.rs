//! Conditions: on a response (a check), or before steps are taken (`if`, `while`). Parsed once,
//! when the scenario is read, names and patterns included. If only part of a body was kept, that
//! part is judged.

mod compare;
mod parse;
mod rule;
#[cfg(test)]
mod tests;

use std::fmt;

use rule::Rule;

use crate::script::template::node::Work;
use crate::script::{Context, Names, Needs, Response, StepFailure, TemplateError};

/// What a condition may refer to, beside variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Nothing: the response is missing.
    None,
    /// `status`, `body`, `size`, `json /pointer`, `header NAME`, `cookie NAME`.
    Http,
    /// `rows`, `column NAME`.
    Sql,
}

/// A parsed condition.
///
/// ```
/// use holdup_load::script::{Condition, Context, Names, Random, Response, Subjects};
///
/// let names = Names::default();
/// let check = Condition::parse("status in 200..299 and not body contains error", &names, Subjects::Http).unwrap();
/// assert!(check.speaks_of_status() && check.needs().body);
/// let mut random = Random::new(1);
/// let mut ctx = Context { values: &[], rows: &[], random: &mut random, now_unix_ns: 0, number: 0, session: 0 };
/// let response = Response { status: 200, body: b"fine", ..Response::default() };
/// assert_eq!(check.holds(&mut ctx, Some(&response)), Ok(true));
/// ```
#[derive(Clone)]
pub struct Condition {
    /// As it was written, for `Debug`: the rule may contain secrets.
    text: Box<str>,
    rule: Rule,
    feeders: Box<[u32]>,
}

impl Condition {
    /// Parses `text`, which may refer to `subjects`.
    ///
    /// # Errors
    /// If it is not a condition, or uses unknown names: the message gives the place and the nearest
    /// name.
    pub fn parse(text: &str, names: &Names, subjects: Subjects) -> Result<Self, TemplateError> {
        let mut parser = parse::Parser::new(text, names, subjects);
        let rule = parser.whole()?;
        let feeders = parser.used();
        Ok(Self { text: text.into(), rule, feeders })
    }

    /// Whether it holds. A comparison with something the response lacks is false.
    ///
    /// # Errors
    /// [`StepFailure::Template`] if a variable has no value (`exists` tests whether it has),
    /// [`StepFailure::BadJson`] if it looks into a body that is not JSON, [`StepFailure::Check`] if it refers
    /// to a response and there is none.
    #[inline]
    pub fn holds(&self, ctx: &mut Context<'_>, response: Option<&Response<'_>>) -> Result<bool, StepFailure> {
        self.rule.holds(ctx, &mut Work::new(), response)
    }

    /// The parts of the response it needs.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        self.rule.each(&mut |comparison| needs = needs.union(comparison.subject.needs()));
        needs
    }

    /// Whether it judges the status: otherwise any status passes.
    pub fn speaks_of_status(&self) -> bool {
        let mut speaks = false;
        self.rule.each(&mut |comparison| speaks |= matches!(comparison.subject, compare::Subject::Status));
        speaks
    }

    /// Feeders it needs a row of, by index, in order.
    pub fn feeders(&self) -> &[u32] {
        &self.feeders
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}
