//! A line of a `mongod`'s or `mongos`' log: an operation that took long, or something the server did
//! itself (an index, a checkpoint, a connection). JSON since 4.4, text before.
//!
//! Lines come one by one, and each stands for itself. It keeps no value of an operation, and no line.

mod message;
mod text;

use holdup_recording::clock;

pub use self::message::Message;
use crate::printed::printed;
use crate::slow::SlowOperation;
use crate::value::Value;

/// What begins the name of a connection's thread.
const CONNECTION: &str = "conn";

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum LogLine {
    /// An operation that took longer than `slowms`.
    Slow(Box<SlowOperation>),
    /// Something that the server did.
    Message(Message),
    /// Anything else.
    Other,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// When it was written, nanoseconds since 1970.
    pub at: i64,
    /// How far the log's own clock is ahead of UTC.
    pub zone_seconds: i64,
    /// The server's number of the connection.
    pub connection: Option<i64>,
    /// What it says.
    pub line: LogLine,
}

/// Reads a line; none if it is not one of such a log.
#[must_use]
pub fn logged(line: &str) -> Option<Logged> {
    let line = line.trim_end();
    if line.starts_with('{') { json(line) } else { text::read(line) }
}

/// Whether a line is JSON of such a log; quickly, of all lines.
#[must_use]
pub fn is_log_json(line: &[u8]) -> bool {
    line.starts_with(b"{\"t\":{\"$date\":\"")
}

/// Whether a line begins like the older text: a time with its zone, and a severity.
#[must_use]
pub fn is_log_text(line: &str) -> bool {
    text::head(line).is_some()
}

fn json(line: &str) -> Option<Logged> {
    let (at, zone_seconds) = instant(line.strip_prefix("{\"t\":{\"$date\":\"")?.split('"').next()?)?;
    let other = Logged { at, zone_seconds, connection: None, line: LogLine::Other };
    let is_slow = line.contains("\"msg\":\"Slow query\"");
    if !is_slow && !message::may_be(line) {
        // Most lines: it is enough that they end as one does.
        return line.ends_with('}').then_some(other);
    }
    let read = printed(&[line]).filter(|read| !read.is_cut)?;
    let fields = read.value.get("attr").filter(|fields| !fields.entries().is_empty());
    let connection = read.value.get("ctx").and_then(Value::text).and_then(connection);
    let line = match fields {
        Some(fields) if is_slow => SlowOperation::read(fields).map(|slow| LogLine::Slow(Box::new(slow))),
        fields => {
            let words = read.value.get("msg").and_then(Value::text).unwrap_or_default();
            message::read(words, fields.unwrap_or(&Value::Null)).map(LogLine::Message)
        }
    };
    Some(Logged { at, zone_seconds, connection, line: line.unwrap_or(LogLine::Other) })
}

/// A time with its zone: nanoseconds since 1970, and the zone's offset.
fn instant(text: &str) -> Option<(i64, i64)> {
    let at = clock::parse_rfc3339(text)?;
    let zone = text.get(text.len().saturating_sub(6)..).unwrap_or_default();
    let Some((sign, digits)) =
        zone.rfind(['+', '-']).and_then(|sign| zone.split_at_checked(sign)).map(|(_, zone)| zone.split_at(1))
    else {
        return Some((at, 0));
    };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let part = |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<i64>().ok()).unwrap_or(0);
    let ahead = part(0..2) * 3_600 + part(2..4) * 60;
    Some((at, if sign == "-" { -ahead } else { ahead }))
}

fn connection(thread: &str) -> Option<i64> {
    thread.strip_prefix(CONNECTION)?.parse().ok()
}

#[cfg(test)]
mod tests;
