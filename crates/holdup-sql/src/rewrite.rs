//! What a statement of MySQL touches and does, as DBAs' tools show it: its verbs and tables (`SELECT UNION a b`). It looks
//! at words and parentheses and knows no further grammar. It returns names only, no value.

use crate::{Dialect, Lexer, TokenKind};

mod distill;
mod tables;

pub use distill::distill;
pub use tables::tables;

/// A token other than a comment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: TokenKind,
    from: usize,
    to: usize,
    /// Number of parentheses open before it, not counting one that it opens or closes.
    depth: usize,
}

/// A statement and its tokens.
struct Pieces<'a> {
    sql: &'a str,
    all: Vec<Piece>,
}

impl<'a> Pieces<'a> {
    fn new(sql: &'a str) -> Self {
        let mut lexer = Lexer::new(sql.as_bytes(), Dialect::MySql);
        let (mut all, mut depth) = (Vec::new(), 0_usize);
        while let Some(token) = lexer.next() {
            let to = lexer.position();
            match token.kind {
                TokenKind::Comment => continue,
                TokenKind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            all.push(Piece { kind: token.kind, from: to - token.text.len(), to, depth });
            depth += usize::from(token.kind == TokenKind::Open);
        }
        Self { sql, all }
    }

    fn kind(&self, at: usize) -> Option<TokenKind> {
        self.all.get(at).map(|piece| piece.kind)
    }

    fn text(&self, at: usize) -> &'a str {
        self.all.get(at).and_then(|piece| self.sql.get(piece.from..piece.to)).unwrap_or_default()
    }

    /// The text from one piece to the end of another.
    fn between(&self, first: usize, last: usize) -> &'a str {
        let range = self.all.get(first).zip(self.all.get(last));
        range.and_then(|(first, last)| self.sql.get(first.from..last.to)).unwrap_or_default()
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        self.kind(at) == Some(TokenKind::Word) && words.iter().any(|word| self.text(at).eq_ignore_ascii_case(word))
    }

    /// Whether one of `words` begins the statement as a keyword, not as a call of a function.
    fn begins(&self, words: &[&str]) -> bool {
        self.is(0, words)
    }

    /// The place behind all of `words` that stand at `at`.
    fn skip(&self, mut at: usize, words: &[&str]) -> usize {
        while self.is(at, words) {
            at += 1;
        }
        at
    }

    /// The place behind the name `a`, `` `a` `` or `a.b` at `at`.
    fn name(&self, at: usize) -> Option<usize> {
        let is_name = |at| matches!(self.kind(at), Some(TokenKind::Word | TokenKind::QuotedName));
        if !is_name(at) {
            return None;
        }
        Some(if self.kind(at + 1) == Some(TokenKind::Dot) && is_name(at + 2) { at + 3 } else { at + 1 })
    }

    /// The parenthesis that closes the one at `open`.
    fn close(&self, open: usize) -> Option<usize> {
        let depth = self.all.get(open)?.depth;
        (open + 1..self.all.len()).find(|at| {
            self.kind(*at) == Some(TokenKind::Close) && self.all.get(*at).is_some_and(|piece| piece.depth == depth)
        })
    }
}

/// Words between a verb and its table.
const MODIFIERS: &[&str] = &["low_priority", "high_priority", "delayed", "ignore", "quick"];

#[cfg(test)]
mod tests;
