//! Captures from a response what a later step needs. A captured value is data, whatever it looks
//! like: no template in it is ever filled in. Captures do not decide whether the response is right;
//! checks do.

mod choice;
mod cookie;
mod json;
mod pointer;
mod source;
#[cfg(test)]
mod tests;

pub use choice::Pick;
use choice::{Choice, Chosen};
use source::Source;
pub(crate) use {
    cookie::cookie,
    json::{json_at, text as json_text},
    pointer::Pointer,
};

use crate::script::{Needs, Random, Response, StepFailure, Value};

/// What is taken of a response: a source, which of its occurrences, and what counts if there is none.
///
/// ```
/// use holdup_load::script::{Capture, StepFailure, Pick, Random, Response, Value};
///
/// let mut random = Random::new(1);
/// let response = Response { body: br#"{"items": [{"id": 1.10}, {"id": "b"}], "next": null}"#, ..Response::default() };
/// let mut take = |capture: Capture| capture.take(&response, &mut random);
///
/// assert_eq!(take(Capture::parse("json /items/0/id")?), Ok(Value::from("1.10")));
/// assert_eq!(take(Capture::parse(r#"regex "id": "(\w)""#)?), Ok(Value::from("b")));
/// assert_eq!(take(Capture::new("json /items/*/id", Pick::Count, None)?), Ok(Value::from("2")));
/// assert_eq!(take(Capture::parse("json /next")?), Err(StepFailure::CaptureMissed));
/// assert_eq!(take(Capture::new("json /next", Pick::First, Some("none".to_owned()))?), Ok(Value::from("none")));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Capture {
    source: Source,
    pick: Pick,
    default: Option<Box<str>>,
}

impl Capture {
    /// Reads the short form, such as `json /token`: the first occurrence, and no default.
    ///
    /// # Errors
    ///
    /// A message about what is wrong with it.
    pub fn parse(short: &str) -> Result<Self, String> {
        Self::new(short, Pick::First, None)
    }

    /// The long form: the source as in the short one, which of its occurrences, and the default.
    ///
    /// # Errors
    ///
    /// A message about what is wrong with the source.
    pub fn new(source: &str, pick: Pick, default: Option<String>) -> Result<Self, String> {
        Ok(Self { source: Source::parse(source)?, pick, default: default.map(String::into_boxed_str) })
    }

    /// Whether it reads the result of a statement, not an HTTP response.
    pub fn is_of_statement(&self) -> bool {
        matches!(self.source, Source::Column(_) | Source::Rows)
    }

    /// The parts of the response it needs.
    pub fn needs(&self) -> Needs {
        self.source.needs()
    }

    /// Captures the value. With [`Pick::All`] it is a list, and so is the default: an empty list if
    /// the default is empty.
    ///
    /// JSON `null`, SQL's NULL and anything in the cut-off rest of a body count as nothing; an
    /// empty text counts. For a body that was cut, the last occurrence, all of them, and their
    /// number are unknown: these captures fail.
    ///
    /// # Errors
    ///
    /// [`StepFailure::CaptureMissed`] if there is nothing and no default; [`StepFailure::BadJson`], default
    /// or not, if a body that has to be JSON is not.
    pub fn take(&self, response: &Response<'_>, random: &mut Random) -> Result<Value, StepFailure> {
        let is_of_whole = matches!(self.pick, Pick::Last | Pick::All | Pick::Count);
        if is_of_whole && response.body_is_cut && self.needs().body {
            return self.nothing();
        }
        let mut choice = Choice::new(self.pick, random);
        self.source.each(response, &mut |found| choice.offer(found))?;
        let value = match choice.end() {
            Chosen::One(found) => Value::Text(found.text()?),
            Chosen::All(found) => Value::List(found.into_iter().map(|found| found.text()).collect::<Result<_, _>>()?),
            Chosen::Count(count) => Value::Text(count.to_string().into()),
            Chosen::Nothing => return self.nothing(),
        };
        Ok(value)
    }

    /// The value if nothing was found.
    fn nothing(&self) -> Result<Value, StepFailure> {
        let default = self.default.as_ref().ok_or(StepFailure::CaptureMissed)?;
        Ok(match self.pick {
            Pick::All if default.is_empty() => Value::List(Box::default()),
            Pick::All => Value::List(Box::new([default.clone()])),
            _ => Value::Text(default.clone()),
        })
    }
}
