//! Finds places in a JSON text without building a tree of it: it skips everything off the path, and
//! does not read beyond the last place of interest.
//!
//! - The text is known to be JSON only up to the place that was found; if nothing is found, all of
//!   it was read. Strings in the skipped parts may contain invalid UTF-8.
//! - If an object has a name twice, the first counts.
//! - A number keeps the text it was written as: `1.10` stays so, and so do all digits of a large
//!   one.
//! - `null` is found, as the text `null`; captures treat it as no value.
//! - If only the start of a body was kept, complete values in it are found. A missing value may be
//!   in the rest.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, de};
use serde_json::value::RawValue;

use super::pointer::{Part, Pointer};
use crate::script::{Response, StepFailure};

/// Text of the first place that the pointer leads to: the content of a string, the JSON text of
/// anything else; none if the place does not exist.
///
/// # Errors
///
/// [`StepFailure::BadJson`] if the body is not JSON before it.
pub(crate) fn json_at<'a>(response: &Response<'a>, pointer: &Pointer) -> Result<Option<Cow<'a, str>>, StepFailure> {
    let mut first = None;
    each(response, pointer, &mut |raw| {
        first = Some(raw);
        ControlFlow::Break(())
    })?;
    first.map(text).transpose()
}

/// Calls `visit` with the JSON text of each place that the pointer leads to, in order, until it breaks.
///
/// # Errors
///
/// [`StepFailure::BadJson`] if the body is not JSON, as far as it was read. `visit` may have been called before.
pub(super) fn each<'a>(
    response: &Response<'a>,
    pointer: &Pointer,
    visit: &mut dyn FnMut(&'a str) -> ControlFlow<()>,
) -> Result<(), StepFailure> {
    // Some services send a byte order mark, and RFC 8259, section 8.1, lets a reader ignore it.
    let body = response.body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(response.body);
    let end = body.as_ptr_range().end;
    let mut walk = Walk {
        visit: &mut |raw| {
            // The rest of a number may have been cut off; every other value shows its end.
            let is_last = raw.as_bytes().as_ptr_range().end == end;
            if response.body_is_cut && is_last && raw.ends_with(|last: char| last.is_ascii_digit()) {
                return ControlFlow::Continue(());
            }
            visit(raw)
        },
        is_over: false,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let result = At { parts: pointer.parts(), walk: &mut walk }.deserialize(&mut reader);
    // The reader reports an error because it was stopped in the middle.
    if walk.is_over {
        return Ok(());
    }
    match result.and_then(|()| reader.end()) {
        Err(error) if !(response.body_is_cut && is_at_end(&error, body)) => Err(StepFailure::BadJson),
        _ => Ok(()),
    }
}

/// The content of a string, the JSON text of anything else.
///
/// # Errors
///
/// [`StepFailure::BadJson`] if a string has half of a surrogate pair.
pub(crate) fn text(raw: &str) -> Result<Cow<'_, str>, StepFailure> {
    let Some(quoted) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return Ok(raw.into()) };
    if !quoted.contains('\\') {
        return Ok(quoted.into());
    }
    serde_json::from_str(raw).map(Cow::Owned).map_err(|_| StepFailure::BadJson)
}

/// Whether the reader wanted more input. A number that is cut off is reported as invalid, at the
/// very end.
fn is_at_end(error: &serde_json::Error, body: &[u8]) -> bool {
    let last_line = body.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let lines = 1 + body.iter().filter(|byte| **byte == b'\n').count();
    error.is_eof() || (error.line(), error.column()) == (lines, last_line.len())
}

struct Walk<'v, 'de> {
    visit: &'v mut dyn FnMut(&'de str) -> ControlFlow<()>,
    /// Nothing more is wanted.
    is_over: bool,
}

/// A value of the text, and the rest of the path from there.
struct At<'v, 'w, 'p, 'de> {
    parts: &'p [Part],
    walk: &'w mut Walk<'v, 'de>,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.parts.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        self.walk.is_over = (self.walk.visit)(raw.get()).is_break();
        Ok(())
    }
}

impl<'de> Visitor<'de> for At<'_, '_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((part, rest)) = self.parts.split_first() else { return Ok(()) };
        let mut is_past = false;
        while let Some(is_it) = map.next_key_seed(NameMatch { part, is_past })? {
            if !is_it {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            is_past = *part != Part::Every;
            map.next_value_seed(At { parts: rest, walk: self.walk })?;
            if self.walk.is_over {
                return Ok(());
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Some((part, rest)) = self.parts.split_first() else { return Ok(()) };
        for position in 0_usize.. {
            let is_it = match part {
                Part::Every => true,
                Part::One { index, .. } => *index == Some(position),
            };
            let is_there = if is_it {
                elements.next_element_seed(At { parts: rest, walk: self.walk })?.is_some()
            } else {
                elements.next_element::<IgnoredAny>()?.is_some()
            };
            if !is_there || self.walk.is_over {
                break;
            }
        }
        Ok(())
    }

    // The values below contain nothing else.

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Whether a member's name is the wanted one.
struct NameMatch<'p> {
    part: &'p Part,
    /// The name was found before.
    is_past: bool,
}

impl<'de> DeserializeSeed<'de> for NameMatch<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameMatch<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(match self.part {
            Part::Every => true,
            Part::One { key, .. } => !self.is_past && **key == *name,
        })
    }
}
