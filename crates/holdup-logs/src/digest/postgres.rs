//! PostgreSQL's logs in all their formats. The formats differ in how entries are separated and
//! where fields stand; the content of an entry is the same.

use std::sync::LazyLock;

use memchr::memmem::Finder;

pub mod csv;
pub mod entry;
mod fact;
pub mod heard;
pub mod json;
pub mod prefix;
pub mod stderr;
pub mod syslog;

/// Fixed texts that begin a message.
const SEVERITIES: [&[u8]; 20] = [
    b"LOG",
    b"ERROR",
    b"DETAIL",
    b"STATEMENT",
    b"CONTEXT",
    b"HINT",
    b"FATAL",
    b"WARNING",
    b"NOTICE",
    b"INFO",
    b"PANIC",
    b"QUERY",
    b"LOCATION",
    b"BACKTRACE",
    b"DEBUG",
    b"DEBUG1",
    b"DEBUG2",
    b"DEBUG3",
    b"DEBUG4",
    b"DEBUG5",
];

/// The severity of a line must stand within this many bytes.
const MOST_PREFIX: usize = 1_024;

/// Severities that continue the previous entry: a block is never cut before one.
pub(crate) fn continues(severity: &[u8]) -> bool {
    matches!(severity, b"DETAIL" | b"HINT" | b"QUERY" | b"CONTEXT" | b"LOCATION" | b"STATEMENT" | b"BACKTRACE")
}

/// Places of the severity and of the message in a line: `…LOG:  duration`. Some collectors drop one
/// of the two blanks.
pub(crate) fn severity(line: &[u8]) -> Option<(usize, usize)> {
    static TWO: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b":  "));
    static ONE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b": "));
    let head = line.get(..line.len().min(MOST_PREFIX)).unwrap_or_default();
    marked(head, &TWO, 3).or_else(|| marked(head, &ONE, 2))
}

fn marked(head: &[u8], mark: &Finder, length: usize) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let found = from + mark.find(head.get(from..)?)?;
        let begin = head.get(..found)?.iter().rposition(|byte| !byte.is_ascii_uppercase() && !byte.is_ascii_digit());
        let begin = begin.map_or(0, |at| at + 1);
        if SEVERITIES.contains(&head.get(begin..found)?) {
            return Some((begin, found + length));
        }
        from = found + length;
    }
}

/// The severity between the two places that [`severity`] returns.
pub(crate) fn severity_word(line: &[u8], begin: usize, message: usize) -> &[u8] {
    let text = line.get(begin..message).unwrap_or_default();
    text.split(|byte| *byte == b':').next().unwrap_or_default()
}
