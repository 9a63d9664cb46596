//! What an answer of MongoDB says of its request: whether it failed and of what, whether more follows,
//! and how many documents it brings. Documents themselves are passed over.

use std::sync::Arc;

use holdup_mongodb::{Document, Element, Value};

use super::message::{Sections, compressed, long, number, op, rounded};
use crate::packets::framing::Message;

/// `OP_REPLY`: the query failed.
const QUERY_FAILURE: i32 = 1 << 1;

/// An answer, or one of several.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Another one follows without a request.
    pub goes_on: bool,
    pub is_failed: bool,
    /// The server's code.
    pub error: Option<Arc<str>>,
    /// Documents in the batch, of an answer that was kept whole.
    pub rows: u64,
    /// Documents that a write changed.
    pub affected: u64,
    /// The server's number of the connection, in answers to a greeting.
    pub session_id: Option<i64>,
    /// The cursor that it leaves open; 0 if it has been read to its end.
    pub cursor: Option<i64>,
}

impl Answer {
    /// Reads the bytes of `message` that were kept, of which `rest` follow its head; counts documents if
    /// `counts`.
    pub(super) fn read(kind: i32, rest: &[u8], message: &Message<'_>, counts: bool) -> Self {
        let mut answer = Self::of_kept(kind, rest, counts);
        // The number of a cursor stands behind its documents.
        answer.cursor = answer.cursor.or_else(|| cursor_in(message.tail));
        answer
    }

    fn of_kept(kind: i32, rest: &[u8], counts: bool) -> Self {
        match kind {
            op::MSG => Self::message(rest, counts),
            op::COMPRESSED => match compressed(rest) {
                Some((op::MSG, "noop", rest)) => Self::message(rest, counts),
                _ => Self::default(),
            },
            op::REPLY => Self::reply(rest).unwrap_or_default(),
            _ => Self::default(),
        }
    }

    fn message(rest: &[u8], counts: bool) -> Self {
        let sections = Sections::read(rest);
        let mut answer = sections.body.map(|body| Self::document(body, counts)).unwrap_or_default();
        answer.goes_on = sections.goes_on;
        answer
    }

    /// `OP_REPLY`: flags, cursor, place, number of documents, documents.
    fn reply(rest: &[u8]) -> Option<Self> {
        let (flags, rest) = number(rest)?;
        let cursor = long(rest);
        let (count, rest) = number(rest.get(12..)?)?;
        let document = Document::beginning(rest).ok();
        let mut answer = document.map(|document| Self::document(document, false)).unwrap_or_default();
        answer.is_failed |= flags & QUERY_FAILURE != 0;
        answer.rows = u64::try_from(count).unwrap_or(0);
        answer.cursor = cursor;
        Some(answer)
    }

    fn document(document: Document<'_>, counts: bool) -> Self {
        let fields = document.readable(&["cursor", "topologyVersion", "$clusterTime"]);
        let number = |field: &str| fields.get(field).and_then(Value::number);
        let errors = fields.get("writeErrors").map(Value::items).unwrap_or_default();
        let concern = fields.get("writeConcernError");
        let has_failures = number("nErrors").is_some_and(|count| count > 0.0);
        let is_refused = fields.get("ok").is_some_and(|ok| !ok.is_true());
        let code = match () {
            () if is_refused => fields.get("code"),
            () if has_failures => None,
            () => errors.first().or(concern).and_then(|error| error.get("code")),
        };
        let code = code.and_then(Value::number).map(|code| format!("{code:.0}"));
        let code = code.or_else(|| has_failures.then(|| first_code(document)).flatten());
        let changed = number("nModified").or_else(|| number("n")).unwrap_or(0.0);
        Self {
            goes_on: false,
            is_failed: is_refused || has_failures || !errors.is_empty() || concern.is_some(),
            error: code.map(Arc::from),
            rows: if counts { rows(document) } else { 0 },
            affected: changed.clamp(0.0, 1e15) as u64,
            session_id: number("connectionId").filter(|id| *id > 0.0).map(|id| id as i64),
            cursor: cursor(document),
        }
    }
}

/// The number of the cursor, of an answer whose documents were kept.
fn cursor(document: Document<'_>) -> Option<i64> {
    let Some(Element::Map(cursor)) = document.get("cursor") else { return None };
    match cursor.get("id") {
        Some(Element::Long(id)) => Some(rounded(id)),
        _ => None,
    }
}

/// The same at the end of an answer that was not: `id` and `ns` follow the documents.
fn cursor_in(tail: &[u8]) -> Option<i64> {
    const ID: &[u8] = b"\x12id\0";
    const NAMESPACE: &[u8] = b"\x02ns\0";
    let places = 0..tail.len().saturating_sub(ID.len() + 8 + NAMESPACE.len()) + 1;
    places.rev().find_map(|place| {
        let rest = tail.get(place..)?.strip_prefix(ID)?;
        rest.get(8..)?.starts_with(NAMESPACE).then(|| long(rest)).flatten()
    })
}

fn batch<'a>(document: Document<'a>, names: &[&str]) -> Option<Document<'a>> {
    let Some(Element::Map(cursor)) = document.get("cursor") else { return None };
    names.iter().find_map(|name| match cursor.get(name) {
        Some(Element::List(batch)) => Some(batch),
        _ => None,
    })
}

/// The number of documents in a batch.
fn rows(document: Document<'_>) -> u64 {
    batch(document, &["firstBatch", "nextBatch"])
        .map_or(0, |batch| batch.elements().filter(Result::is_ok).count() as u64)
}

/// The code of the first write of a `bulkWrite` that failed.
fn first_code(document: Document<'_>) -> Option<String> {
    let results = batch(document, &["firstBatch"])?;
    results.elements().map_while(Result::ok).find_map(|(_, result)| match result {
        Element::Map(result) => match result.get("code") {
            Some(Element::Int(code)) => Some(code.to_string()),
            _ => None,
        },
        _ => None,
    })
}
