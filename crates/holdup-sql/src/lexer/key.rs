//! A number for the shape of a statement, at the speed of memory: for code that counts millions of
//! executions and wants the digest of each shape once. Two statements with one key have one digest.
//! One digest has several keys (letter case, white space, other ways to write a list), but few,
//! however many values there are.
//!
//! It walks over the bytes and stops only where a literal, a comment or a row of values may begin.
//! Everything between is hashed as it stands, eight bytes at a time. Where it cannot be sure (code
//! in comments), it returns none, and the caller takes the digest itself.

use super::{Lexer, TokenKind, is_word_byte};
use crate::Dialect;

mod hash;
mod stops;

use hash::{absorb, mix, segment};
use stops::{COMMENT, DIGIT, DOLLAR, NAME_QUOTE, PARENTHESIS, QUESTION, STRING_QUOTE, V, table};

/// The result of [`key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Equal only for statements with the same digest, except for a collision in 64 bits. Valid
    /// within one process only.
    pub hash: u64,
    /// Whether the statement ends within a string, a quoted name or a comment.
    pub open: bool,
}

/// The key of a statement; `None` if only the digest can tell, as with code in `/*! … */`.
pub fn key(sql: &[u8], dialect: Dialect) -> Option<Key> {
    let mut walk = Walk {
        lexer: Lexer::new(sql, dialect),
        sql,
        at: 0,
        from: 0,
        behind: 0,
        hash: 0x9e37_79b9_7f4a_7c15,
        open: false,
        row_depth: None,
    };
    walk.run()?;
    walk.flush(sql.len());
    Some(Key { hash: mix(walk.hash, sql.first().map_or(1, |_| 0x2545_f491_4f6c_dd1d)), open: walk.open })
}

/// Hashed in place of omitted values. A list counts as one, two or more values, because the digest
/// distinguishes one value from two behind an operator.
const VALUES: [u64; 3] = [0x51, 0x52, 0x53];
const LEFT_OUT: u64 = 0x54;

struct Walk<'a> {
    lexer: Lexer<'a>,
    sql: &'a [u8],
    at: usize,
    /// Start of the bytes that are not hashed yet: behind a literal or a comment.
    from: usize,
    /// The last byte before `from` that is neither blank nor in a comment.
    behind: u8,
    hash: u64,
    open: bool,
    /// In the first row behind `VALUES`: how many parentheses are open in it.
    row_depth: Option<usize>,
}

impl Walk<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.sql.get(at).copied().unwrap_or(0)
    }

    /// The byte before `at`, if it is not hashed yet.
    fn before(&self, at: usize) -> u8 {
        if at > self.from { self.byte(at - 1) } else { 0 }
    }

    /// The last byte before `at` that is not blank, and its place.
    fn before_blank(&self, mut at: usize) -> Option<(usize, u8)> {
        while at > self.from {
            at -= 1;
            let byte = self.byte(at);
            if byte > b' ' {
                return Some((at, byte));
            }
        }
        None
    }

    fn flush(&mut self, to: usize) {
        self.hash = segment(self.hash, self.sql.get(self.from..to).unwrap_or_default());
    }

    /// Asks the lexer what begins at `at`.
    fn lexer_at(&self, at: usize) -> Lexer<'_> {
        Lexer { at, ..self.lexer.clone() }
    }

    fn run(&mut self) -> Option<()> {
        let stops = table(self.lexer.dialect);
        loop {
            let of_interest = if self.row_depth.is_some() { u8::MAX } else { !PARENTHESIS };
            let Some(at) = next_stop(self.sql, self.at, stops, of_interest) else { return Some(()) };
            self.at = at;
            let byte = self.byte(at);
            match stops[usize::from(byte)] {
                DIGIT => self.digit(at),
                STRING_QUOTE => {
                    let end = self.string_end(at);
                    self.value(at, end);
                }
                NAME_QUOTE => self.at = self.quoted_end(at, false),
                DOLLAR if is_word_byte(self.before(at)) => self.at += 1,
                DOLLAR => self.value(at, at + self.lexer_at(at).dollar().1),
                QUESTION
                    if self.byte(at + 1) == b'+' || self.before_blank(at).is_some_and(|(_, byte)| byte == b'@') =>
                {
                    self.at += 1;
                }
                QUESTION => self.value(at, at + 1),
                V => self.perhaps_values(at),
                PARENTHESIS => self.parenthesis(at, byte),
                _ => self.perhaps_comment(at)?,
            }
        }
    }

    fn perhaps_comment(&mut self, at: usize) -> Option<()> {
        let Some(end) = self.comment_end(at)? else {
            self.at += 1;
            return Some(());
        };
        self.behind = self.before_blank(at).map_or(self.behind, |(_, byte)| byte);
        self.flush(at);
        self.hash = absorb(self.hash, LEFT_OUT);
        (self.at, self.from) = (end, end);
        Some(())
    }

    /// End of the comment that begins at `at`, if one does; `None` if it holds code.
    fn comment_end(&mut self, at: usize) -> Option<Option<usize>> {
        let next = self.byte(at + 1);
        if self.byte(at) == b'/' {
            if next != b'*' {
                return Some(None);
            }
            let is_code = matches!((self.byte(at + 2), self.byte(at + 3)), (b'!', _) | (b'M', b'!'));
            if is_code && self.lexer.dialect.is_mysql() {
                return None;
            }
        } else if self.byte(at) == b'-' && next != b'-' {
            return Some(None);
        }
        let Some(length) = self.lexer_at(at).comment() else { return Some(None) };
        let end = at + length;
        if self.byte(at) == b'/' && end >= self.sql.len() {
            self.open |= length < 4 || !self.sql.ends_with(b"*/");
        }
        Some(Some(end))
    }

    /// End of the string whose opening quote is at `at`.
    fn string_end(&mut self, at: usize) -> usize {
        let dialect = self.lexer.dialect;
        if dialect == Dialect::PostgreSql
            && matches!(self.before(at), b'e' | b'E')
            && !is_word_byte(self.before(at.saturating_sub(1)))
        {
            return at - 1 + self.lexer_at(at - 1).escaped_string();
        }
        self.quoted_end(at, dialect.backslash_escapes())
    }

    fn quoted_end(&mut self, at: usize, escapes: bool) -> usize {
        let quote = self.byte(at);
        let escape = if escapes { b'\\' } else { quote };
        let mut from = at + 1;
        while let Some(found) =
            self.sql.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == quote || *byte == escape))
        {
            let found = from + found;
            if self.byte(found) != quote || self.sql.get(found + 1) == Some(&quote) {
                from = found + 2;
            } else {
                return found + 1;
            }
        }
        self.open = true;
        self.sql.len()
    }

    /// A digit: it may be within a name, begin a name, or begin a number.
    fn digit(&mut self, at: usize) {
        let before = self.before(at);
        let number = if is_word_byte(before) || before == b'@' { None } else { self.number_end(at, before == b'.') };
        match number {
            Some(end) => self.value(at, end),
            None => {
                let rest = self.sql.get(at..).unwrap_or_default();
                self.at += rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if before == b'.' {
                    // No rule of this file reads the rest of this word as anything but a word.
                    let rest = self.sql.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().take_while(|byte| is_word_byte(**byte)).count();
                }
            }
        }
    }

    /// End of the number that begins at `at`; `None` if it is a name.
    fn number_end(&self, at: usize, behind_dot: bool) -> Option<usize> {
        let digits = |from: usize| {
            let rest = self.sql.get(from..).unwrap_or_default();
            from + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
        };
        let mut end = digits(at);
        if self.byte(end) == b'.' && !behind_dot {
            end = digits(end + 1);
        }
        if end >= self.sql.len() || !is_word_byte(self.byte(end)) {
            return Some(end);
        }
        if behind_dot {
            return None;
        }
        let (kind, length) = self.lexer_at(at).number();
        (kind == TokenKind::Literal).then_some(at + length)
    }

    /// Reads a value from `at` to `end`, with the values that follow it in a list.
    fn value(&mut self, at: usize, mut end: usize) {
        if self.row_depth.is_none() && self.begins_row_of_in(at) {
            self.row_depth = Some(1);
        }
        let mut more = 0;
        loop {
            end = self.behind_cast(end);
            let Some(next) = self.next_of_list(end) else { break };
            end = next;
            more += 1;
        }
        // `.5` is a value with its dot; the dot in `.'x'` is not part of a value. `n'x'` is one
        // value; `n?` is a name and a value.
        let before = self.before(at);
        let is_fraction = before == b'.' && self.byte(at).is_ascii_digit();
        let is_prefixed = is_word_byte(before) && matches!(self.byte(at), b'\'' | b'"');
        self.flush(at);
        let mark = if is_fraction { 8 } else { 0 } + if is_prefixed { 16 } else { 0 };
        self.hash = absorb(self.hash, VALUES[more.min(2)] + mark);
        (self.at, self.from, self.behind) = (end, end, b'?');
    }

    /// End of the next value of a list, if a comma and another value follow `end`.
    fn next_of_list(&mut self, end: usize) -> Option<usize> {
        let comma = self.skip_blank(end);
        if self.byte(comma) != b',' {
            return None;
        }
        let mut at = self.skip_blank(comma + 1);
        if matches!(self.byte(at), b'-' | b'+') && self.byte(at + 1).is_ascii_digit() {
            at += 1;
        }
        let byte = self.byte(at);
        match table(self.lexer.dialect)[usize::from(byte)] {
            DIGIT => self.number_end(at, false),
            STRING_QUOTE => Some(self.quoted_end(at, self.lexer.dialect.backslash_escapes())),
            DOLLAR => Some(at + self.lexer_at(at).dollar().1),
            QUESTION if self.byte(at + 1) != b'+' => Some(at + 1),
            _ if matches!(byte, b'n' | b'N' | b't' | b'T' | b'f' | b'F') => self.constant_end(at),
            _ => None,
        }
    }

    /// End of `NULL`, `TRUE` or `FALSE`, if it is a whole element of a list.
    fn constant_end(&self, at: usize) -> Option<usize> {
        let rest = self.sql.get(at..)?;
        let known = [&b"null"[..], b"true", b"false"];
        let found =
            known.iter().find(|word| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))?;
        let end = at + found.len();
        matches!(self.byte(self.skip_blank(end)), b',' | b')').then_some(end)
    }

    /// Skips `::type`, if nothing else belongs to the type.
    fn behind_cast(&self, end: usize) -> usize {
        if self.lexer.dialect.is_mysql() || self.byte(end) != b':' || self.byte(end + 1) != b':' {
            return end;
        }
        let rest = self.sql.get(end + 2..).unwrap_or_default();
        let word = rest.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(rest.len());
        let behind = end + 2 + word;
        let is_word = rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        if is_word && matches!(self.byte(self.skip_blank(behind)), b',' | b')') { behind } else { end }
    }

    fn skip_blank(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| *byte > b' ').unwrap_or(rest.len())
    }

    /// Whether the value at `at` is the first in the first row of `IN ((…), …)`.
    fn begins_row_of_in(&self, at: usize) -> bool {
        let Some((open, b'(')) = self.before_blank(at) else { return false };
        let Some((outer, b'(')) = self.before_blank(open) else { return false };
        let Some((end, b'n' | b'N')) = self.before_blank(outer) else { return false };
        end > self.from
            && matches!(self.byte(end - 1), b'i' | b'I')
            && self.before(end - 1) <= b' '
            && !self.is_part_of_name(end - 1)
    }

    /// Whether the word at `at` ends `a.b` or `::type`.
    fn is_part_of_name(&self, at: usize) -> bool {
        matches!(self.before_blank(at).map_or(self.behind, |(_, byte)| byte), b'.' | b':')
    }

    fn is_values(&self, at: usize) -> bool {
        self.sql.get(at..at + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"values"))
    }

    /// Handles a `v`: if `VALUES (` begins here, a row begins.
    fn perhaps_values(&mut self, at: usize) {
        self.at += 1;
        if !self.is_values(at) || self.row_depth.is_some() || is_word_byte(self.before(at)) || self.before(at) == b'@' {
            return;
        }
        let open = self.skip_blank(at + 6);
        if self.byte(open) == b'(' && !self.is_part_of_name(at) {
            self.row_depth = Some(1);
            self.at = open + 1;
        }
    }

    /// Handles a parenthesis within the first row. At the end of that row the rows behind it are
    /// skipped, as in the digest.
    fn parenthesis(&mut self, at: usize, byte: u8) {
        self.at += 1;
        let Some(depth) = self.row_depth else { return };
        if byte == b'(' {
            self.row_depth = Some(depth + 1);
        } else if depth > 1 {
            self.row_depth = Some(depth - 1);
        } else {
            self.row_depth = None;
            let mut end = at + 1;
            while let Some(next) = self.row_end(end) {
                end = next;
            }
            self.flush(at + 1);
            (self.at, self.from, self.behind) = (end, end, b')');
        }
    }

    /// End of the next row, if a comma and another row follow `end`.
    fn row_end(&mut self, end: usize) -> Option<usize> {
        let comma = self.skip_blank(end);
        let open = self.skip_blank(comma + 1);
        if self.byte(comma) != b',' || self.byte(open) != b'(' {
            return None;
        }
        let stops = table(self.lexer.dialect);
        let (mut at, mut depth) = (open + 1, 1_usize);
        let of_interest = PARENTHESIS | STRING_QUOTE | NAME_QUOTE | COMMENT | DOLLAR | V;
        while let Some(found) = next_stop(self.sql, at, stops, of_interest) {
            at = match stops[usize::from(self.byte(found))] {
                STRING_QUOTE => self.string_end(found),
                NAME_QUOTE => self.quoted_end(found, false),
                DOLLAR if !is_word_byte(self.byte(found - 1)) => found + self.lexer_at(found).dollar().1,
                // Rows within rows: only the digest can tell.
                V if self.is_values(found) => return None,
                PARENTHESIS if self.byte(found) == b'(' && self.byte(self.skip_blank(found + 1)) == b'(' => {
                    return None;
                }
                PARENTHESIS if self.byte(found) == b'(' => {
                    depth += 1;
                    found + 1
                }
                PARENTHESIS => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(found + 1);
                    }
                    found + 1
                }
                COMMENT => self.comment_end(found)?.unwrap_or(found + 1),
                _ => found + 1,
            };
        }
        Some(self.sql.len())
    }
}

/// Place of the next byte of one of the kinds in `of_interest`. Looks at eight bytes at a time,
/// since most bytes are plain text.
fn next_stop(sql: &[u8], from: usize, stops: &[u8; 256], of_interest: u8) -> Option<usize> {
    let rest = sql.get(from..)?;
    let mut passed = 0;
    for eight in rest.chunks_exact(8) {
        let any = eight.iter().fold(0, |any, byte| any | stops[usize::from(*byte)]);
        if any & of_interest != 0 {
            break;
        }
        passed += 8;
    }
    let found = rest.get(passed..)?.iter().position(|byte| stops[usize::from(*byte)] & of_interest != 0)?;
    Some(from + passed + found)
}

#[cfg(test)]
mod tests;
