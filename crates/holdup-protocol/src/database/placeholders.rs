//! `?` -> `$1`, `$2`, …: one text of a statement for both dialects. Question marks in quotes and comments stay. It
//! does not know operators: for JSON's `?`, write `??`.

use std::borrow::Cow;

use holdup_sql::{Dialect, Lexer, TokenKind};

/// The text as PostgreSQL reads it. A text that has `$1` already, or no `?`, stays unchanged.
#[must_use]
pub fn numbered(text: &str) -> Cow<'_, str> {
    let mut lexer = Lexer::new(text.as_bytes(), Dialect::PostgreSql);
    let is_number = |token: holdup_sql::Token<'_>| token.kind == TokenKind::Parameter && token.text.starts_with(b"$");
    if !text.contains('?') || lexer.clone().any(is_number) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut count, mut from) = (String::with_capacity(text.len() + 8), 0, 0);
    while let Some(token) = lexer.next() {
        if matches!(token.kind, TokenKind::Literal | TokenKind::QuotedName | TokenKind::Comment) {
            let (begin, end) = (lexer.position() - token.text.len(), lexer.position());
            put_code(text.get(from..begin).unwrap_or_default(), &mut count, &mut out);
            out.push_str(text.get(begin..end).unwrap_or_default());
            from = end;
        }
    }
    put_code(text.get(from..).unwrap_or_default(), &mut count, &mut out);
    Cow::Owned(out)
}

/// Writes what is neither quoted nor a comment.
fn put_code(mut rest: &str, count: &mut u32, out: &mut String) {
    while let Some((before, after)) = rest.split_once('?') {
        out.push_str(before);
        rest = after;
        if let Some(after) = after.strip_prefix('?') {
            out.push('?');
            rest = after;
        } else {
            *count += 1;
            out.push('$');
            out.push_str(&count.to_string());
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_what_only_looks_so() {
        for (given, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT ?, a+?FROM t WHERE x=?", "SELECT $1, a+$2FROM t WHERE x=$3"),
            ("SELECT '?', 'it''s ?', \"a?\", ?", "SELECT '?', 'it''s ?', \"a?\", $1"),
            ("SELECT ? -- why?\n, ?", "SELECT $1 -- why?\n, $2"),
            ("SELECT /* ? */ ? /* ?", "SELECT /* ? */ $1 /* ?"),
            ("SELECT $$?$$, $x$ ? $$ $x$, ?", "SELECT $$?$$, $x$ ? $$ $x$, $1"),
            ("SELECT doc ?? 'a' AND id = ?", "SELECT doc ? 'a' AND id = $1"),
            ("SELECT doc ? 'a' AND id = $1", "SELECT doc ? 'a' AND id = $1"),
            ("SELECT '$1', ?", "SELECT '$1', $1"),
            ("SELECT 'grüße', ?, 'é", "SELECT 'grüße', $1, 'é"),
            ("?", "$1"),
            ("$", "$"),
            ("? $ü$ ? $ü$ ?", "$1 $ü$ ? $ü$ $2"),
            ("SELECT E'it\\'s ?', ? /* a /* ? */ ? */", "SELECT E'it\\'s ?', $1 /* a /* ? */ ? */"),
        ] {
            assert_eq!(numbered(given), expected);
        }
    }
}
