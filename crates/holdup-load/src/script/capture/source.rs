//! The source of a captured value.

use std::ops::ControlFlow;

use regex::bytes::Regex;

use super::cookie::cookie_bytes;
use super::json::{each, text};
use super::pointer::Pointer;
use crate::script::{Needs, Response, StepFailure, pattern};

/// What a capture takes its value from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// `json POINTER`: a place in the body, which has to be JSON.
    Json(Pointer),
    /// `regex PATTERN`: the text of the pattern's group 1 in the body, or the whole match if the
    /// pattern has no groups or that one takes no part in the match.
    Regex(Regex),
    /// `header NAME`: a field of the header, whatever its case.
    Header(Box<str>),
    /// `cookie NAME`: a cookie that the response sets; of several with that name the last, which
    /// replaces the others.
    Cookie(Box<str>),
    /// `status`: HTTP's status code.
    Status,
    /// `body`: all of it.
    Body,
    /// `column NAME`: a column of a statement's first row. NULL counts as nothing.
    Column(Box<str>),
    /// `rows`: the number of rows in a statement's result.
    Rows,
}

/// An occurrence in the response.
#[derive(Clone, Copy)]
pub(super) enum Occurrence<'a> {
    Json(&'a str),
    Bytes(&'a [u8]),
    Number(u64),
}

impl Occurrence<'_> {
    /// Its text; invalid UTF-8 is replaced.
    pub(super) fn text(self) -> Result<Box<str>, StepFailure> {
        Ok(match self {
            Self::Json(raw) => text(raw)?.into(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
            Self::Number(number) => number.to_string().into(),
        })
    }
}

impl Source {
    /// Reads `json /token`, `header Location`, `status` and so on.
    ///
    /// # Errors
    ///
    /// If the source is unknown, or its argument is missing or malformed.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        let source = source.trim_start();
        let (kind, what) = source.split_once(char::is_whitespace).unwrap_or((source, ""));
        let what = what.trim_start();
        let name = |example: &str| match what.trim_end() {
            "" => Err(format!("'{kind}' needs a name, as in '{kind} {example}'")),
            name => Ok(Box::from(name)),
        };
        match kind {
            // The empty pointer is the whole body.
            "json" => match Pointer::parse(what.trim_end()) {
                Ok(pointer) => Ok(Self::Json(pointer)),
                Err(error) => Err(format!("the JSON pointer {error}")),
            },
            "regex" if what.is_empty() => Err("'regex' needs a pattern, as in 'regex token=([0-9a-f]+)'".to_owned()),
            "regex" => pattern::compile(what).map(Self::Regex),
            "header" => name("Location").map(Self::Header),
            "cookie" => name("session").map(Self::Cookie),
            "column" => name("id").map(Self::Column),
            "status" | "body" | "rows" if !what.trim_end().is_empty() => {
                Err(format!("'{kind}' takes no argument; remove '{}'", what.trim_end()))
            }
            "status" => Ok(Self::Status),
            "body" => Ok(Self::Body),
            "rows" => Ok(Self::Rows),
            _ => {
                Err(format!("'{kind}' is not a source; use json, regex, header, cookie, status, body, column or rows"))
            }
        }
    }

    /// The parts of a response it needs.
    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::Json(_) | Self::Regex(_) | Self::Body => Needs { head: false, body: true },
            Self::Header(_) | Self::Cookie(_) => Needs { head: true, body: false },
            Self::Status | Self::Column(_) | Self::Rows => Needs::default(),
        }
    }

    /// Calls `visit` with each occurrence in order until it breaks.
    pub(super) fn each<'a>(
        &self,
        response: &Response<'a>,
        visit: &mut dyn FnMut(Occurrence<'a>) -> ControlFlow<()>,
    ) -> Result<(), StepFailure> {
        // Whether `visit` broke makes no difference: there is nothing after this.
        let _ = match self {
            Self::Json(pointer) => {
                return each(response, pointer, &mut |raw| match raw {
                    "null" => ControlFlow::Continue(()),
                    _ => visit(Occurrence::Json(raw)),
                });
            }
            Self::Regex(regex) => each_match(response, regex, visit),
            Self::Header(name) => response.fields_called(name).map(Occurrence::Bytes).try_for_each(visit),
            Self::Cookie(name) => cookie_bytes(response, name).map(Occurrence::Bytes).into_iter().try_for_each(visit),
            Self::Status => visit(Occurrence::Number(response.status.into())),
            Self::Body if response.body_is_cut => ControlFlow::Continue(()),
            Self::Body => visit(Occurrence::Bytes(response.body)),
            Self::Column(name) => column(response, name).map(Occurrence::Bytes).into_iter().try_for_each(visit),
            Self::Rows => visit(Occurrence::Number(response.rows)),
        };
        Ok(())
    }
}

fn each_match<'a>(
    response: &Response<'a>,
    regex: &Regex,
    visit: &mut dyn FnMut(Occurrence<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // At the end of a body that was cut, a match might have been longer, or not a match at all.
    let is_whole = |end: usize| !response.body_is_cut || end < response.body.len();
    if regex.captures_len() == 1 {
        let mut matches = regex.find_iter(response.body).filter(|found| is_whole(found.end()));
        return matches.try_for_each(|found| visit(Occurrence::Bytes(found.as_bytes())));
    }
    for groups in regex.captures_iter(response.body) {
        let (Some(all), group) = (groups.get(0), groups.get(1)) else { continue };
        if is_whole(all.end()) {
            visit(Occurrence::Bytes(group.unwrap_or(all).as_bytes()))?;
        }
    }
    ControlFlow::Continue(())
}

/// A column's value by its exact name, else by its name in any case, because servers differ in the
/// case they return.
fn column<'a>(response: &Response<'a>, name: &str) -> Option<&'a [u8]> {
    let exact = response.columns.iter().find(|(column, _)| *column == name);
    let (_, value) = exact.or_else(|| response.columns.iter().find(|(column, _)| column.eq_ignore_ascii_case(name)))?;
    *value
}
