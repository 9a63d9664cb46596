//! Finds the end of the type that a value is cast to: `::text`, `::pg_catalog.int4`,
//! `::varchar(10)[]`, `::timestamp with time zone`. Does not judge whether the type exists.

use crate::TokenKind;

/// A type that is being skipped.
#[derive(Debug, Default)]
pub(super) struct Cast {
    state: State,
    /// Parentheses that are open within it.
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The type, or the part behind a dot.
    #[default]
    Name,
    /// Anything that may follow a name.
    AfterName,
    /// Behind `with` or `without`: `time zone`.
    Zone,
    /// Between brackets.
    Bounds,
    /// Only `[` can follow.
    End,
}

impl Cast {
    /// Whether the token belongs to the type.
    pub(super) fn takes(&mut self, kind: TokenKind, text: &[u8]) -> bool {
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
        if self.depth > 0 {
            match kind {
                TokenKind::Open => self.depth += 1,
                TokenKind::Close => self.depth -= 1,
                _ => {}
            }
            return true;
        }
        self.state = match (self.state, kind) {
            (State::Name, TokenKind::Word | TokenKind::QuotedName) => State::AfterName,
            (State::AfterName, TokenKind::Dot) => State::Name,
            (State::AfterName, TokenKind::Word) if is(&["precision", "varying"]) => State::AfterName,
            (State::AfterName, TokenKind::Word) if is(&["with", "without"]) => State::Zone,
            (State::AfterName, TokenKind::Open) => {
                self.depth = 1;
                State::AfterName
            }
            (State::Zone, TokenKind::Word) if is(&["time"]) => State::Zone,
            (State::Zone, TokenKind::Word) if is(&["zone"]) => State::End,
            (State::AfterName | State::End, TokenKind::Operator) if text == b"[" => State::Bounds,
            (State::Bounds, TokenKind::Literal | TokenKind::Parameter) => State::Bounds,
            (State::Bounds, TokenKind::Operator) if text == b"]" => State::End,
            // `'1'::text::int`
            (State::AfterName | State::End, TokenKind::Operator) if text == b"::" => State::Name,
            _ => return false,
        };
        true
    }
}
