//! Bytes -> tokens, in one pass and without copying. It knows where literals, names and comments
//! end, and no grammar. Anything unclosed extends to the end: it is better to hide too much than to
//! show one byte of a value.

use crate::Dialect;

mod key;
mod postgresql;

pub use key::{Key, key};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A bare name or keyword; also a system variable such as `@@global`.
    Word,
    /// A session variable such as `@a`; also the host part of an account.
    Variable,
    /// A quoted name, with its quotes.
    QuotedName,
    /// A string, a number, a hex or bit literal, `\N`.
    Literal,
    /// A placeholder: `?`, `$1`; also `%s`, `%(name)s` and `:name` of drivers that fill in values
    /// themselves.
    Parameter,
    /// A list of values that was already collapsed: holdup's `?+`, or `...` in a server's digest
    /// text.
    ParameterList,
    /// A comment, with its delimiters.
    Comment,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// Anything else: `=`, `<=`, `->>`, …
    Operator,
}

/// A token and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// Its bytes.
    pub text: &'a [u8],
}

/// Iterator over the tokens of a statement (or of several).
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    dialect: Dialect,
    last: Option<TokenKind>,
    /// Whether an operator may follow the token read last.
    after_operand: bool,
    in_executable_comment: bool,
}

/// Operators of more than one byte, longest first.
const OPERATORS: &[&[u8]] =
    &[b"<=>", b"->>", b"<=", b">=", b"<>", b"!=", b":=", b"||", b"&&", b"<<", b">>", b"->", b"::"];

impl<'a> Lexer<'a> {
    /// Creates a lexer at the start of `sql`.
    pub fn new(sql: &'a [u8], dialect: Dialect) -> Self {
        Self { sql, at: 0, dialect, last: None, after_operand: false, in_executable_comment: false }
    }

    /// Number of bytes before the next one to be read: the end of the token read last.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, ahead: usize) -> u8 {
        // The byte at the place; 0 at the end, because 0 neither begins nor continues a token.
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.sql.get(self.at..).unwrap_or_default()
    }

    /// Skips white space and the delimiters around code in executable comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            if self.in_executable_comment && rest.starts_with(b"*/") {
                self.in_executable_comment = false;
                self.at += 2;
            } else if self.dialect.is_mysql() && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!")) {
                self.in_executable_comment = true;
                self.at += if rest.starts_with(b"/*!") { 3 } else { 4 };
                self.at += self.rest().iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
            } else if rest.first().is_some_and(|byte| *byte <= b' ') {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// Length of the quoted text that begins at `start`, whose first byte is the quote.
    fn quoted(&self, start: usize, escapes: bool) -> usize {
        let bytes = self.rest();
        let quote = bytes.get(start).copied().unwrap_or(0);
        let mut at = start + 1;
        while let Some(byte) = bytes.get(at) {
            if *byte == b'\\' && escapes {
                at += 2;
            } else if *byte != quote {
                at += 1;
            } else if bytes.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return at + 1;
            }
        }
        bytes.len()
    }

    fn is_string_quote(&self, byte: u8) -> bool {
        byte == b'\'' || byte == b'"' && self.dialect.double_quote_is_string()
    }

    fn comment(&self) -> Option<usize> {
        let rest = self.rest();
        let ends_line = |byte: &u8| *byte == b'\n' || *byte == b'\r' && !self.dialect.is_mysql();
        let line = || rest.iter().position(ends_line).unwrap_or(rest.len());
        match (self.byte(0), self.byte(1)) {
            (b'/', b'*') if !self.dialect.is_mysql() => Some(nested_comment(rest)),
            (b'/', b'*') => {
                Some(rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |found| found + 4))
            }
            (b'#', _) if self.dialect.is_mysql() => Some(line()),
            (b'-', b'-') if self.dialect.dashes_start_comment(self.byte(2)) => Some(line()),
            _ => None,
        }
    }

    fn word_length(&self, start: usize) -> usize {
        self.rest().iter().skip(start).take_while(|byte| is_word_byte(**byte)).count()
    }

    /// A number, or a name that begins with digits.
    fn number(&self) -> (TokenKind, usize) {
        let rest = self.rest();
        let digits = |from: usize| rest.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
        let word = self.word_length(0);
        let head = rest.get(..word).unwrap_or_default();
        if is_based(head, b'x', u8::is_ascii_hexdigit) || is_based(head, b'b', |byte| matches!(byte, b'0' | b'1')) {
            return (TokenKind::Literal, word);
        }
        let mut length = digits(0);
        if rest.get(length) == Some(&b'.') {
            length += 1 + digits(length + 1);
        }
        if rest.get(length).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
            let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits(length + 1 + sign);
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        // `2023_orders` is a name, `1e5` is not. `12abc` is hidden whole in a language without such
        // names.
        let tail = self.word_length(length);
        let is_name = tail > 0 && length < word && self.dialect.is_mysql();
        if is_name { (TokenKind::Word, word) } else { (TokenKind::Literal, length + tail) }
    }

    fn variable(&self) -> (TokenKind, usize) {
        let next = self.byte(1);
        if next == b'@' {
            return (TokenKind::Word, 2 + self.word_length(2));
        }
        if matches!(next, b'`' | b'\'' | b'"') {
            return (TokenKind::Variable, self.quoted(1, next != b'`' && self.dialect.backslash_escapes()));
        }
        // A server's digest text writes it as `@ ?`.
        let blank = usize::from(next == b' ');
        if self.byte(1 + blank) == b'?' {
            return (TokenKind::Variable, 2 + blank);
        }
        (TokenKind::Variable, 1 + self.word_length(1))
    }

    /// Whether the digits behind a dot belong to a name, as in `db.1st`, rather than to a number,
    /// as in `SELECT.1`.
    fn name_after_dot(&self) -> bool {
        let behind = Self { at: self.at + 1, ..self.clone() };
        self.after_name() && behind.number().0 == TokenKind::Word
    }

    fn token(&self) -> (TokenKind, usize) {
        let (byte, next) = (self.byte(0), self.byte(1));
        if let Some(length) = self.comment() {
            return (TokenKind::Comment, length);
        }
        if self.is_string_quote(byte) {
            return (TokenKind::Literal, self.quoted(0, self.dialect.backslash_escapes()));
        }
        if !self.after_operand
            && let Some(length) = self.driver_placeholder(self.rest())
        {
            return (TokenKind::Parameter, length);
        }
        if self.dialect == Dialect::PostgreSql
            && let Some(found) = self.postgresql()
        {
            return found;
        }
        match byte {
            b'"' => (TokenKind::QuotedName, self.quoted(0, false)),
            b'`' if self.dialect.is_mysql() => (TokenKind::QuotedName, self.quoted(0, false)),
            b'(' => (TokenKind::Open, 1),
            b')' => (TokenKind::Close, 1),
            b',' => (TokenKind::Comma, 1),
            b';' => (TokenKind::Semicolon, 1),
            b'?' if next == b'+' && matches!(self.byte(2), 0..=b' ' | b')' | b',' | b';') => {
                (TokenKind::ParameterList, 2)
            }
            b'?' => (TokenKind::Parameter, 1),
            b'.' if self.rest().starts_with(b"...") => (TokenKind::ParameterList, 3),
            b'.' if next.is_ascii_digit() && !self.name_after_dot() => self.number(),
            b'.' => (TokenKind::Dot, 1),
            b'@' if self.dialect.is_mysql() => self.variable(),
            b'\\' if next == b'N' && self.dialect.backslash_escapes() => (TokenKind::Literal, 2),
            b'0'..=b'9' => self.number(),
            _ if is_word_byte(byte) => {
                let length = self.word_length(0);
                // x'4d', b'01', n'…', _utf8mb4'…'
                let prefix = length == 1 && b"xXbBnN".contains(&byte) || byte == b'_';
                if prefix && self.is_string_quote(self.byte(length)) {
                    return (TokenKind::Literal, self.quoted(length, self.dialect.backslash_escapes()));
                }
                (TokenKind::Word, length)
            }
            _ => {
                let known = OPERATORS.iter().find(|operator| self.rest().starts_with(operator));
                (TokenKind::Operator, known.map_or(1, |operator| operator.len()))
            }
        }
    }

    /// Length of the driver's placeholder at the start of `text`: `%s`, `%(name)s`, `:name`.
    /// Servers never see one, but the app's own account of a statement does.
    fn driver_placeholder(&self, text: &[u8]) -> Option<usize> {
        let word = |from: usize| text.iter().skip(from).take_while(|byte| is_word_byte(**byte)).count();
        match text.get(..2)? {
            b"%s" => (word(1) == 1).then_some(2),
            b"%(" => {
                let name = word(2);
                (name > 0 && text.get(2 + name..)?.starts_with(b")s") && word(3 + name) == 1).then_some(name + 4)
            }
            [b':', first] if first.is_ascii_alphabetic() || *first == b'_' => Some(1 + word(1)),
            _ => None,
        }
    }

    fn after_name(&self) -> bool {
        matches!(self.last, Some(TokenKind::Word | TokenKind::QuotedName))
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        if self.at >= self.sql.len() {
            return None;
        }
        let (kind, length) = self.token();
        let end = (self.at + length.max(1)).min(self.sql.len());
        let text = self.sql.get(self.at..end).unwrap_or_default();
        self.at = end;
        if kind != TokenKind::Comment {
            self.after_operand = match kind {
                TokenKind::Word => self.last == Some(TokenKind::Dot) || self.dialect.ends_operand(text),
                TokenKind::Operator => text == b"]",
                TokenKind::Open | TokenKind::Comma | TokenKind::Dot | TokenKind::Semicolon => false,
                _ => true,
            };
            self.last = Some(kind);
        }
        Some(Token { kind, text })
    }
}

/// Length of the comment at the start of `text`, in which others may nest.
fn nested_comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1_usize);
    while let Some(pair) = text.get(at..at + 2) {
        match pair {
            b"*/" => (depth, at) = (depth - 1, at + 2),
            b"/*" => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Whether `word` consists of `0`, then `letter`, then one or more digits of that base.
fn is_based(word: &[u8], letter: u8, digit: impl Fn(&u8) -> bool) -> bool {
    matches!(word, [b'0', base, digits @ ..] if base.eq_ignore_ascii_case(&letter) && !digits.is_empty() && digits.iter().all(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(sql: &str) -> Vec<(TokenKind, String)> {
        Lexer::new(sql.as_bytes(), Dialect::MySql)
            .map(|token| (token.kind, String::from_utf8_lossy(token.text).into_owned()))
            .collect()
    }

    fn kinds(sql: &str) -> Vec<TokenKind> {
        tokens(sql).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn literals_end_where_they_end() {
        use TokenKind::{Literal, Word};
        for sql in [
            "'it''s' a",
            r"'a\'b' a",
            r#""say \"x\"" a"#,
            r#"'"' a"#,
            r"'\\' a",
            "x'4D' a",
            "0xCAFE a",
            "0b01 a",
            "1.5e-3 a",
            ".5 a",
            "1. a",
            "1e5 a",
            "b'01' a",
            "N'x' a",
            "_utf8mb4'x' a",
            r"\N a",
        ] {
            assert_eq!(kinds(sql), [Literal, Word], "{sql}");
        }
        assert_eq!(tokens("'open (1, 2").len(), 1);
        assert_eq!(tokens("'open \\").len(), 1);
        assert_eq!(kinds("1-1"), [Literal, TokenKind::Operator, Literal]);
    }

    #[test]
    fn names_may_hold_digits() {
        use TokenKind::{Dot, QuotedName, Word};
        for sql in ["foo_2_3", "2023_orders", "t1", "1e", "0xZZ", "@@global"] {
            assert_eq!(kinds(sql), [Word], "{sql}");
        }
        assert_eq!(kinds("@a1, @`b c`"), [TokenKind::Variable, TokenKind::Comma, TokenKind::Variable]);
        assert_eq!(kinds("select.5"), [Word, TokenKind::Literal]);
        assert_eq!(kinds("db.1st"), [Word, Dot, Word]);
        assert_eq!(kinds("`a``b`.`c"), [QuotedName, Dot, QuotedName]);
    }

    #[test]
    fn comments() {
        use TokenKind::{Comment, Literal, Operator, Word};
        assert_eq!(kinds("a /* 'x */ b # '\n c -- '\n d"), [Word, Comment, Word, Comment, Word, Comment, Word]);
        assert_eq!(kinds("1--1"), [Literal, Operator, Operator, Literal]);
        assert_eq!(kinds("1 --\x7fsecret"), [Literal, Comment]);
        assert_eq!(tokens("a /* never closed 'x'").len(), 2);
        assert_eq!(kinds("a /*!50100 b */ c"), [Word, Word, Word]);
        assert_eq!(kinds("/*/ a */ b"), [Comment, Word]);
        assert_eq!(kinds("2 */*!1*/ 3"), [Literal, Operator, Literal]);
    }

    #[test]
    fn every_byte_string_is_read_to_its_end() {
        let mut state = 7_u64;
        for _ in 0..3_000 {
            let bytes: Vec<u8> = (0..20)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b"'\"`\\/*!-# \n(),.;?+@0xe1Nb\xff\0"[(state >> 33) as usize % 27]
                })
                .collect();
            assert!(Lexer::new(&bytes, Dialect::MySql).count() <= bytes.len());
        }
    }
}
