//! Which statements a server is asked to plan, and in which words. `EXPLAIN` executes nothing, yet planning evaluates functions of
//! constants, with the rights of who asks: so only single statements that read, or the reading part of those that change rows, and
//! only with functions of the server's own that do nothing but compute. What is not known for such is left out.
//!
//! A list of names is no proof: who may make functions, operators or views where a statement finds them can still be heard with our
//! rights. That is why plans are asked for only if the user says so; see `docs/security.md`.

use holdup_sql::calls::{FUNCTIONS, KEYWORDS};
use holdup_sql::{Dialect, Lexer, TokenKind};

/// A statement that may be explained.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// What is to be explained, values and all: not to be kept.
    pub(crate) sql: String,
    /// The greatest `$n` in it.
    pub(crate) parameters: usize,
    /// Whether it is the statement itself, and only reads.
    pub(crate) reads_only: bool,
}

/// A token with its place, its depth in parentheses, and in small letters if it is a word.
struct Piece {
    kind: TokenKind,
    from: usize,
    to: usize,
    depth: usize,
    word: String,
}

/// What of `sql` may be explained, if anything.
pub(crate) fn of(sql: &str, dialect: Dialect) -> Option<Allowed> {
    let (pieces, parameters) = pieces(sql, dialect)?;
    // Also to plan a statement locks its tables in the way it asks for: nothing stronger than reading needs is asked for.
    if let Some(lock) = lock(&pieces) {
        let (before, behind) = (sql.get(..lock.start)?, sql.get(lock.end..)?);
        return of(&format!("{before} {behind}"), dialect).map(|allowed| Allowed { reads_only: false, ..allowed });
    }
    let is_harmless =
        pieces.iter().enumerate().all(|(at, piece)| piece.kind != TokenKind::Open || may_open(&pieces, at));
    if !is_harmless {
        return None;
    }
    let forbidden = ["into", "insert", "merge", "call", "outfile", "dumpfile", "procedure"];
    let forbids = |piece: &Piece| forbidden.contains(&piece.word.as_str());
    let is_cursor = |pair: &[Piece]| pair[0].word == "current" && pair[1].word == "of";
    let first = pieces.first()?.word.as_str();
    let changes = |from: usize| {
        pieces.iter().enumerate().skip(from).any(|(at, piece)| {
            matches!(piece.word.as_str(), "update" | "delete" | "replace")
                && pieces.get(at + 1).is_none_or(|next| next.kind != TokenKind::Open)
        })
    };
    if pieces.iter().any(forbids) || pieces.windows(2).any(is_cursor) {
        return None;
    }
    let (sql, reads_only) = match first {
        "select" | "with" if !changes(0) => (sql.to_owned(), true),
        "update" if !changes(1) => (of_update(sql, &pieces)?, false),
        "delete" if !changes(1) => (of_delete(sql, &pieces)?, false),
        _ => return None,
    };
    Some(Allowed { sql, parameters, reads_only })
}

/// Comments that MySQL and MariaDB read, or not, by their version, and in which quotes count, or not: `/*!99999 ' */ ; … -- '`.
const READ_COMMENTS: &[&str] = &["/*!", "/*M!", "/*+"];

/// The tokens of one whole statement, and the greatest `$n`. None of what the server might read in another way than we do: what is
/// a comment or a string to us and none to it would be a statement of whoever wrote it, run with our rights.
fn pieces(sql: &str, dialect: Dialect) -> Option<(Vec<Piece>, usize)> {
    let is_mysql = dialect != Dialect::PostgreSql;
    if sql.contains('\0') || is_mysql && READ_COMMENTS.iter().any(|begin| sql.contains(begin)) {
        return None;
    }
    let begin = sql.as_ptr() as usize;
    let (mut pieces, mut depth, mut parameters, mut is_over) = (Vec::new(), 0_usize, 0, false);
    for token in Lexer::new(sql.as_bytes(), dialect) {
        let text = String::from_utf8_lossy(token.text);
        match token.kind {
            // PostgreSQL's comments end there, ours don't.
            TokenKind::Comment if text.contains('\r') => return None,
            // MySQL 9 has strings between `$$`.
            TokenKind::Word if is_mysql && text.contains('$') => return None,
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
            _ => {}
        }
        let from = token.text.as_ptr() as usize - begin;
        let word = if token.kind == TokenKind::Word { text.to_lowercase() } else { String::new() };
        pieces.push(Piece { kind: token.kind, from, to: from + token.text.len(), depth, word });
        if token.kind == TokenKind::Open {
            depth += 1;
        }
    }
    (depth == 0 && parameters <= 100).then_some((pieces, parameters))
}

/// Whether what stands before the parenthesis at `at` is no call, or one of a function that only computes.
fn may_open(pieces: &[Piece], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|at| pieces.get(at)) else { return true };
    let is_qualified = at >= 2 && pieces.get(at - 2).is_some_and(|piece| piece.kind == TokenKind::Dot);
    match before.kind {
        TokenKind::QuotedName => false,
        TokenKind::Word if is_qualified => false,
        TokenKind::Word => KEYWORDS.contains(&before.word.as_str()) || FUNCTIONS.contains(&before.word.as_str()),
        _ => true,
    }
}

fn find(pieces: &[Piece], from: usize, words: &[&str]) -> Option<usize> {
    (from..pieces.len()).find(|at| pieces[*at].depth == 0 && words.contains(&pieces[*at].word.as_str()))
}

/// Where a statement asks to lock the rows that it reads: `FOR UPDATE OF t SKIP LOCKED`, `LOCK IN SHARE MODE`. The first such place.
fn lock(pieces: &[Piece]) -> Option<std::ops::Range<usize>> {
    let word = |at: usize| pieces.get(at).map_or("", |piece| piece.word.as_str());
    let begins = |at: &usize| match word(*at) {
        "for" => matches!(word(at + 1), "update" | "share" | "no" | "key"),
        "lock" => word(at + 1) == "in",
        _ => false,
    };
    let first = (0..pieces.len()).find(begins)?;
    let mut last = first + 1;
    let mut names = false;
    while let Some(next) = pieces.get(last + 1) {
        match next.word.as_str() {
            "of" => names = true,
            "update" | "share" | "no" | "key" | "mode" | "nowait" | "skip" | "locked" => {}
            // Of tables that are named, each but the first stands behind a comma or a dot.
            _ if names && matches!(next.kind, TokenKind::Comma | TokenKind::Dot) => {}
            _ if names
                && matches!(next.kind, TokenKind::Word | TokenKind::QuotedName)
                && (word(last) == "of" || matches!(pieces[last].kind, TokenKind::Comma | TokenKind::Dot)) => {}
            _ => break,
        }
        last += 1;
    }
    Some(pieces[first].from..pieces[last].to)
}

/// `UPDATE t SET a = 1 FROM u WHERE …` -> `SELECT 1 FROM t, u WHERE …`.
fn of_update(sql: &str, pieces: &[Piece]) -> Option<String> {
    let set = find(pieces, 1, &["set"])?;
    let tables = sql.get(pieces[0].to..pieces[set].from)?;
    if matches!(pieces.get(1)?.word.as_str(), "low_priority" | "ignore") {
        return None;
    }
    let from = find(pieces, set, &["from"]);
    let condition = find(pieces, set, &["where"]);
    let more = from
        .map(|from| sql.get(pieces[from].to..condition.map_or(sql.len(), |at| pieces[at].from)))
        .unwrap_or_default();
    let tables = more.map_or_else(|| tables.to_owned(), |more| format!("{tables}, {more}"));
    Some(format!("SELECT 1 FROM {tables} {}", rest(sql, pieces, condition)?))
}

/// `DELETE FROM t USING u WHERE …` -> `SELECT 1 FROM t, u WHERE …`.
fn of_delete(sql: &str, pieces: &[Piece]) -> Option<String> {
    if pieces.get(1)?.word != "from" {
        return None;
    }
    let condition = find(pieces, 2, &["where"]);
    let end = condition.or_else(|| find(pieces, 2, &["returning", "order", "limit"]));
    let end = end.map_or(sql.len(), |at| pieces[at].from);
    let tables = match find(pieces, 2, &["using"]) {
        Some(using) => {
            format!("{}, {}", sql.get(pieces[1].to..pieces[using].from)?, sql.get(pieces[using].to..end)?)
        }
        None => sql.get(pieces[1].to..end)?.trim_end().trim_end_matches(';').to_owned(),
    };
    Some(format!("SELECT 1 FROM {tables} {}", rest(sql, pieces, condition)?))
}

/// From the condition on, without what is returned.
fn rest<'a>(sql: &'a str, pieces: &[Piece], condition: Option<usize>) -> Option<&'a str> {
    let Some(condition) = condition else { return Some("") };
    let end = find(pieces, condition, &["returning"]).map_or(sql.len(), |at| pieces[at].from);
    sql.get(pieces[condition].from..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(sql: &str) -> Option<String> {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        of(sql, Dialect::PostgreSql).map(|allowed| words(allowed.sql))
    }

    #[test]
    fn what_reads_is_explained_as_it_is() {
        for sql in [
            "SELECT a FROM t WHERE b = 'x;y' AND c IN (1, 2);",
            "WITH x AS (SELECT count(*) FROM t) SELECT max(a) FROM x JOIN u USING (id) WHERE a = $1 AND b = $2",
            "/*traceparent='00-1-2-01'*/ SELECT coalesce(a, 'update') FROM t ORDER BY lower(b) LIMIT 5",
            "SELECT * FROM t WHERE replace(a, 'b', 'c') = 'd'",
        ] {
            assert_eq!(explained(sql).as_deref(), Some(sql), "{sql}");
        }
        let two = of("SELECT $2 = $1", Dialect::PostgreSql).unwrap();
        assert_eq!((two.parameters, two.reads_only), (2, true));
    }

    #[test]
    fn locks_are_not_asked_for_wherever_they_stand() {
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = 1 FOR NO KEY UPDATE SKIP LOCKED", "SELECT a FROM t WHERE b = 1"),
            ("SELECT a FROM t, u FOR UPDATE OF t, \"s\".u NOWAIT LIMIT 5", "SELECT a FROM t, u LIMIT 5"),
            ("SELECT a FROM t FOR UPDATE FOR SHARE OF t", "SELECT a FROM t"),
            ("SELECT a FROM t FOR KEY SHARE;", "SELECT a FROM t ;"),
            ("SELECT * FROM (SELECT a FROM t FOR UPDATE) AS x", "SELECT * FROM (SELECT a FROM t ) AS x"),
            (
                "UPDATE t SET a = 1 WHERE id = (SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
                "SELECT 1 FROM t WHERE id = (SELECT id FROM t ORDER BY id LIMIT 1)",
            ),
        ] {
            assert_eq!(explained(sql).as_deref(), Some(expected), "{sql}");
            assert!(!of(sql, Dialect::PostgreSql).unwrap().reads_only, "{sql}");
        }
        let mysql = of("SELECT a FROM (SELECT 1 FROM t LOCK IN SHARE MODE) AS x", Dialect::MySql).unwrap();
        assert!(!mysql.reads_only && !mysql.sql.to_lowercase().contains("lock"), "{}", mysql.sql);
    }

    #[test]
    fn of_what_changes_rows_the_reading_part_is() {
        for (sql, expected) in [
            (
                "UPDATE ONLY t AS x SET a = 'FROM', b = (SELECT 1 FROM v) WHERE x.id = 5 RETURNING a",
                "SELECT 1 FROM ONLY t AS x WHERE x.id = 5",
            ),
            ("update t set a = u.a from u where t.id = u.id", "SELECT 1 FROM t , u where t.id = u.id"),
            ("UPDATE t SET a = 1", "SELECT 1 FROM t"),
            ("DELETE FROM s.t WHERE id = 5;", "SELECT 1 FROM s.t WHERE id = 5;"),
            ("DELETE FROM t USING u WHERE t.id = u.id", "SELECT 1 FROM t , u WHERE t.id = u.id"),
            ("DELETE FROM t;", "SELECT 1 FROM t"),
        ] {
            assert_eq!(explained(sql).as_deref(), Some(expected), "{sql}");
            assert!(!of(sql, Dialect::PostgreSql).unwrap().reads_only);
        }
    }

    #[test]
    fn everything_else_is_left_alone() {
        for sql in [
            "",
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "SELECT 1; DROP TABLE t",
            // A comment ends at a carriage return, too.
            "SELECT 1 --\r; DROP TABLE t",
            "SELECT 1 -- a\r; DROP TABLE t --\n",
            "SELECT a$$ ; DROP TABLE t; --$$",
            "SELECT 'a\\'; DROP TABLE t; --'",
            "SELECT evil(1)",
            "SELECT public.lower(1)",
            "SELECT \"lower\"(1)",
            "SELECT pg_sleep(1)",
            "SELECT nextval('x')",
            "SELECT * INTO x FROM t",
            "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x",
            "SELECT * FROM t WHERE a = ?",
            "SELECT (1",
            "SELECT 1)",
            "EXPLAIN ANALYZE DELETE FROM t",
            "UPDATE t SET a = 1 WHERE CURRENT OF c",
            "UPDATE t SET a = evil(1)",
            "(SELECT 1)",
        ] {
            assert_eq!(explained(sql), None, "{sql}");
        }
        for sql in [
            "SELECT /*! SLEEP(5), */ 1",
            "SELECT @a := 1",
            "SELECT BENCHMARK(1, 2)",
            "SELECT 1 INTO OUTFILE 'x'",
            "SELECT a FROM t WHERE b = ?",
            "SELECT a FROM t /*!99999 ' */ ; DROP TABLE t; -- '",
            "SELECT /*+ QB_NAME(`a*/ ' b`) */ 1; DROP TABLE t; -- '",
            "SELECT $$ ' $$ ; DROP TABLE t; -- '",
        ] {
            assert!(of(sql, Dialect::MySql).is_none(), "{sql}");
        }
        assert!(of("SELECT `a` FROM `t` WHERE b = \"x\" LOCK IN SHARE MODE", Dialect::MySql).is_some());
    }
}
