//! What a server says of its own work: index builds, checkpoints that take long, flow control,
//! connections. The words are matched by their beginnings, which releases have kept.

use crate::value::Value;

/// Words of which a line has some if it is one of these messages.
const WORDS: [&str; 5] =
    ["ndex build: ", "Checkpoint ", "Flow control is engaged", "onnection accepted", "onnection ended"];

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// An index is being built, on this collection.
    IndexBegun(String),
    /// The collection was read for an index, in so many nanoseconds.
    IndexScanned(i64),
    /// An index was built.
    IndexDone(String),
    /// A checkpoint that took longer than 20 s, so far or in all.
    Checkpoint {
        /// Seconds that it took so far.
        seconds: u64,
        /// MB that it wrote.
        megabytes: u64,
        /// Whether it has ended.
        is_over: bool,
    },
    /// The primary holds writes back, and its secondaries do not move.
    FlowControl,
    /// A client has connected.
    Connected,
    /// A client has gone.
    Disconnected,
}

/// Whether a line may have one of them.
pub(super) fn may_be(line: &str) -> bool {
    WORDS.iter().any(|words| line.contains(words))
}

/// The message of these words and fields.
pub(super) fn read(words: &str, fields: &Value) -> Option<Message> {
    let collection = || fields.get("namespace").and_then(Value::text).unwrap_or_default().to_owned();
    Some(match words {
        "Index build: starting" => Message::IndexBegun(collection()),
        "Index build: done building" => Message::IndexDone(collection()),
        "Index build: collection scan done" => Message::IndexScanned(milliseconds(fields)?.saturating_mul(1_000_000)),
        "Connection accepted" => Message::Connected,
        "Connection ended" => Message::Disconnected,
        "WiredTiger message" => {
            // Since 6.0 the message is a document.
            let inner = fields.at(&["message", "msg"]).or_else(|| fields.get("message")).and_then(Value::text)?;
            return checkpoint(inner);
        }
        words if words.starts_with("Flow control is engaged") => Message::FlowControl,
        _ => return None,
    })
}

/// A duration: `durationMillis`, or a text with its unit.
fn milliseconds(fields: &Value) -> Option<i64> {
    let number = fields.get("durationMillis").and_then(Value::number);
    let number = number.or_else(|| fields.get("duration")?.text()?.strip_suffix("ms")?.trim().parse().ok());
    number.filter(|ms| (0.0..9e12).contains(ms)).map(|ms| ms as i64)
}

/// `… Checkpoint ran for 25 seconds and wrote: 9000 pages (310 MB)`.
pub(super) fn checkpoint(text: &str) -> Option<Message> {
    let (_, rest) = text.split_once("Checkpoint ")?;
    let is_over = rest.starts_with("ran for ");
    let rest = rest.strip_prefix("ran for ").or_else(|| rest.strip_prefix("has been running for "))?;
    let (seconds, rest) = rest.split_once(" seconds")?;
    let megabytes = rest.split_once('(').and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    Some(Message::Checkpoint { seconds: seconds.parse().ok()?, megabytes: megabytes.unwrap_or(0), is_over })
}
