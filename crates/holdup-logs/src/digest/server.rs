//! A PostgreSQL server's messages about itself: connections, checkpoints, temporary files, waits
//! for locks, vacuums, errors. Only the words of messages are kept, because a text in quotes or a
//! number may be a value.

use std::collections::BTreeMap;

use crate::digest::measure::Measure;

/// Most kinds of error messages.
const MOST_MESSAGES: usize = 1_000;

/// Most names of accounts, databases, hosts and tables.
const MOST_NAMES: usize = 20_000;

/// The messages so far.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Counts of occurrences, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Figures by name, in the unit that the name ends in.
    pub figures: BTreeMap<&'static str, Measure>,
    /// The same by subject: `connections_by_user` and the user.
    pub names: BTreeMap<(&'static str, String), Measure>,
    /// Errors by severity and words.
    pub messages: BTreeMap<(String, String), u64>,
}

impl Server {
    /// Counts something.
    pub fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// Counts a number of occurrences.
    pub fn count_more(&mut self, name: &'static str, more: u64) {
        *self.counts.entry(name).or_default() += more;
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: &'static str, value: u64) {
        self.figures.entry(name).or_default().add(value);
    }

    /// Adds a figure of something with a name.
    pub fn named(&mut self, kind: &'static str, name: &[u8], value: u64) {
        let mut key = (kind, String::from_utf8_lossy(name).into_owned());
        if self.names.len() >= MOST_NAMES && !self.names.contains_key(&key) {
            key.1 = "(others)".to_owned();
        }
        self.names.entry(key).or_default().add(value);
    }

    /// Counts an error.
    pub fn error(&mut self, severity: &[u8], message: &[u8]) {
        let mut key = (String::from_utf8_lossy(severity).into_owned(), words(message));
        if self.messages.len() >= MOST_MESSAGES && !self.messages.contains_key(&key) {
            key.1 = "(others)".to_owned();
        }
        *self.messages.entry(key).or_default() += 1;
    }

    /// Adds another thread's messages.
    pub fn merge(&mut self, other: Self) {
        for (name, count) in other.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (name, figure) in other.figures {
            self.figures.entry(name).or_default().merge(&figure);
        }
        for (key, figure) in other.names {
            self.names.entry(key).or_default().merge(&figure);
        }
        for (message, count) in other.messages {
            *self.messages.entry(message).or_default() += count;
        }
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.figures.is_empty() && self.messages.is_empty()
    }
}

/// Beginnings of messages whose first quoted text is a name.
const NAMES: &[&[u8]] = &[
    b"duplicate key value violates unique constraint ",
    b"relation ",
    b"column ",
    b"null value in column ",
    b"permission denied for ",
    b"insert or update on table ",
    b"update or delete on table ",
];

/// A message without possible values.
fn words(message: &[u8]) -> String {
    let line = message.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut keeps_name = NAMES.iter().any(|begin| line.starts_with(begin));
    let (mut text, mut at) = (Vec::new(), 0);
    while let Some(byte) = line.get(at).filter(|_| text.len() < 200) {
        let rest = line.get(at + 1..).unwrap_or_default();
        let before = text.last().copied().unwrap_or(b' ');
        if matches!(byte, b'"' | b'\'' | b'`') && !before.is_ascii_alphanumeric() {
            let end = rest.iter().position(|other| other == byte).unwrap_or(rest.len());
            if keeps_name && *byte == b'"' && rest.get(end) == Some(byte) {
                text.extend_from_slice(line.get(at..at + end + 2).unwrap_or_default());
            } else {
                text.push(b'?');
            }
            keeps_name = false;
            at += end + 2;
        } else if byte.is_ascii_digit() && !before.is_ascii_alphabetic() {
            text.push(b'?');
            at += 1 + rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'))
                .count();
        } else if *byte == b'=' {
            // The text behind `=` is a value: `Key (a)=(b)`.
            text.extend_from_slice(b"=?");
            break;
        } else {
            text.push(*byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_stays_in_a_message() {
        for (message, expected) in [
            (
                "duplicate key value violates unique constraint \"users_email_key\"",
                "duplicate key value violates unique constraint \"users_email_key\"",
            ),
            ("invalid input syntax for type integer: \"canary\"", "invalid input syntax for type integer: ?"),
            ("invalid input syntax for type integer: \"canary", "invalid input syntax for type integer: ?"),
            ("value 4711 is out of range", "value ? is out of range"),
            ("Key (email)=(canary) exists", "Key (email)=?"),
            ("canceling statement due to statement timeout\nmore", "canceling statement due to statement timeout"),
            ("relation \"a\" of \"canary\"", "relation \"a\" of ?"),
        ] {
            assert_eq!(words(message.as_bytes()), expected);
        }
    }
}
