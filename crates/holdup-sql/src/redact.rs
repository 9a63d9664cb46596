//! A statement as written, but without its values, so that people can find it in their sources.
//! Line breaks stay, comments are dropped, and long lists show their first values.

use crate::{Dialect, Lexer, TokenKind};

/// Number of values shown of a list.
const SHOWN: usize = 3;

/// The statement with `?` for each value, about `most` bytes of it at most. It never contains a
/// byte of a literal or a comment.
pub fn redact(sql: &[u8], dialect: Dialect, most: usize) -> String {
    let mut text = String::new();
    let mut lexer = Lexer::new(sql, dialect);
    let (mut end, mut run, mut behind_value, mut behind_comma) = (0, 0, 0, false);
    while let Some(token) = lexer.next() {
        let to = lexer.position();
        let from = to.saturating_sub(token.text.len());
        let gap = sql.get(end..from).unwrap_or_default();
        end = to;
        if token.kind == TokenKind::Comment {
            continue;
        }
        if text.len() >= most {
            text.push_str(" …");
            break;
        }
        match gap.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => {
                text.push('\n');
                text.extend(gap.iter().skip(at + 1).filter(|byte| **byte <= b' ').map(|_| ' '));
            }
            None if !gap.is_empty() && !text.is_empty() => text.push(' '),
            None => {}
        }
        let is_value = matches!(token.kind, TokenKind::Literal | TokenKind::Parameter | TokenKind::ParameterList);
        if is_value {
            run = if behind_comma { run + 1 } else { 1 };
            if run > SHOWN {
                text.truncate(behind_value);
                text.push_str(if run == SHOWN + 1 { ", …" } else { "" });
            } else {
                text.push('?');
            }
            behind_value = text.len();
        } else if token.kind == TokenKind::Variable {
            text.push_str("@?");
        } else {
            text.push_str(&String::from_utf8_lossy(token.text));
        }
        behind_comma = token.kind == TokenKind::Comma && behind_value + 1 == text.trim_end().len() && run > 0;
        if !is_value && !behind_comma {
            run = 0;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_like_the_statement() {
        for (sql, expected) in [
            (
                "select a,b\n  from t -- why\n where x='y' and z in (1,2,3)",
                "select a,b\n  from t\n where x=? and z in (?,?,?)",
            ),
            ("insert into t values (1, 2, 3, 4, 5, 'six', 7)", "insert into t values (?, ?, ?, …)"),
            ("select @a, `b c` /* secret */, 'secret", "select @?, `b c`, ?"),
            ("", ""),
        ] {
            assert_eq!(redact(sql.as_bytes(), Dialect::MySql, 1_000), expected);
        }
        let long = "select a from t where b = 'canary' and c in (1)".repeat(100);
        let text = redact(long.as_bytes(), Dialect::PostgreSql, 100);
        assert!(text.len() < 130 && text.ends_with('…') && !text.contains("canary"), "{text}");
    }
}
