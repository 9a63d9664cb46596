//! Lines of logs before 4.4: a time, a severity, a component, a thread, and words. An operation is its
//! kind, its collection, `name:value` pairs, and its duration at the end.
//!
//! A long line has a hole in its middle, and an old one may have literals as they were sent. What cannot
//! be read as a document is passed over, up to the figures behind it, and nothing of it is kept.

use holdup_recording::clock;

use super::message::{self, Message};
use super::{LogLine, Logged, connection, instant};
use crate::printed::printed;
use crate::slow::SlowOperation;
use crate::value::Value;

/// Kinds of operations, as a line begins with them.
const KINDS: [&str; 8] = ["command", "query", "getmore", "insert", "update", "remove", "delete", "find"];

/// What stands behind the documents of each operation.
const FIGURES: &str = " numYields:";

/// Time, component, thread and words of a line.
pub(super) fn head(line: &str) -> Option<(&str, &str, &str)> {
    let (time, rest) = line.split_once(' ')?;
    clock::parse_rfc3339(time)?;
    let (severity, rest) = rest.trim_start().split_once(' ')?;
    if !(severity.starts_with(['D', 'I', 'W', 'E', 'F']) && severity.len() <= 2) {
        return None;
    }
    let (_component, rest) = rest.trim_start().split_once(' ')?;
    let (thread, words) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
    Some((time, thread, words.trim()))
}

/// Reads a line.
pub(super) fn read(line: &str) -> Option<Logged> {
    let (time, thread, words) = head(line)?;
    let (at, zone_seconds) = instant(time)?;
    let slow = operation(words).and_then(|fields| SlowOperation::read(&fields));
    let line = match slow {
        Some(slow) => LogLine::Slow(Box::new(slow)),
        None => message(words).map_or(LogLine::Other, LogLine::Message),
    };
    Some(Logged { at, zone_seconds, connection: connection(thread), line })
}

fn message(words: &str) -> Option<Message> {
    if let Some(rest) = words.strip_prefix("index build: ") {
        let last = || rest.rsplit(' ').next().unwrap_or_default().to_owned();
        return match () {
            () if rest.starts_with("starting on ") => Some(Message::IndexBegun(rest.split(' ').nth(2)?.to_owned())),
            () if rest.starts_with("done building index ") => Some(Message::IndexDone(last())),
            () if rest.starts_with("collection scan done") => {
                let seconds: i64 = rest.split_once(" in ")?.1.split(' ').next()?.parse().ok()?;
                Some(Message::IndexScanned(seconds.checked_mul(1_000_000_000)?))
            }
            () => None,
        };
    }
    match words {
        words if words.starts_with("connection accepted from ") => Some(Message::Connected),
        words if words.starts_with("end connection ") => Some(Message::Disconnected),
        words => message::checkpoint(words).or_else(|| message::read(words, &Value::Null)),
    }
}

/// The fields of an operation, by the names that they have in JSON.
fn operation(words: &str) -> Option<Value> {
    let (kind, rest) = words.split_once(' ')?;
    let duration = words.rsplit(' ').next()?.strip_suffix("ms").filter(|digits| !digits.is_empty())?;
    let duration: f64 = duration.bytes().all(|byte| byte.is_ascii_digit()).then(|| duration.parse().ok()).flatten()?;
    if !KINDS.contains(&kind) {
        return None;
    }
    let (namespace, rest) = rest.split_once(' ')?;
    let mut fields = vec![
        ("type".to_owned(), Value::Text(kind.to_owned())),
        ("ns".to_owned(), Value::Text(namespace.to_owned())),
        ("durationMillis".to_owned(), Value::Number(duration)),
    ];
    pairs(rest, &mut fields);
    Some(Value::Map(fields))
}

/// The pairs of a name and a value.
fn pairs(mut rest: &str, fields: &mut Vec<(String, Value)>) {
    loop {
        rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let Some(value) = after.strip_prefix(':').filter(|_| !name.is_empty()) else {
            // A word without a name, as the duration is.
            match rest.split_once(' ') {
                Some((_, after)) => rest = after,
                None => return,
            }
            continue;
        };
        let value = value.trim_start();
        if name == "planSummary" {
            let (plan, after) = plan(value);
            fields.push((name.to_owned(), Value::Text(plan.to_owned())));
            rest = after;
            continue;
        }
        // `command: find { find: … }` has the command's name first.
        let word = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
        let document = match value.get(word..).map(str::trim_start) {
            Some(document) if matches!(name, "command" | "originatingCommand") && document.starts_with('{') => document,
            _ => value,
        };
        if document.starts_with(['{', '"']) {
            let read = printed(&[document]).filter(|read| !read.is_cut);
            match read.and_then(|read| Some((read.value, document.get(read.end.1..)?))) {
                Some((value, after)) => {
                    fields.push((renamed(name).to_owned(), value));
                    rest = after;
                }
                None => match rest.rfind(FIGURES).and_then(|at| rest.get(at..)) {
                    Some(figures) => rest = figures,
                    None => return,
                },
            }
            continue;
        }
        let (word, after) = value.split_once(' ').unwrap_or((value, ""));
        if let Ok(number) = word.parse::<f64>() {
            fields.push((renamed(name).to_owned(), Value::Number(number)));
        } else if name == "exception" {
            fields.push((name.to_owned(), Value::Null));
        }
        rest = after;
    }
}

/// The name that a field has in JSON.
fn renamed(name: &str) -> &str {
    match name {
        "code" => "errCode",
        name => name,
    }
}

/// A plan's steps with their indexes, and what follows them.
fn plan(text: &str) -> (&str, &str) {
    let mut end = 0;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let word =
            rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
        end += word;
        let rest = text.get(end..).unwrap_or_default();
        if rest.starts_with(" {")
            && let Some(index) = printed(&[rest])
        {
            end += index.end.1;
        }
        match text.get(end..).and_then(|rest| rest.strip_prefix(", ")) {
            Some(_) => end += 2,
            None => return (text.get(..end).unwrap_or_default(), text.get(end..).unwrap_or_default()),
        }
    }
}
