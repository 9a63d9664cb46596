//! Statement -> digest text -> digest. One pass over the tokens. Collapsing removes pieces from the
//! end of the output, so the work is linear, and a bulk insert of a million rows needs the memory
//! of two.
//!
//! The digest text is the same for a statement, for that digest text itself, and for the text that
//! MariaDB or MySQL make of the statement (`DIGEST_TEXT`). So a session's statement and the
//! server's counters of it share one digest:
//! - a literal, `NULL`, `TRUE`, `FALSE` or placeholder, with its sign, is `?`; several with commas
//!   between them are `?+`
//! - the list behind `IN` and each row of `VALUES` is `(?+)`, also with one value; of several rows
//!   only the first stays
//! - comments are dropped (code in `/*! … */` stays), and so are quotes around plain names and
//!   semicolons at the end
//! - names of session variables are `@?`; `<>` is `!=`; words that a server takes for one
//!   (`SUBSTR`, `MID`) are replaced by one of them
//! - white space follows from the tokens: `a=1` is `a = ?`
//!
//! The same holds for PostgreSQL and the text that `pg_stat_statements` keeps. There the type of a
//! cast value (`$1::uuid`) is dropped too, an `ARRAY` of only values is one value, and names with
//! capital letters keep their quotes.

use crate::words::{Meaning, synonym};
use crate::{Dialect, Lexer, TokenKind};

mod cast;

use cast::Cast;

/// The statement with every value replaced by `?`. It never contains a byte of a literal or a
/// comment; names and keywords stay as written. Bytes in a name that are not UTF-8 are replaced.
pub fn digest_text(sql: impl AsRef<[u8]>, dialect: Dialect) -> String {
    let mut writer = Writer { dialect, ..Writer::default() };
    for token in Lexer::new(sql.as_ref(), dialect) {
        writer.take(token.kind, token.text);
    }
    writer.finish()
}

/// Identity of the statement: 16 hex digits that depend only on its digest text, ignoring letter
/// case.
pub fn digest(sql: impl AsRef<[u8]>, dialect: Dialect) -> String {
    digest_of_text(&digest_text(sql, dialect))
}

/// Identity of an existing digest text. The hash is FNV-1a with 64 bits (offset basis and prime of
/// draft-eastlake-fnv) over the ASCII-lower-cased bytes, closed with the 64-bit finaliser of
/// MurmurHash3. It is part of the recording format and will not change.
pub fn digest_of_text(digest_text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in digest_text.bytes() {
        hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    format!("{:016x}", hash ^ hash >> 33)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Word(Meaning),
    Value,
    Open,
    Close,
    Comma,
    Dot,
    Semicolon,
    Sign,
    Operator,
    /// `::`
    Cast,
    /// `[`
    OpenIndex,
    /// `]`
    CloseIndex,
}

impl Piece {
    /// Whether an operator may follow the piece, so that a sign behind it is a subtraction.
    fn ends_operand(self) -> bool {
        matches!(self, Self::Word(Meaning::Name) | Self::Value | Self::Close | Self::CloseIndex)
    }
}

#[derive(Default)]
struct Writer {
    dialect: Dialect,
    /// The type behind a value, while it is being left out.
    cast: Option<Cast>,
    text: String,
    /// The pieces written, each with the length of the text before it.
    pieces: Vec<(Piece, usize)>,
    /// Indexes in `pieces` of the open parentheses.
    open: Vec<usize>,
    /// Number of pieces up to the end of a row that further rows may follow.
    row_end: Option<usize>,
}

impl Writer {
    fn take(&mut self, kind: TokenKind, text: &[u8]) {
        if let Some(cast) = &mut self.cast
            && kind != TokenKind::Comment
            && !cast.takes(kind, text)
        {
            self.cast = None;
        }
        if self.cast.is_some() {
            return;
        }
        match kind {
            TokenKind::Comment => {}
            TokenKind::Literal | TokenKind::Parameter => self.value(false),
            TokenKind::ParameterList => self.value(true),
            TokenKind::Word => match self.dialect.meaning(text) {
                _ if self.is(0, Piece::Dot) => self.push(Piece::Word(Meaning::Name), &lossy(text)),
                meaning @ (Meaning::Name | Meaning::BeforeOperand) => {
                    // A server's own text may have any of several words that it takes for one (`SUBSTR`, `MID`).
                    let text = if self.dialect.is_mysql() { synonym(text) } else { text };
                    self.push(Piece::Word(meaning), &lossy(text));
                }
                Meaning::Constant if !self.is(0, Piece::Word(Meaning::Test)) => self.value(false),
                meaning => self.push(Piece::Word(meaning), &lossy(text)),
            },
            TokenKind::Variable => self.push(Piece::Word(Meaning::Name), "@?"),
            TokenKind::QuotedName => {
                let name = bare(text, self.is(0, Piece::Dot), self.dialect);
                self.push(Piece::Word(Meaning::Name), &lossy(name));
            }
            TokenKind::Open => {
                self.open.push(self.pieces.len());
                self.push(Piece::Open, "(");
            }
            TokenKind::Close => self.close(),
            TokenKind::Comma => self.push(Piece::Comma, ","),
            TokenKind::Dot => self.push(Piece::Dot, "."),
            TokenKind::Semicolon => self.push(Piece::Semicolon, ";"),
            TokenKind::Operator => self.operator(text),
        }
    }

    fn operator(&mut self, text: &[u8]) {
        match text {
            b"<>" => self.push(Piece::Operator, "!="),
            b"-" | b"+" => self.push(Piece::Sign, &lossy(text)),
            // The type in `'…'::type` says nothing about the statement: drivers add it to the values they fill in.
            b"::" if !self.dialect.is_mysql() && self.is(0, Piece::Value) => self.cast = Some(Cast::default()),
            b"::" => self.push(Piece::Cast, "::"),
            b"[" => self.push(Piece::OpenIndex, "["),
            b"]" if self.is_array_of_values() => {
                self.drop_last(3);
                self.value(false);
            }
            b"]" => self.push(Piece::CloseIndex, "]"),
            // Doubled so that a driver does not take it for a placeholder; the server receives one.
            [b'?', b'?', ..] => self.push(Piece::Operator, &lossy(text.get(1..).unwrap_or_default())),
            _ => self.push(Piece::Operator, &lossy(text)),
        }
    }

    /// Whether the output ends in `ARRAY[?` or `ARRAY[?+`.
    fn is_array_of_values(&self) -> bool {
        let at = self.pieces.len().wrapping_sub(3);
        self.is(0, Piece::Value)
            && self.is(1, Piece::OpenIndex)
            && self.is(2, Piece::Word(Meaning::Name))
            && self
                .pieces
                .get(at..)
                .and_then(|pieces| self.text.get(pieces.first()?.1..pieces.get(1)?.1))
                .is_some_and(|word| word.trim().eq_ignore_ascii_case("array"))
    }

    /// The piece that is `back` places before the last.
    fn piece(&self, back: usize) -> Option<Piece> {
        self.pieces.len().checked_sub(back + 1).and_then(|index| self.pieces.get(index)).map(|(piece, _)| *piece)
    }

    fn is(&self, back: usize, wanted: Piece) -> bool {
        self.piece(back) == Some(wanted)
    }

    fn push(&mut self, piece: Piece, text: &str) {
        let start = self.text.len();
        if let Some(before) = self.piece(0)
            && space_between(before, piece)
            // A server separates the sign of a variable from its name.
            && !self.text.ends_with("@@")
        {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.pieces.push((piece, start));
    }

    /// Removes all but the first `keep` pieces.
    fn cut(&mut self, keep: usize) {
        if let Some((_, length)) = self.pieces.get(keep) {
            self.text.truncate(*length);
            self.pieces.truncate(keep);
        }
    }

    fn drop_last(&mut self, count: usize) {
        self.cut(self.pieces.len().saturating_sub(count));
    }

    fn value(&mut self, mut many: bool) {
        while self.is(0, Piece::Sign) && !self.piece(1).is_some_and(Piece::ends_operand) {
            self.drop_last(1);
        }
        // Adjacent strings are one string.
        if self.is(0, Piece::Value) {
            many |= self.text.ends_with('+');
            self.drop_last(1);
        } else if self.is(0, Piece::Comma)
            && self.is(1, Piece::Value)
            // In `a - 1, 2` the first value is not an element of the list.
            && !matches!(self.piece(2), Some(Piece::Sign | Piece::Operator))
        {
            many = true;
            self.drop_last(2);
        }
        self.push(Piece::Value, if many { "?+" } else { "?" });
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return self.push(Piece::Close, ")") };
        let is_row = self.opens_row(open);
        let one_value = self.pieces.len() == open + 2 && self.is(0, Piece::Value);
        if one_value && (is_row || self.before(open) == Some(Piece::Word(Meaning::In))) {
            self.drop_last(1);
            self.push(Piece::Value, "?+");
        }
        self.push(Piece::Close, ")");
        if !is_row {
            return;
        }
        match self.row_end {
            Some(end) if end + 1 == open => self.cut(end),
            _ => self.row_end = Some(self.pieces.len()),
        }
    }

    /// The piece before the one at `index`.
    fn before(&self, index: usize) -> Option<Piece> {
        index.checked_sub(1).and_then(|index| self.pieces.get(index)).map(|(piece, _)| *piece)
    }

    /// Whether the parenthesis at `open` begins a row of values: the first behind `VALUES` or in
    /// `IN (`, or a further one.
    fn opens_row(&self, open: usize) -> bool {
        match self.before(open) {
            Some(Piece::Word(Meaning::Values)) => true,
            Some(Piece::Open) => self.before(open - 1) == Some(Piece::Word(Meaning::In)),
            Some(Piece::Comma) => self.row_end == Some(open - 1),
            _ => false,
        }
    }

    fn finish(mut self) -> String {
        // A statement that the server cut in the middle of a further row keeps its digest.
        if let Some(end) = self.row_end
            && self.open.contains(&(end + 1))
        {
            self.cut(end);
        }
        while self.is(0, Piece::Semicolon) {
            self.drop_last(1);
        }
        self.text
    }
}

/// Whether a space stands between two pieces.
fn space_between(before: Piece, piece: Piece) -> bool {
    let closes =
        matches!(piece, Piece::Close | Piece::Comma | Piece::Dot | Piece::Semicolon | Piece::Cast | Piece::CloseIndex);
    let is_call = before == Piece::Word(Meaning::Name) && piece == Piece::Open;
    let is_index = before.ends_operand() && piece == Piece::OpenIndex;
    !closes && !is_call && !is_index && !matches!(before, Piece::Open | Piece::Dot | Piece::Cast | Piece::OpenIndex)
}

fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A quoted name without its quotes, if it reads as the same name without them.
fn bare(quoted: &[u8], after_dot: bool, dialect: Dialect) -> &[u8] {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let plain = inner.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80)
        && inner.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..))
        && (after_dot || dialect.meaning(inner) == Meaning::Name)
        && (dialect.is_mysql() || !inner.iter().any(u8::is_ascii_uppercase));
    if plain { inner } else { quoted }
}

#[cfg(test)]
mod tests;
