//! The head of a record: comment lines with who, when and how long, then `use` and `SET timestamp`.
//! Records resemble each other, so the reader guesses the next attribute from the one that followed
//! last time.

use super::{database_of_use, log_time, set_timestamp, value};
use crate::digest::attribute::{Attributes, Unit};
use crate::digest::block::Context;
use memchr::memchr;

/// Longest name of an attribute.
const MOST_NAME: usize = 64;

/// An attribute as it stands in the log.
#[derive(Debug)]
struct LearnedAttribute {
    /// Its name, colon and blank.
    begin: Vec<u8>,
    /// The first eight bytes of these, and a mask for those that count.
    first: u64,
    mask: u64,
    attribute: u16,
    unit: Unit,
    /// The attribute that followed it last time.
    next: usize,
}

impl LearnedAttribute {
    /// Whether `text` begins with it. Most names differ in their first bytes, and calling a
    /// comparison for each would cost more.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        text.get(..8)
            .and_then(|eight| eight.try_into().ok())
            .is_none_or(|eight: [u8; 8]| (u64::from_le_bytes(eight) ^ self.first) & self.mask == 0)
            && same(text.get(..self.begin.len()).unwrap_or_default(), &self.begin)
    }
}

/// Whether two short texts are the same.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    let word = |bytes: &[u8], at: usize| -> u64 {
        bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let length = a.len();
    if length != b.len() {
        return false;
    }
    match length {
        8..=16 => word(a, 0) == word(b, 0) && word(a, length - 8) == word(b, length - 8),
        17..=24 => word(a, 0) == word(b, 0) && word(a, 8) == word(b, 8) && word(a, length - 8) == word(b, length - 8),
        _ => a == b,
    }
}

/// The fields of a record's head.
#[derive(Debug, Default)]
pub(super) struct Head {
    known: Vec<LearnedAttribute>,
    last: usize,
    pub(super) context: Context,
    /// Whether the record has no head.
    pub(super) is_empty: bool,
    pub(super) at_us: Option<i64>,
    /// End of the statement, if the head has fractions of a second.
    pub(super) ended_us: Option<i64>,
    /// The connection; 0 if the head does not have it.
    pub(super) session: u64,
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
    /// Reads the head at the start of `data`; returns the start of the statement.
    pub(super) fn read(&mut self, data: &[u8], attributes: &mut Attributes) -> usize {
        self.at_us = None;
        self.ended_us = None;
        self.session = 0;
        self.has_bad_number = false;
        for text in [&mut self.user, &mut self.host, &mut self.schema, &mut self.used] {
            text.clear();
        }
        self.measures.clear();
        self.flags.clear();
        let (mut at, mut has_time, mut has_who) = (0, false, false);
        while data.get(at) == Some(&b'#') {
            let rest = data.get(at..).unwrap_or_default();
            // A second one of these belongs to the next record.
            let is_next =
                rest.starts_with(b"# Time: ") && (has_time || has_who) || rest.starts_with(super::USER) && has_who;
            if rest.starts_with(super::COMMAND) || is_next {
                break;
            }
            at = if let Some(time) = rest.strip_prefix(b"# Time: ") {
                has_time = true;
                let end = line_end(data, at);
                match log_time(time) {
                    Some(time) => {
                        (self.at_us, self.context.at_us) = (Some(time), Some(time));
                        self.ended_us = Some(time).filter(|time| time % 1_000_000 != 0);
                    }
                    None => self.has_bad_number = true,
                }
                // Some have the account on the same line.
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

    /// The database: that of a `use` in it, else the head's own, else the last one used.
    pub(super) fn database(&self) -> &[u8] {
        [&self.used, &self.schema, &self.context.database]
            .into_iter()
            .find(|name| !name.is_empty())
            .map_or(b"", Vec::as_slice)
    }

    /// Reads `Name: value` to the end of the line; returns the start of the next one.
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
                Some(known) if known.begins(rest) => guess,
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
            if let Some(length) = self.plain(attribute, unit, behind) {
                at = from + length;
                continue;
            }
            let length = behind.iter().position(|byte| *byte <= b' ').unwrap_or(behind.len());
            value(self, attribute, unit, behind.get(..length).unwrap_or_default());
            at = from + length;
        }
    }

    /// Reads a value in the form that servers use for nearly all of them; returns its length.
    /// `None` if it has another form.
    #[inline]
    fn plain(&mut self, attribute: u16, unit: Unit, text: &[u8]) -> Option<usize> {
        let ends = |at: usize| text.get(at).is_none_or(|byte| *byte <= b' ');
        match unit {
            Unit::Flag => {
                let length = if text.starts_with(b"No") { 2 } else { 3 };
                let is_so = length == 3 && text.starts_with(b"Yes");
                if !ends(length) || length == 3 && !is_so {
                    return None;
                }
                self.flags.push((attribute, is_so));
                Some(length)
            }
            Unit::Number | Unit::Time => {
                let (mut value, mut at) = digits(text, 0, 0);
                if at == 0 || at > 12 {
                    return None;
                }
                if unit == Unit::Time {
                    let end;
                    (value, end) = digits(text, at + 1, value);
                    if text.get(at) != Some(&b'.') || end != at + 7 {
                        return None;
                    }
                    at = end;
                }
                if !ends(at) {
                    return None;
                }
                self.measures.push((attribute, value));
                Some(at)
            }
            _ => None,
        }
    }

    /// The attribute whose name starts `rest`, added if needed, and remembered as the one that
    /// followed the last.
    fn find(&mut self, rest: &[u8], attributes: &mut Attributes) -> Option<usize> {
        let length = rest.iter().take(MOST_NAME).position(|byte| *byte == b':' || *byte <= b' ')?;
        let name = rest.get(..length).filter(|name| !name.is_empty())?;
        if rest.get(length) != Some(&b':') {
            return None;
        }
        // The last one on a line may have nothing behind its colon, not even a blank.
        let blank = usize::from(rest.get(length + 1) == Some(&b' '));
        let begin = rest.get(..length + 1 + blank)?;
        let index = match self.known.iter().position(|known| known.begin == begin) {
            Some(index) => index,
            None => {
                let attribute = attributes.number(name)?;
                let unit = attributes.get(attribute)?.unit;
                let mut eight = [0; 8];
                eight.iter_mut().zip(begin).for_each(|(byte, known)| *byte = *known);
                let mask = u64::MAX >> (8 * (8 - begin.len().min(8)));
                let first = u64::from_le_bytes(eight);
                self.known.push(LearnedAttribute { begin: begin.to_vec(), first, mask, attribute, unit, next: 0 });
                self.known.len() - 1
            }
        };
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = index;
        }
        Some(index)
    }

    /// `use a;` and `SET timestamp=1;` before the statement; returns the start of the statement.
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

/// Appends the digits at `at` to `value`, and returns their end. Reads at most 12 digits; if there
/// are more, the returned end is one behind them.
#[inline]
fn digits(text: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    let most = at + 12;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        if at >= most {
            return (value, at + 1);
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (value, at)
}

/// MariaDB's plan lines and Percona's remark.
fn is_explain(line: &[u8]) -> bool {
    line.starts_with(b"# explain:") || line.starts_with(b"# No InnoDB") || line.starts_with(b"#\n")
}
