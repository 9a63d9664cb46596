//! The names in a statement: which ones are tables, and which could mean something else. A name
//! that is not recognized as a table stays unchanged; it resolves to nothing in a session that sees
//! only the server's own catalog.

use std::ops::Range;

use holdup_sql::calls::{FUNCTIONS, KEYWORDS};
use holdup_sql::{Dialect, TokenKind};

use super::pieces::Piece;

/// Longest name, bytes: PostgreSQL truncates longer ones, which changes their meaning.
const NAME_BYTES: usize = 63;

/// Largest number of tables in a statement.
const TABLES: usize = 30;

/// A position at which a table is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its pieces.
    pub(crate) at: Range<usize>,
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
}

/// All names of a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) tables: Vec<Table>,
    /// The first two parts of dotted names, anywhere: `orders.id`, but also `'…'::theirs.type`.
    pub(crate) dotted: Vec<(String, String)>,
    /// Names after a dot: a column, or a function in column notation.
    pub(crate) behind_dots: Vec<String>,
    /// Every name.
    pub(crate) all: Vec<String>,
}

/// State at one depth of parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Whether the scan is inside a `FROM` list.
    in_from: bool,
    /// Whether a table's name may come next.
    expects: bool,
    /// Whether the parentheses enclose a call's arguments: `extract(day FROM a)`.
    is_call: bool,
}

/// The names in `pieces`. None if one of them is ambiguous.
pub(crate) fn find(pieces: &[Piece], dialect: Dialect) -> Option<Names> {
    let mut names = Names::default();
    let mut at = 0;
    while at < pieces.len() {
        let parts = chain(pieces, at);
        let length = parts.len().max(1);
        let mut texts = Vec::new();
        for part in parts.step_by(2) {
            texts.push(pieces.get(part)?.name(dialect)?);
        }
        if texts.iter().any(|text| text.len() > NAME_BYTES || text.chars().any(char::is_control)) {
            return None;
        }
        // Part of a value, or a selection from it: `(a).b`.
        let is_behind =
            at.checked_sub(1).and_then(|at| pieces.get(at)).is_some_and(|piece| piece.kind == TokenKind::Dot);
        if is_behind && !texts.is_empty() {
            return None;
        }
        if let [first, second, ..] = texts.as_slice() {
            names.dotted.push((first.clone(), second.clone()));
        }
        names.behind_dots.extend(texts.iter().skip(1).cloned());
        names.all.extend(texts);
        at += length;
    }
    names.tables = tables(pieces, dialect)?;
    (names.tables.len() <= TABLES).then_some(names)
}

/// The pieces of the dotted name that begins at `from`; empty if none begins there.
fn chain(pieces: &[Piece], from: usize) -> Range<usize> {
    let is_name =
        |at: usize| pieces.get(at).is_some_and(|piece| matches!(piece.kind, TokenKind::Word | TokenKind::QuotedName));
    if !is_name(from) {
        return from..from;
    }
    let mut end = from + 1;
    while pieces.get(end).is_some_and(|piece| piece.kind == TokenKind::Dot) && is_name(end + 1) {
        end += 2;
    }
    from..end
}

/// The positions of table names. None if one is named in an unknown way.
fn tables(pieces: &[Piece], dialect: Dialect) -> Option<Vec<Table>> {
    let own = own_names(pieces, dialect);
    let mut levels = vec![Level::default()];
    let mut tables = Vec::new();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        let before = at.checked_sub(1).and_then(|at| pieces.get(at));
        let level = levels.last_mut()?;
        let found = if level.expects && !listed(&piece.word) { chain(pieces, at) } else { at..at };
        if found.is_empty() {
            match piece.kind {
                TokenKind::Open => {
                    let is_call = before.is_some_and(|piece| is_function(&piece.word));
                    let inner = Level { in_from: level.expects, expects: level.expects, is_call };
                    level.expects = false;
                    levels.push(inner);
                }
                TokenKind::Close => drop(levels.pop()),
                TokenKind::Comma => level.expects = level.in_from,
                TokenKind::Word => level.word(&piece.word, before.map_or("", |piece| &piece.word)),
                _ => level.expects = false,
            }
            at += 1;
            continue;
        }
        level.expects = false;
        // Rows returned by a function.
        let is_call = pieces.get(found.end).is_some_and(|next| next.kind == TokenKind::Open);
        at = found.end;
        let mut parts = found.clone().step_by(2).map(|at| pieces.get(at)?.name(dialect));
        let (first, second) = (parts.next()??, parts.next());
        if parts.next().is_some() {
            return None;
        }
        match second {
            Some(name) => tables.push(Table { at: found, schema: Some(first), name: name? }),
            None if is_call || own.contains(&first) || first.eq_ignore_ascii_case("dual") => {}
            None => tables.push(Table { at: found, schema: None, name: first }),
        }
    }
    Some(tables)
}

/// Words that may stand before a table's name.
fn listed(word: &str) -> bool {
    matches!(word, "only" | "lateral" | "select" | "with" | "values")
}

fn is_function(word: &str) -> bool {
    FUNCTIONS.contains(&word) && !KEYWORDS.contains(&word)
}

impl Level {
    fn word(&mut self, word: &str, before: &str) {
        match word {
            "from" if before == "distinct" || self.is_call => {}
            "from" | "join" => (self.in_from, self.expects) = (true, true),
            "straight_join" => self.expects = self.in_from,
            "only" | "lateral" => {}
            "select" => *self = Self::default(),
            "where" | "group" | "order" | "having" | "limit" | "union" | "except" | "intersect" | "window"
            | "fetch" | "for" | "with" | "values" => (self.in_from, self.expects) = (false, false),
            _ => self.expects = false,
        }
    }
}

/// Names that the statement defines for its own parts: `WITH x AS (…)`.
fn own_names(pieces: &[Piece], dialect: Dialect) -> Vec<String> {
    let word = |at: usize| pieces.get(at).map_or("", |piece| piece.word.as_str());
    let opens = |at: usize| pieces.get(at).is_some_and(|piece| piece.kind == TokenKind::Open);
    let is_given = |at: &usize| {
        let mut next = at + 2;
        while matches!(word(next), "not" | "materialized") {
            next += 1;
        }
        word(at + 1) == "as" && opens(next)
    };
    let has_with = pieces.iter().any(|piece| piece.word == "with");
    (0..pieces.len()).filter(|_| has_with).filter(is_given).filter_map(|at| pieces.get(at)?.name(dialect)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::pieces::read;
    use super::*;

    fn tables_in(sql: &str, dialect: Dialect) -> Option<Vec<String>> {
        let names = find(&read(sql, dialect)?.0, dialect)?;
        let whole = |table: Table| table.schema.map_or(table.name.clone(), |schema| format!("{schema}.{}", table.name));
        Some(names.tables.into_iter().map(whole).collect())
    }

    #[test]
    fn tables_are_told_from_columns_functions_and_own_parts() {
        for (sql, expected) in [
            ("SELECT a FROM t", "t"),
            (
                "SELECT a, b FROM t, ONLY s.u AS x JOIN LATERAL (SELECT c FROM v, \"W\") y ON true, z WHERE a IN (1, 2)",
                "t s.u v W z",
            ),
            ("SELECT extract(day FROM a), trim(both FROM b) FROM t WHERE a IS DISTINCT FROM b", "t"),
            ("WITH x AS (SELECT 1 FROM t), y AS NOT MATERIALIZED (SELECT 1 FROM x) SELECT a FROM x, y, Z", "t z"),
            ("SELECT (SELECT max(a) FROM u WHERE b = t.b) FROM (t CROSS JOIN v), generate_series(1, 2) AS g", "u t v"),
            ("SELECT a FROM t GROUP BY a, b UNION SELECT a FROM u ORDER BY a, b", "t u"),
        ] {
            assert_eq!(tables_in(sql, Dialect::PostgreSql).unwrap().join(" "), expected, "{sql}");
        }
        let mysql = "SELECT `a` FROM Shop.`t``x` USE INDEX (i, j), u STRAIGHT_JOIN v WHERE a IN (SELECT 1 FROM dual)";
        assert_eq!(tables_in(mysql, Dialect::MySql).unwrap().join(" "), "Shop.t`x u v");
    }

    #[test]
    fn names_that_could_be_anything_are_none() {
        let long = format!("SELECT a FROM {}", "x".repeat(64));
        for sql in ["SELECT (1).f FROM t", "SELECT a FROM d.s.t", "SELECT a[1].f FROM t", "SELECT 'x'.f", long.as_str()]
        {
            assert_eq!(tables_in(sql, Dialect::PostgreSql), None, "{sql}");
        }
        let (pieces, _) = read("SELECT 1::mine.checked, t.b.c FROM t", Dialect::PostgreSql).unwrap();
        let names = find(&pieces, Dialect::PostgreSql).unwrap();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(names.dotted, [pair("mine", "checked"), pair("t", "b")]);
        assert_eq!(names.behind_dots, ["checked", "b", "c"]);
    }
}
