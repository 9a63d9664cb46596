//! Decides which statements a server may be asked to plan, and rewrites them. `EXPLAIN` executes
//! nothing, yet planning evaluates functions of constants with the caller's rights. So only single
//! statements are allowed that read, or the reading part of those that change rows, and only with
//! built-in functions that merely compute. Anything unknown is rejected.
//!
//! A list of names proves nothing by itself: each server's gate checks in the catalog what the
//! names mean there.

use std::ops::Range;

use holdup_sql::calls::{FUNCTIONS, KEYWORDS};
use holdup_sql::{Dialect, TokenKind};

use super::names::{self, Names};
use super::pieces::{Piece, read, write};

/// A statement that may be explained if its names turn out to be plain tables and built-in objects.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AllowedStatement {
    /// The statement to explain, with its values: never store it.
    pieces: Vec<Piece>,
    dialect: Dialect,
    /// The largest `$n` in it.
    pub(crate) parameters: usize,
    /// Whether it is the original statement, and read-only.
    pub(crate) reads_only: bool,
}

impl AllowedStatement {
    /// The names in it. None if they are ambiguous.
    pub(crate) fn names(&self) -> Option<Names> {
        names::find(&self.pieces, self.dialect)
    }

    /// Writes the statement with each table's name replaced by its full name.
    pub(crate) fn sql(&self, tables: &[(Range<usize>, String, String)]) -> String {
        let quote = if self.dialect == Dialect::PostgreSql { '"' } else { '`' };
        let quoted = |name: &str| {
            let inner = name.replace(quote, &format!("{quote}{quote}"));
            Piece::new(TokenKind::QuotedName, &format!("{quote}{inner}{quote}"))
        };
        let (mut pieces, mut from) = (Vec::new(), 0);
        for (at, schema, name) in tables {
            pieces.extend_from_slice(self.pieces.get(from..at.start).unwrap_or_default());
            pieces.extend([quoted(schema), Piece::new(TokenKind::Dot, "."), quoted(name)]);
            from = at.end;
        }
        pieces.extend_from_slice(self.pieces.get(from..).unwrap_or_default());
        write(&pieces)
    }
}

/// The part of `sql` that may be explained, if any.
pub(crate) fn check(sql: &str, dialect: Dialect) -> Option<AllowedStatement> {
    let (mut pieces, parameters) = read(sql, dialect)?;
    // Even planning takes the table locks that a statement asks for, so locking clauses are
    // removed.
    let mut locks = false;
    while let Some(lock) = lock(&pieces) {
        pieces.drain(lock);
        locks = true;
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
    let (pieces, reads_only) = match first {
        "select" | "with" if !changes(0) => (pieces, !locks),
        "update" if !changes(1) => (select_from_update(&pieces)?, false),
        "delete" if !changes(1) => (select_from_delete(&pieces)?, false),
        _ => return None,
    };
    Some(AllowedStatement { pieces, dialect, parameters, reads_only })
}

/// Whether the parenthesis at `at` does not open a call, or opens one of a function that only
/// computes.
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

/// The first locking clause: `FOR UPDATE OF t SKIP LOCKED`, `LOCK IN SHARE MODE`.
fn lock(pieces: &[Piece]) -> Option<Range<usize>> {
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
            // Every named table except the first follows a comma or a dot.
            _ if names && matches!(next.kind, TokenKind::Comma | TokenKind::Dot) => {}
            _ if names
                && matches!(next.kind, TokenKind::Word | TokenKind::QuotedName)
                && (word(last) == "of" || matches!(pieces[last].kind, TokenKind::Comma | TokenKind::Dot)) => {}
            _ => break,
        }
        last += 1;
    }
    Some(first..last + 1)
}

/// `SELECT 1 FROM`, tables, and the rest.
fn selected(tables: &[&[Piece]], rest: &[Piece]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = [(TokenKind::Word, "SELECT"), (TokenKind::Literal, "1"), (TokenKind::Word, "FROM")]
        .map(|(kind, text)| Piece::new(kind, text))
        .into();
    for (number, part) in tables.iter().enumerate() {
        if number > 0 {
            pieces.push(Piece::new(TokenKind::Comma, ","));
        }
        pieces.extend_from_slice(part);
    }
    pieces.extend_from_slice(rest);
    pieces
}

/// `UPDATE t SET a = 1 FROM u WHERE …` -> `SELECT 1 FROM t, u WHERE …`.
fn select_from_update(pieces: &[Piece]) -> Option<Vec<Piece>> {
    let set = find(pieces, 1, &["set"])?;
    if matches!(pieces.get(1)?.word.as_str(), "low_priority" | "ignore") {
        return None;
    }
    let condition = find(pieces, set, &["where"]);
    let mut tables = vec![pieces.get(1..set)?];
    if let Some(from) = find(pieces, set, &["from"]) {
        tables.push(pieces.get(from + 1..condition.unwrap_or_else(|| end(pieces, set)))?);
    }
    Some(selected(&tables, rest(pieces, condition)?))
}

/// `DELETE FROM t USING u WHERE …` -> `SELECT 1 FROM t, u WHERE …`.
fn select_from_delete(pieces: &[Piece]) -> Option<Vec<Piece>> {
    if pieces.get(1)?.word != "from" {
        return None;
    }
    let condition = find(pieces, 2, &["where"]);
    let end = condition.or_else(|| find(pieces, 2, &["returning", "order", "limit"])).unwrap_or(pieces.len());
    let tables = match find(pieces, 2, &["using"]) {
        Some(using) => vec![pieces.get(2..using)?, pieces.get(using + 1..end)?],
        None => vec![pieces.get(2..end)?],
    };
    Some(selected(&tables, rest(pieces, condition)?))
}

/// The text from the condition on, without the returned columns.
fn rest(pieces: &[Piece], condition: Option<usize>) -> Option<&[Piece]> {
    condition.map_or(Some(&[]), |condition| pieces.get(condition..end(pieces, condition)))
}

/// Where the returned columns begin, or the statement ends.
fn end(pieces: &[Piece], from: usize) -> usize {
    find(pieces, from, &["returning"]).unwrap_or(pieces.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(sql: &str) -> Option<String> {
        check(sql, Dialect::PostgreSql).map(|allowed| allowed.sql(&[]))
    }

    #[test]
    fn reading_statements_are_explained_unchanged() {
        for sql in [
            "SELECT a FROM t WHERE b = 'x;y' AND c IN (1, 2)",
            "WITH x AS (SELECT count(*) FROM t) SELECT max(a) FROM x JOIN u USING (id) WHERE a = $1 AND b = $2",
            "SELECT coalesce(a, 'update') FROM t ORDER BY lower(b) LIMIT 5",
            "SELECT * FROM t WHERE replace(a, 'b', 'c') = 'd'",
        ] {
            assert_eq!(explained(sql).as_deref(), Some(sql), "{sql}");
            let commented = format!("/*traceparent='00-1-2-01'*/{}; --", sql.replace(' ', " /* ' */\n--x\r"));
            assert_eq!(explained(&commented).as_deref(), Some(sql), "{sql}");
        }
        let two = check("SELECT $2 = $1", Dialect::PostgreSql).unwrap();
        assert_eq!((two.parameters, two.reads_only), (2, true));
    }

    #[test]
    fn locks_are_not_asked_for_wherever_they_stand() {
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = 1 FOR NO KEY UPDATE SKIP LOCKED", "SELECT a FROM t WHERE b = 1"),
            ("SELECT a FROM t, u FOR UPDATE OF t, \"s\".u NOWAIT LIMIT 5", "SELECT a FROM t, u LIMIT 5"),
            ("SELECT a FROM t FOR UPDATE FOR SHARE OF t", "SELECT a FROM t"),
            ("SELECT a FROM t FOR KEY SHARE;", "SELECT a FROM t"),
            ("SELECT * FROM (SELECT a FROM t FOR UPDATE) AS x", "SELECT * FROM (SELECT a FROM t) AS x"),
            (
                "UPDATE t SET a = 1 WHERE id = (SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
                "SELECT 1 FROM t WHERE id = (SELECT id FROM t ORDER BY id LIMIT 1)",
            ),
        ] {
            assert_eq!(explained(sql).as_deref(), Some(expected), "{sql}");
            assert!(!check(sql, Dialect::PostgreSql).unwrap().reads_only, "{sql}");
        }
        let mysql = check("SELECT a FROM (SELECT 1 FROM t LOCK IN SHARE MODE) AS x", Dialect::MySql).unwrap();
        assert!(!mysql.reads_only && !mysql.sql(&[]).to_lowercase().contains("lock"), "{}", mysql.sql(&[]));
    }

    #[test]
    fn of_what_changes_rows_the_reading_part_is() {
        for (sql, expected) in [
            (
                "UPDATE ONLY t AS x SET a = 'FROM', b = (SELECT 1 FROM v) WHERE x.id = 5 RETURNING a",
                "SELECT 1 FROM ONLY t AS x WHERE x.id = 5",
            ),
            ("update t set a = u.a from u where t.id = u.id", "SELECT 1 FROM t, u where t.id = u.id"),
            ("UPDATE t SET a = 1", "SELECT 1 FROM t"),
            ("DELETE FROM s.t WHERE id = 5;", "SELECT 1 FROM s.t WHERE id = 5"),
            ("DELETE FROM t USING u WHERE t.id = u.id", "SELECT 1 FROM t, u WHERE t.id = u.id"),
            ("DELETE FROM t;", "SELECT 1 FROM t"),
        ] {
            assert_eq!(explained(sql).as_deref(), Some(expected), "{sql}");
            assert!(!check(sql, Dialect::PostgreSql).unwrap().reads_only);
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
            assert!(check(sql, Dialect::MySql).is_none(), "{sql}");
        }
        assert!(check("SELECT `a` FROM `t` WHERE b = \"x\" LOCK IN SHARE MODE", Dialect::MySql).is_some());
    }
}
