//! Templates: texts with expressions that are filled in for each request: `/orders/${random(1,
//! 5000)}`. A template is parsed once, when the scenario is read, with every name looked up, and
//! rendered into a buffer of the caller. Nothing is escaped unless the template says so: the caller
//! knows what must not appear in its place (an end of line in a header, for example).

mod call;
pub(crate) mod cursor;
mod encode;
mod function;
mod late;
mod luck;
mod moment;
pub(crate) mod node;
pub(crate) mod parse;
mod sign;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::fmt;

pub(crate) use encode::percent;
use node::{NodeValue, Work};
use parse::Scope;
use tree::Node;

use crate::script::{Context, Names, StepFailure, Value};

/// A mistake in a template or a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong, and what would be right. It contains no value of a secret or of the
    /// environment.
    pub message: String,
    /// Its place, in bytes from the start of the text.
    pub at: usize,
}

/// A parsed template.
///
/// ```
/// use holdup_load::script::{Context, Names, Random, Template, Value};
///
/// let mut names = Names::default();
/// names.variable("user");
/// let template = Template::parse("/users/${url(user)}?n=${random(7, 7)}", &names).unwrap();
/// let mut random = Random::new(1);
/// let values = [Value::from("a b")];
/// let mut ctx = Context { values: &values, rows: &[], random: &mut random, now_unix_ns: 0, number: 0, session: 0 };
/// let mut path = Vec::new();
/// template.render(&mut ctx, &mut path).unwrap();
/// assert_eq!(path, b"/users/a%20b?n=7");
/// ```
#[derive(Clone)]
pub struct Template {
    /// As it was written, for `Debug`: the nodes may contain secrets.
    text: Box<str>,
    node: Node,
    secret: bool,
    feeders: Box<[u32]>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    /// If it is not a template, or uses unknown names: the message gives the place and the nearest
    /// name.
    pub fn parse(text: &str, names: &Names) -> Result<Self, TemplateError> {
        let mut scope = Scope::new(names);
        let node = Node::joined(scope.all_of(text)?);
        let feeders = scope.used();
        Ok(Self { text: text.into(), node, secret: scope.secret, feeders })
    }

    /// Its text, if that is always the same. It may contain a secret.
    pub fn constant(&self) -> Option<&str> {
        self.node.literal()
    }

    /// Whether its text depends on a secret.
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// Feeders it draws rows from, by index, in order, without those in texts that `template()`
    /// expands later.
    pub fn feeders(&self) -> &[u32] {
        &self.feeders
    }

    /// Appends the filled-in text to `out`.
    ///
    /// # Errors
    /// If a variable has no value, a row was not drawn, or a function's argument is invalid: then
    /// `out` is unchanged.
    #[inline]
    pub fn render(&self, ctx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), StepFailure> {
        let start = out.len();
        let result = self.node.write(ctx, &mut Work::new(), out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Its value: a list if the template is just a variable that holds one, else the filled-in
    /// text.
    ///
    /// # Errors
    /// As for `render`.
    pub fn value(&self, ctx: &mut Context<'_>) -> Result<Value, StepFailure> {
        Ok(match self.node.evaluate(ctx, &mut Work::new())? {
            NodeValue::Text(text) => Value::Text(text.into()),
            NodeValue::List(items) => Value::List(items.into()),
        })
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.text).finish()
    }
}

/// Length of the template expression that `text` begins with: up to its closing brace, ignoring
/// braces in quotes. An unclosed one reaches to the end.
pub(crate) fn expression_bytes(text: &str) -> usize {
    let (mut depth, mut quote) = (0, None);
    let end = text.char_indices().skip(1).find(|(_, c)| {
        match quote {
            Some(open) if open == *c => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') => quote = Some(*c),
            None => depth += i32::from(*c == '{') - i32::from(*c == '}'),
        }
        depth == 0
    });
    end.map_or(text.len(), |(end, _)| end + 1)
}
