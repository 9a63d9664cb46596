//! One comparison: its subject, and the test it has to pass. If both sides are numbers they compare
//! as numbers, else as texts, byte by byte.

use std::borrow::Cow;
use std::cmp::Ordering;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::script::capture::{Pointer, cookie, json_at};
use crate::script::number::Number;
use crate::script::template::node::{NodeValue, Work};
use crate::script::template::tree::Node;
use crate::script::{Capture, Context, Needs, Response, StepFailure, Value};

#[derive(Clone)]
pub(super) struct Comparison {
    pub(super) subject: Subject,
    pub(super) test: Test,
}

/// The value that is tested.
#[derive(Clone)]
pub(super) enum Subject {
    Status,
    /// Size of the received body in bytes.
    Size,
    Body,
    /// The first place that the pointer leads to.
    Json(Pointer),
    /// Every place: one of them has to pass.
    EveryJson(Capture),
    /// Every field of that name: one of them has to pass.
    Header(Box<str>),
    Cookie(Box<str>),
    Rows,
    Column(Capture),
    Text(Node),
}

/// Whether an order of both sides is the wanted one.
pub(super) type Relation = fn(Ordering) -> bool;

/// The test to pass.
#[derive(Clone)]
pub(super) enum Test {
    Exists,
    Is(Relation, Operand),
    Contains(Operand),
    Matches(Regex),
    /// From the one to the other, both included.
    Between(Number, Number),
    OneOf(Box<[Operand]>),
    /// One of the items of a list variable.
    InList(Node),
}

/// The right side, precomputed as far as it is known.
#[derive(Clone)]
pub(super) struct Operand {
    node: Node,
    number: Option<Number>,
    finder: Option<Box<Finder<'static>>>,
}

/// The subject's value in a response.
enum SubjectValue<'b> {
    Nothing,
    Number(u64),
    Bytes(Cow<'b, [u8]>),
    /// One of them has to pass.
    Each(Vec<Cow<'b, [u8]>>),
    /// A list variable: `contains` looks for an item.
    List(&'b [Box<str>]),
}

impl Comparison {
    pub(super) fn holds(
        &self,
        ctx: &mut Context<'_>,
        work: &mut Work,
        response: Option<&Response<'_>>,
    ) -> Result<bool, StepFailure> {
        let found = match self.subject.find(ctx, work, response) {
            // For a variable this means that it has no value.
            Err(StepFailure::Template) if matches!(self.test, Test::Exists) => return Ok(false),
            found => found?,
        };
        match found {
            SubjectValue::Nothing => Ok(false),
            _ if matches!(self.test, Test::Exists) => Ok(true),
            SubjectValue::Number(number) => self.test.passes(&Side::number(number), ctx, work),
            SubjectValue::Bytes(bytes) => self.test.passes(&Side::bytes(&bytes), ctx, work),
            SubjectValue::Each(each) => {
                any(each.iter().map(AsRef::as_ref), |item| self.test.passes(&Side::bytes(item), ctx, work))
            }
            SubjectValue::List(items) => any(items.iter().map(|item| item.as_bytes()), |item| match &self.test {
                Test::Contains(operand) => operand.compare(&Side::bytes(item), ctx, work).map(Ordering::is_eq),
                test => test.passes(&Side::bytes(item), ctx, work),
            }),
        }
    }
}

fn any<'i>(
    items: impl Iterator<Item = &'i [u8]>,
    mut passes: impl FnMut(&'i [u8]) -> Result<bool, StepFailure>,
) -> Result<bool, StepFailure> {
    for item in items {
        if passes(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Subject {
    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::Body | Self::Json(_) | Self::EveryJson(_) => Needs { head: false, body: true },
            Self::Header(_) | Self::Cookie(_) => Needs { head: true, body: false },
            Self::Status | Self::Size | Self::Rows | Self::Column(_) | Self::Text(_) => Needs::default(),
        }
    }

    fn find<'b, 'c: 'b>(
        &'b self,
        ctx: &mut Context<'c>,
        work: &mut Work,
        response: Option<&'b Response<'_>>,
    ) -> Result<SubjectValue<'b>, StepFailure> {
        if let Self::Text(node) = self {
            return Ok(match node.evaluate(ctx, work)? {
                NodeValue::Text(text) => SubjectValue::Bytes(bytes_of(text)),
                NodeValue::List(items) => SubjectValue::List(items),
            });
        }
        let response = response.ok_or(StepFailure::Check)?;
        let or_nothing =
            |text: Option<Cow<'b, str>>| text.map_or(SubjectValue::Nothing, |text| SubjectValue::Bytes(bytes_of(text)));
        Ok(match self {
            Self::Status => SubjectValue::Number(response.status.into()),
            Self::Size => SubjectValue::Number(response.body_bytes),
            Self::Rows => SubjectValue::Number(response.rows),
            Self::Body => SubjectValue::Bytes(Cow::Borrowed(response.body)),
            Self::Json(pointer) => or_nothing(json_at(response, pointer)?),
            Self::Cookie(name) => or_nothing(cookie(response, name)),
            Self::Header(name) => {
                let mut fields = response.fields_called(name).map(Cow::Borrowed);
                match (fields.next(), fields.next()) {
                    (None, _) => SubjectValue::Nothing,
                    (Some(one), None) => SubjectValue::Bytes(one),
                    (Some(one), Some(two)) => SubjectValue::Each([one, two].into_iter().chain(fields).collect()),
                }
            }
            Self::EveryJson(capture) | Self::Column(capture) => match capture.take(response, ctx.random) {
                Ok(Value::Text(text)) => SubjectValue::Bytes(Cow::Owned(text.into_string().into_bytes())),
                Ok(Value::List(items)) => SubjectValue::Each(
                    items.into_iter().map(|item| Cow::Owned(item.into_string().into_bytes())).collect(),
                ),
                Ok(Value::None) | Err(StepFailure::CaptureMissed) => SubjectValue::Nothing,
                Err(failed) => return Err(failed),
            },
            Self::Text(_) => SubjectValue::Nothing,
        })
    }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// The left side; a number from the response is written out only if its digits are needed.
enum Side<'b> {
    Number(Number, u64),
    Bytes(&'b [u8]),
}

impl<'b> Side<'b> {
    fn number(number: u64) -> Self {
        Self::Number(Number::Whole(number.into()), number)
    }

    fn bytes(bytes: &'b [u8]) -> Self {
        Self::Bytes(bytes)
    }

    fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(number, _) => Some(*number),
            Self::Bytes(bytes) => Number::parse(bytes),
        }
    }

    fn with_bytes<T>(&self, use_it: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Number(_, number) => use_it(itoa::Buffer::new().format(*number).as_bytes()),
            Self::Bytes(bytes) => use_it(bytes),
        }
    }
}

impl Test {
    fn passes(&self, side: &Side<'_>, ctx: &mut Context<'_>, work: &mut Work) -> Result<bool, StepFailure> {
        Ok(match self {
            Self::Exists => true,
            Self::Is(holds, operand) => holds(operand.compare(side, ctx, work)?),
            Self::Contains(operand) => operand.is_within(side, ctx, work)?,
            Self::Matches(regex) => side.with_bytes(|bytes| regex.is_match(bytes)),
            Self::Between(low, high) => side.as_number().is_some_and(|number| *low <= number && number <= *high),
            Self::OneOf(operands) => {
                for operand in operands {
                    if operand.compare(side, ctx, work)?.is_eq() {
                        return Ok(true);
                    }
                }
                false
            }
            Self::InList(list) => match list.evaluate(ctx, work)? {
                NodeValue::List(items) => items.iter().any(|item| compare(side, item.as_bytes(), None).is_eq()),
                NodeValue::Text(text) => compare(side, text.as_bytes(), None).is_eq(),
            },
        })
    }
}

impl Operand {
    pub(super) fn new(node: Node) -> Self {
        let number = node.literal().and_then(|text| Number::parse(text.as_bytes()));
        Self { node, number, finder: None }
    }

    /// An operand to search for.
    pub(super) fn needle(node: Node) -> Self {
        let finder = node.literal().map(|text| Box::new(Finder::new(text.as_bytes()).into_owned()));
        Self { finder, ..Self::new(node) }
    }

    fn compare(&self, side: &Side<'_>, ctx: &mut Context<'_>, work: &mut Work) -> Result<Ordering, StepFailure> {
        if let (Side::Number(left, _), Some(right)) = (side, self.number)
            && let Some(ordering) = left.partial_cmp(&right)
        {
            return Ok(ordering);
        }
        let right = self.node.text(ctx, work)?;
        Ok(compare(side, right.as_bytes(), self.number))
    }

    fn is_within(&self, side: &Side<'_>, ctx: &mut Context<'_>, work: &mut Work) -> Result<bool, StepFailure> {
        if let Some(finder) = &self.finder {
            return Ok(side.with_bytes(|bytes| finder.find(bytes).is_some()));
        }
        let needle = self.node.text(ctx, work)?;
        Ok(side.with_bytes(|bytes| memchr::memmem::find(bytes, needle.as_bytes()).is_some()))
    }
}

/// Compares with `right`, or with `number`, its value if that is known already.
fn compare(side: &Side<'_>, right: &[u8], number: Option<Number>) -> Ordering {
    let numbers = number.or_else(|| Number::parse(right)).and_then(|right| side.as_number()?.partial_cmp(&right));
    numbers.unwrap_or_else(|| side.with_bytes(|left| left.cmp(right)))
}
