//! The head of a record: comment lines with who, when and how long, then `use` and `SET timestamp`. Records are alike, so
//! which attribute comes next is guessed from what came behind this one last time.

use super::{database_of_use, log_time, set_timestamp, value};
use crate::attribute::{Attributes, Unit};
use crate::block::Context;
use memchr::memchr;

/// Longest name of an attribute.
const MOST_NAME: usize = 64;

/// An attribute as it stands in the log.
#[derive(Debug)]
struct Known {
    /// Its name, colon and blank.
    begin: Vec<u8>,
    attribute: u16,
    unit: Unit,
    /// Which one was behind it last time.
    next: usize,
}

/// What the head of a record said.
#[derive(Debug, Default)]
pub(super) struct Head {
    known: Vec<Known>,
    last: usize,
    pub(super) context: Context,
    /// Whether there was none.
    pub(super) is_empty: bool,
    pub(super) at_us: Option<i64>,
    pub(super) user: Vec<u8>,
    pub(super) host: Vec<u8>,
    pub(super) schema: Vec<u8>,
    /// Database of a `use` in it.
    pub(super) used: Vec<u8>,
    pub(super) measures: Vec<(u16, u64)>,
    pub(super) flags: Vec<(u16, bool)>,
    pub(super) has_bad_number: bool,
}

fn line_end(data: &[u8], from: usize) -> usize {
    data.get(from..).and_then(|rest| memchr(b'\n', rest)).map_or(data.len(), |at| from + at)
}

impl Head {
    /// Reads the head that `data` begins with; returns where the statement begins.
    pub(super) fn read(&mut self, data: &[u8], attributes: &mut Attributes) -> usize {
        self.at_us = None;
        self.has_bad_number = false;
        for text in [&mut self.user, &mut self.host, &mut self.schema, &mut self.used] {
            text.clear();
        }
        self.measures.clear();
        self.flags.clear();
        let (mut at, mut has_time, mut has_who) = (0, false, false);
        while data.get(at) == Some(&b'#') {
            let rest = data.get(at..).unwrap_or_default();
            // A second one of these is the next record's.
            let is_next =
                rest.starts_with(b"# Time: ") && (has_time || has_who) || rest.starts_with(super::USER) && has_who;
            if rest.starts_with(super::COMMAND) || is_next {
                break;
            }
            at = if let Some(time) = rest.strip_prefix(b"# Time: ") {
                has_time = true;
                let end = line_end(data, at);
                match log_time(time) {
                    Some(time) => (self.at_us, self.context.at_us) = (Some(time), Some(time)),
                    None => self.has_bad_number = true,
                }
                // Some have who on the same line.
                let line = data.get(at..end).unwrap_or_default();
                if let Some(user) = memchr::memmem::find(line, super::USER) {
                    self.who(line.get(user + super::USER.len()..).unwrap_or_default());
                }
                end + 1
            } else if let Some(who) = rest.strip_prefix(super::USER) {
                has_who = true;
                let passed = self.who(who);
                self.line(data, at + super::USER.len() + passed, attributes)
            } else if is_explain(rest) {
                line_end(data, at) + 1
            } else {
                self.line(data, at + 1, attributes)
            };
        }
        let at = at.min(data.len());
        self.is_empty = at == 0;
        at + self.session(data.get(at..).unwrap_or_default())
    }

    /// `user[user] @ host [address]`; returns how much of it was read.
    fn who(&mut self, text: &[u8]) -> usize {
        let line = text.get(..line_end(text, 0)).unwrap_or_default();
        let Some(at) = memchr::memmem::find(line, b" @ ") else { return 0 };
        self.user.clear();
        self.host.clear();
        let account = line.get(..at).unwrap_or_default();
        // `[SQL_SLAVE]` has no name before its bracket.
        let bracket = match memchr(b'[', account) {
            Some(0) => memchr(b']', account).map(|at| at + 1),
            found => found,
        };
        let bracket = bracket.unwrap_or(account.len());
        self.user.extend_from_slice(account.get(..bracket).unwrap_or_default());
        let behind = line.get(at + 3..).unwrap_or_default();
        let open = memchr(b'[', behind).unwrap_or(behind.len());
        let close = memchr(b']', behind).unwrap_or(behind.len());
        let host = behind.get(..open).unwrap_or_default().trim_ascii();
        let address = behind.get(open + 1..close).unwrap_or_default();
        self.host.extend_from_slice(if host.is_empty() { address } else { host });
        (at + 3 + close + 1).min(line.len())
    }

    /// The database: that of a `use` in it, else what it says, else the last that was used.
    pub(super) fn database(&self) -> &[u8] {
        [&self.used, &self.schema, &self.context.database]
            .into_iter()
            .find(|name| !name.is_empty())
            .map_or(b"", Vec::as_slice)
    }

    /// Reads `Name: value` to the end of the line; returns where the next one begins.
    fn line(&mut self, data: &[u8], mut at: usize, attributes: &mut Attributes) -> usize {
        loop {
            while matches!(data.get(at), Some(b' ' | b'\t' | b'\r')) {
                at += 1;
            }
            match data.get(at) {
                None => return at,
                Some(b'\n') => return at + 1,
                Some(_) => {}
            }
            let rest = data.get(at..).unwrap_or_default();
            let guess = self.known.get(self.last).map_or(0, |last| last.next);
            let index = match self.known.get(guess) {
                Some(known) if rest.starts_with(&known.begin) => guess,
                _ => match self.find(rest, attributes) {
                    Some(index) => index,
                    None => return line_end(data, at) + 1,
                },
            };
            self.last = index;
            let Some(known) = self.known.get(index) else { return line_end(data, at) + 1 };
            let from = at + known.begin.len();
            let (attribute, unit) = (known.attribute, known.unit);
            let behind = data.get(from..).unwrap_or_default();
            let length = behind.iter().position(|byte| *byte <= b' ').unwrap_or(behind.len());
            value(self, attribute, unit, behind.get(..length).unwrap_or_default());
            at = from + length;
        }
    }

    /// The attribute whose name `rest` begins with, learned if need be, and remembered as the one behind the last.
    fn find(&mut self, rest: &[u8], attributes: &mut Attributes) -> Option<usize> {
        let length = rest.iter().take(MOST_NAME).position(|byte| *byte == b':' || *byte <= b' ')?;
        let name = rest.get(..length).filter(|name| !name.is_empty())?;
        if rest.get(length) != Some(&b':') {
            return None;
        }
        // The last on a line may have nothing behind its colon, not even a blank.
        let blank = usize::from(rest.get(length + 1) == Some(&b' '));
        let begin = rest.get(..length + 1 + blank)?;
        let index = match self.known.iter().position(|known| known.begin == begin) {
            Some(index) => index,
            None => {
                let attribute = attributes.number(name)?;
                let unit = attributes.get(attribute)?.unit;
                self.known.push(Known { begin: begin.to_vec(), attribute, unit, next: 0 });
                self.known.len() - 1
            }
        };
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = index;
        }
        Some(index)
    }

    /// `use a;` and `SET timestamp=1;` before the statement; returns where that begins.
    fn session(&mut self, data: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let rest = data.get(at..).unwrap_or_default();
            let is_use = rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"use "));
            let is_set = rest.starts_with(b"SET ");
            if !is_use && !is_set {
                return at;
            }
            let end = line_end(data, at);
            let line = data.get(at..end).unwrap_or_default();
            if is_use {
                if !line.trim_ascii_end().ends_with(b";") || !self.used.is_empty() {
                    return at;
                }
                let name = database_of_use(line.get(4..).unwrap_or_default());
                self.used = name.to_vec();
                self.context.database.clear();
                self.context.database.extend_from_slice(name);
            } else {
                let Some(time) = set_timestamp(line) else { return at };
                self.at_us = Some(time);
            }
            at = (end + 1).min(data.len());
            if is_set {
                return at;
            }
        }
    }
}

/// MariaDB's plan lines and Percona's remark.
fn is_explain(line: &[u8]) -> bool {
    line.starts_with(b"# explain:") || line.starts_with(b"# No InnoDB") || line.starts_with(b"#\n")
}
