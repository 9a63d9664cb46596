//! A foreign statement as pieces, and the text rewritten from them. Only text written here goes to
//! a server for planning: no comment and no byte between pieces is copied, so that the server reads
//! exactly the pieces that were checked.

use holdup_sql::{Dialect, Lexer, TokenKind};

/// Comments that MySQL and MariaDB execute or skip depending on their version, so that quotes in
/// them count or not: `/*!99999 ' */ ; … -- '`.
const READ_COMMENTS: &[&str] = &["/*!", "/*M!", "/*+"];

/// Largest number of parameters in a statement.
const PARAMETERS: usize = 100;

/// A token with its depth of parentheses; bare words are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: TokenKind,
    pub(crate) text: String,
    pub(crate) depth: usize,
    pub(crate) word: String,
    /// Whether it directly follows the previous piece: `count(` is a call, `count (` may not be.
    is_glued: bool,
}

impl Piece {
    /// A piece that holdup adds: a quoted name is glued to its dot.
    pub(crate) fn new(kind: TokenKind, text: &str) -> Self {
        let word = if kind == TokenKind::Word { text.to_ascii_lowercase() } else { String::new() };
        Self {
            kind,
            text: text.to_owned(),
            depth: 0,
            word,
            is_glued: matches!(kind, TokenKind::Dot | TokenKind::QuotedName),
        }
    }

    /// The name as the server's catalog has it: in lower case where the server folds it.
    pub(crate) fn name(&self, dialect: Dialect) -> Option<String> {
        match self.kind {
            TokenKind::Word if dialect == Dialect::PostgreSql => Some(self.word.clone()),
            TokenKind::Word => Some(self.text.clone()),
            TokenKind::QuotedName => {
                let quote = self.text.chars().next().filter(|quote| matches!(quote, '"' | '`'))?;
                let inner = self.text.strip_prefix(quote)?.strip_suffix(quote)?;
                Some(inner.replace(&format!("{quote}{quote}"), &quote.to_string()))
            }
            _ => None,
        }
    }
}

/// The pieces of one complete statement, and the largest `$n`. None if the server might see a
/// string or a word where our lexer does not.
pub(crate) fn read(sql: &str, dialect: Dialect) -> Option<(Vec<Piece>, usize)> {
    let is_mysql = dialect != Dialect::PostgreSql;
    if sql.contains('\0') || is_mysql && READ_COMMENTS.iter().any(|begin| sql.contains(begin)) {
        return None;
    }
    let begin = sql.as_ptr() as usize;
    let (mut pieces, mut depth, mut parameters, mut is_over) = (Vec::new(), 0_usize, 0, false);
    let mut end = 0;
    for token in Lexer::new(sql.as_bytes(), dialect) {
        let text = std::str::from_utf8(token.text).ok()?;
        let from = token.text.as_ptr() as usize - begin;
        let is_glued = from == std::mem::replace(&mut end, from + text.len());
        match token.kind {
            TokenKind::Comment => continue,
            TokenKind::Semicolon => {
                is_over = true;
                continue;
            }
            _ if is_over => return None,
            TokenKind::Parameter => {
                let number: usize = text.strip_prefix('$')?.parse().ok()?;
                parameters = parameters.max(number);
            }
            TokenKind::ParameterList | TokenKind::Variable => return None,
            TokenKind::Close => depth = depth.checked_sub(1)?,
            kind if !is_read_alike(kind, text, is_mysql) => return None,
            _ => {}
        }
        let word = if token.kind == TokenKind::Word { text.to_ascii_lowercase() } else { String::new() };
        pieces.push(Piece { kind: token.kind, text: text.to_owned(), depth, word, is_glued });
        if token.kind == TokenKind::Open {
            depth += 1;
        }
    }
    (depth == 0 && parameters <= PARAMETERS).then_some((pieces, parameters))
}

/// Whether every version of the server ends this token where our lexer does.
fn is_read_alike(kind: TokenKind, text: &str, is_mysql: bool) -> bool {
    match kind {
        // MySQL 9 has strings between `$$`.
        TokenKind::Word => !(is_mysql && text.contains('$')),
        // A PostgreSQL string may continue on the next line, with or without a comment between.
        TokenKind::Literal if !is_mysql && text.starts_with(['e', 'E']) => !text.contains(['\n', '\r']),
        // Names given by code points.
        TokenKind::QuotedName => text.starts_with(['"', '`']),
        TokenKind::Operator => text.bytes().all(|byte| byte.is_ascii_graphic()),
        _ => true,
    }
}

/// Writes the statement of these pieces.
pub(crate) fn write(pieces: &[Piece]) -> String {
    let mut sql = String::new();
    let mut before = None;
    for piece in pieces {
        let tight = match (before, piece.kind) {
            (None | Some(TokenKind::Open), _) | (_, TokenKind::Comma | TokenKind::Close) => true,
            (Some(TokenKind::Dot), _) | (_, TokenKind::Dot | TokenKind::Open) => piece.is_glued,
            _ => false,
        };
        if !tight {
            sql.push(' ');
        }
        sql.push_str(&piece.text);
        before = Some(piece.kind);
    }
    sql
}
