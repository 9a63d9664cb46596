//! The fingerprint that pt-query-digest gives a statement, byte for byte, for users whose reviews
//! are stored by its checksum. It results from passes over the text that know no SQL: `foo_2_3`
//! becomes `foo_?_?`, `LIMIT a, b` `limit ?`.
//!
//! There is one difference: where that tool would leave bytes of a literal in the fingerprint (one
//! kind of quote within the other, hex digits in capitals), they are `?` here.

use crate::{Dialect, Lexer, TokenKind};

mod passes;

/// Stands for bytes of a string while passes run over it. No statement has this byte in a word.
const MASK: u8 = 1;

/// The fingerprint of a statement of MySQL.
pub fn pt_fingerprint(sql: &[u8]) -> String {
    if let Some(known) = passes::special(sql) {
        return known;
    }
    let whole = passes::run(masked(sql));
    let bytes = if whole.contains(&MASK) { passes::run(replaced(sql)) } else { whole };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The statement with letters and digits of its strings, and hex digits in capitals, masked.
/// Quotes, comments and parentheses in strings stay, because the passes depend on them.
fn masked(sql: &[u8]) -> Vec<u8> {
    let mut text = sql.to_vec();
    let mut lexer = Lexer::new(sql, Dialect::MySql);
    while let Some(token) = lexer.next() {
        let end = lexer.position();
        let Some(bytes) = text.get_mut(end.saturating_sub(token.text.len())..end) else { break };
        match token.kind {
            TokenKind::Literal | TokenKind::Variable if bytes.iter().any(|byte| matches!(byte, b'\'' | b'"')) => {
                let quote = bytes.iter().position(|byte| matches!(byte, b'\'' | b'"')).unwrap_or(0);
                for byte in bytes.iter_mut().skip(quote) {
                    if byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_' {
                        *byte = MASK;
                    }
                }
            }
            TokenKind::Literal => {
                bytes.iter_mut().filter(|byte| matches!(byte, b'A'..=b'D' | b'F')).for_each(|byte| *byte = MASK)
            }
            _ => {}
        }
    }
    text
}

/// The statement with `?` for each string and number, and without comments.
fn replaced(sql: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut lexer = Lexer::new(sql, Dialect::MySql);
    let mut end = 0;
    while let Some(token) = lexer.next() {
        let to = lexer.position();
        text.extend_from_slice(sql.get(end..to - token.text.len()).unwrap_or_default());
        end = to;
        match token.kind {
            TokenKind::Comment => {}
            TokenKind::Literal => text.push(b'?'),
            TokenKind::Variable => text.extend_from_slice(b"@?"),
            _ => text.extend_from_slice(token.text),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(sql: &str) -> String {
        pt_fingerprint(sql.as_bytes())
    }

    #[test]
    fn statements_become_what_the_tool_makes_of_them() {
        for (sql, expected) in [
            ("SELECT a  FROM t1 WHERE b='x' AND c = \"it's\" -- why\n", "select a from t? where b=? and c = ? "),
            ("select * from t where a in ( 1,2 , 3)  and b IN ('x')", "select * from t where a in(?+) and b in(?+)"),
            ("INSERT INTO t (a) VALUES (1, 'x'), (2, 'y')", "insert into t (a) values(?+)"),
            ("select a from t limit 5 offset 7", "select a from t limit ?"),
            ("select 1 union all select 2 union all select 3", "select ? /*repeat union all*/"),
            ("select a from t order by b asc, c ASC, d desc", "select a from t order by b, c, d desc"),
            ("use `shop`", "use ?"),
            ("call p(1, 'x')", "call p"),
            ("administrator command: Quit", "administrator command: Quit"),
            ("SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`", "mysqldump"),
            ("select /*a.b:1/2*/ 1", "percona-toolkit"),
            ("select a where b = 'it''s' or c = 0x1f or d is null", "select a where b = ?? or c = ? or d is ?"),
            ("select - 1, a-1, +5 from t", "select ? ?, a?, ? from t"),
        ] {
            assert_eq!(fingerprint(sql), expected, "{sql}");
        }
    }

    #[test]
    fn no_byte_of_a_literal_stays_where_the_tool_leaves_some() {
        for sql in [
            "select 'a \" canary', 1, 'b \" canary'",
            "select \"canary ' b\", 'canary \" c'",
            "select 'canary\\\\', 'canary\"', 'canary'",
            "select 'canary",
            "select 'a', \"canary",
            "select 'x' from t where a = '-- ' and b = 'canary'",
            "insert into t values ('x), (canary', 2)",
            "set @'canary' = 1",
        ] {
            assert!(!fingerprint(sql).contains("canary"), "{sql}: {}", fingerprint(sql));
        }
        assert_eq!(fingerprint("select 0xCAFEBABE, a"), "select ?, a");
    }
}
