//! Tokens that only PostgreSQL has: `E'…'`, `U&'…'`, `$tag$ … $tag$`, `$1`, and operators, which
//! are runs of certain bytes (PostgreSQL manual, chapters "Lexical Structure" and "JSON Functions
//! and Operators").
//!
//! It ignores `standard_conforming_strings = off`: a `'…'` without `E` ends at the first single
//! quote.

use super::{Lexer, TokenKind, is_word_byte};

/// Bytes that may form an operator.
const OPERATOR_BYTES: &[u8] = b"+-*/<>=~!@#%^&|`?";
/// An operator of several bytes may end in a sign only if it contains one of these.
const LETS_END_IN_SIGN: &[u8] = b"~!@#%^&|`?";
/// Operators that begin with `?`, longest first; with doubled `?`, as JDBC writes them.
const QUESTION_OPERATORS: &[&[u8]] = &[b"??|", b"??&", b"?||", b"?-|", b"??", b"?|", b"?&", b"?#", b"?-"];

impl Lexer<'_> {
    /// The token at the place, if only PostgreSQL has it.
    pub(super) fn postgresql(&self) -> Option<(TokenKind, usize)> {
        let (byte, next) = (self.byte(0), self.byte(1));
        match byte {
            b'e' | b'E' if next == b'\'' => Some((TokenKind::Literal, self.escaped_string())),
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if next == b'\'' => {
                Some((TokenKind::Literal, self.quoted(1, false)))
            }
            b'u' | b'U' if next == b'&' && self.byte(2) == b'\'' => Some((TokenKind::Literal, self.quoted(2, false))),
            b'u' | b'U' if next == b'&' && self.byte(2) == b'"' => Some((TokenKind::QuotedName, self.quoted(2, false))),
            b'$' => Some(self.dollar()),
            b'?' => Some(self.question()),
            b':' if next == b':' || next == b'=' => Some((TokenKind::Operator, 2)),
            _ if OPERATOR_BYTES.contains(&byte) => Some((TokenKind::Operator, self.operator())),
            _ => None,
        }
    }

    /// `E'…'`. Escapes also apply to the part that continues on a further line (`E'a'`, line feed,
    /// `'b'`).
    pub(super) fn escaped_string(&self) -> usize {
        let mut length = self.quoted(1, true);
        while let Some(blank) = self.continuation(length) {
            length = self.quoted(length + blank, true);
        }
        length
    }

    /// Number of bytes between the end of a string at `from` and the quote that continues it.
    fn continuation(&self, from: usize) -> Option<usize> {
        let bytes = self.rest().get(from..)?;
        let (mut at, mut line_feed) = (0, false);
        loop {
            match bytes.get(at)? {
                b'\n' | b'\r' => (line_feed, at) = (true, at + 1),
                byte if *byte <= b' ' => at += 1,
                b'-' if bytes.get(at + 1) == Some(&b'-') => {
                    at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
                }
                b'\'' if line_feed => return Some(at),
                _ => return None,
            }
        }
    }

    /// `$1`, `$$ … $$`, `$tag$ … $tag$`. A tag that is cut off is hidden like the text it would
    /// begin.
    pub(super) fn dollar(&self) -> (TokenKind, usize) {
        let rest = self.rest();
        let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            return (TokenKind::Parameter, 1 + digits);
        }
        let tag = rest.iter().skip(1).take_while(|byte| **byte != b'$' && is_word_byte(**byte)).count() + 2;
        let Some(mark) = rest.get(..tag).filter(|mark| mark.ends_with(b"$")) else {
            return (TokenKind::Literal, tag - 1);
        };
        let closed = rest.get(tag..).and_then(|body| find(body, mark));
        (TokenKind::Literal, closed.map_or(rest.len(), |at| tag + at + tag))
    }

    /// A `?` is an operator (`jsonb ? text`) if an operand precedes and another follows it.
    /// Otherwise it is a placeholder, of a driver or of a digest text, in which `date '…'` has
    /// become `date ?`.
    fn question(&self) -> (TokenKind, usize) {
        let rest = self.rest();
        if rest.starts_with(b"?+") && matches!(self.byte(2), 0..=b' ' | b')' | b']' | b',' | b';') {
            return (TokenKind::ParameterList, 2);
        }
        if !self.after_operand {
            return (TokenKind::Parameter, 1);
        }
        // `?--` is a `?` before a comment.
        let is_operator =
            |known: &&&[u8]| rest.starts_with(known) && !(known.ends_with(b"-") && self.byte(known.len()) == b'-');
        if let Some(known) = QUESTION_OPERATORS.iter().find(is_operator) {
            return (TokenKind::Operator, known.len());
        }
        let behind = rest.get(1..).unwrap_or_default().trim_ascii_start();
        let operand = match behind.first() {
            Some(b'\'' | b'"' | b'$' | b'(' | b'?' | b'0'..=b'9') => true,
            Some(b'%' | b':') => self.driver_placeholder(behind).is_some(),
            Some(byte) if is_word_byte(*byte) => {
                let end = behind.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(behind.len());
                self.dialect.ends_operand(behind.get(..end).unwrap_or_default())
            }
            _ => false,
        };
        (if operand { TokenKind::Operator } else { TokenKind::Parameter }, 1)
    }

    /// Length of the operator at the place: the longest possible one without a comment or a
    /// placeholder in it.
    fn operator(&self) -> usize {
        let rest = self.rest();
        let mut length = 1;
        while let Some(byte) = rest.get(length).filter(|byte| OPERATOR_BYTES.contains(byte)) {
            let from = rest.get(length..).unwrap_or_default();
            let is_question = *byte == b'?' && rest.get(..length) != Some(b"@");
            if is_question
                || from.starts_with(b"--")
                || from.starts_with(b"/*")
                || self.driver_placeholder(from).is_some()
            {
                break;
            }
            length += 1;
        }
        let special = rest.iter().take(length).any(|byte| LETS_END_IN_SIGN.contains(byte));
        while length > 1 && !special && matches!(rest.get(length - 1), Some(b'+' | b'-')) {
            length -= 1;
        }
        length
    }
}

fn find(body: &[u8], mark: &[u8]) -> Option<usize> {
    // Only a `$` can begin it: one look at each byte, whatever the tag.
    let mut from = 0;
    while let Some(at) = body.get(from..)?.iter().position(|byte| *byte == b'$') {
        if body.get(from + at..)?.starts_with(mark) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn kinds(sql: &str) -> Vec<TokenKind> {
        Lexer::new(sql.as_bytes(), Dialect::PostgreSql).map(|token| token.kind).collect()
    }

    fn texts(sql: &str) -> Vec<&str> {
        Lexer::new(sql.as_bytes(), Dialect::PostgreSql).map(|token| std::str::from_utf8(token.text).unwrap()).collect()
    }

    #[test]
    fn literals_end_where_they_end() {
        use TokenKind::{Literal, Word};
        for sql in [
            "'it''s' a",
            r"'back\' a",
            r"E'it\'s' a",
            "e'a'\n  'it\\'s' a",
            "e'a' -- on\n 'it\\'s' a",
            "e'a' -- on\r 'it\\'s' a",
            r"U&'\0061''' a",
            "B'01' a",
            "x'1F' a",
            "$$it's$$ a",
            "$body$ $$ 'x' $other$ $body$ a",
            "$é$ $é$ a",
            "1_000 a",
            "0x1F a",
            "0o17 a",
            "1.5e-3 a",
            ".5 a",
            "12abc a",
        ] {
            assert_eq!(kinds(sql), [Literal, Word], "{sql}");
        }
        for open in ["'open (1", "E'open \\", "$$ open 'a'", "$t$ open $$", "$ta", "U&'x"] {
            assert_eq!(kinds(open), [Literal], "{open}");
        }
        assert_eq!(kinds("$1$$x$$"), [TokenKind::Parameter, Literal]);
        assert_eq!(texts("a$$b \"x\"\"y\" U&\"d\""), ["a$$b", "\"x\"\"y\"", "U&\"d\""]);
    }

    #[test]
    fn comments_nest() {
        assert_eq!(texts("a /* b /* c */ 'd */ e"), ["a", "/* b /* c */ 'd */", "e"]);
        assert_eq!(texts("a --b\n#c"), ["a", "--b", "#", "c"]);
        assert_eq!(texts("a /* b /* c */ d"), ["a", "/* b /* c */ d"]);
        assert_eq!(texts("a+/*x*/b*--c"), ["a", "+", "/*x*/", "b", "*", "--c"]);
    }

    #[test]
    fn operators_are_as_long_as_they_get() {
        assert_eq!(
            texts("a->>'b'#>c@>d||-e=-1 <@!~~* f::int"),
            ["a", "->>", "'b'", "#>", "c", "@>", "d", "||-", "e", "=", "-", "1", "<@!~~*", "f", "::", "int"]
        );
        assert_eq!(texts("id=%s and x=? and y=%(n)s")[2], "%s");
    }

    #[test]
    fn a_question_mark_is_an_operator_only_between_operands() {
        use TokenKind::{Operator, Parameter};
        for (sql, kind) in [
            ("data ? 'k'", Operator),
            ("data ? ?", Operator),
            ("data ? $1", Operator),
            ("data ? key", Operator),
            ("data ?| array['a']", Operator),
            ("data ?? 'k'", Operator),
            ("date ? and", Parameter),
            ("date ?", Parameter),
            ("date ? - 1", Parameter),
            ("where ? = 1", Parameter),
        ] {
            assert_eq!(kinds(sql)[1], kind, "{sql}");
        }
        assert_eq!(kinds("a @? '$.b'")[1], Operator);
        assert_eq!(kinds("a=?")[1..], [Operator, Parameter]);
    }

    #[test]
    fn every_byte_string_is_read_to_its_end() {
        let mut state = 7_u64;
        for _ in 0..5_000 {
            let bytes: Vec<u8> = (0..20)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b"'\"$\\/*-E \n(),?u&+@t1:%s\xff"[(state >> 33) as usize % 24]
                })
                .collect();
            assert!(Lexer::new(&bytes, Dialect::PostgreSql).count() <= bytes.len());
        }
    }
}
