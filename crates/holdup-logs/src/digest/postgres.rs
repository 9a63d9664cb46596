//! Logs of PostgreSQL in all the forms it writes them. They differ in how an entry is told from the next and where its
//! fields stand; what an entry says is the same in all of them.

use std::sync::LazyLock;

use memchr::memmem::Finder;

pub mod csv;
pub mod entry;
mod fact;
pub mod json;
pub mod prefix;
pub mod stderr;
pub mod syslog;

/// What begins a message in text.
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

/// Bytes at the beginning of a line in which its severity must stand.
const MOST_PREFIX: usize = 1_024;

/// Severities that go on with the entry before: never cut before one.
pub(crate) fn continues(severity: &[u8]) -> bool {
    matches!(severity, b"DETAIL" | b"HINT" | b"QUERY" | b"CONTEXT" | b"LOCATION" | b"STATEMENT" | b"BACKTRACE")
}

/// Where the severity begins in a line, and where the message does: `…LOG:  duration`. Some collectors leave one of the two
/// blanks.
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

/// The severity that stands between the two places of [`severity`].
pub(crate) fn severity_word(line: &[u8], begin: usize, message: usize) -> &[u8] {
    let text = line.get(begin..message).unwrap_or_default();
    text.split(|byte| *byte == b':').next().unwrap_or_default()
}
