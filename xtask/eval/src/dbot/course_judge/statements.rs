//! What a PostgreSQL statement does, as far as its text tells: which rows it finds and how, how many tables it joins,
//! whether a subquery is run again for every row. Read from tokens, so that half a statement or one with places left open
//! says what it can. No grammar is checked and no catalog is known: whether an index exists is not in a text.

use holdup_sql::Dialect;

use self::scope::{Piece, Scope, pieces};

mod scope;

/// What kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `SELECT`, or `WITH … SELECT`.
    Select,
    /// `INSERT`, or `COPY … FROM`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE` or `TRUNCATE`.
    Delete,
    /// `CREATE INDEX`.
    CreateIndex,
    /// `DROP INDEX`.
    DropIndex,
    /// `VACUUM`, with or without `ANALYZE`.
    Vacuum,
    /// Anything else.
    Other,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What kind it is.
    pub verb: Verb,
    /// The table that is written or indexed, or the first that is read; in lower case, without its schema.
    pub table: Option<String>,
    /// Tables that its widest `SELECT` puts beside each other.
    pub tables: usize,
    /// Whether tables stand beside each other without a condition that binds each to another.
    pub unbound: bool,
    /// Whether a column must equal a value: an index on it finds the rows.
    pub keyed: bool,
    /// Whether there is a condition at all.
    pub filtered: bool,
    /// Whether a pattern begins with a wildcard, which no B-tree serves.
    pub open_pattern: bool,
    /// Whether the result is one row a group, or cut by `LIMIT`.
    pub condensed: bool,
    /// Whether a subquery takes values of the query around it, so that it is run for each of its rows.
    pub correlated: bool,
    /// Rows that one execution inserts, if the text tells: tuples of `VALUES`, `generate_series`.
    pub rows: Option<f64>,
}

impl Statement {
    /// Reads a statement. `None` for a text without a word.
    #[must_use]
    pub fn of(sql: &str) -> Option<Self> {
        let pieces = pieces(sql, Dialect::PostgreSql);
        let first = pieces.iter().find_map(Piece::word)?;
        let second = pieces.iter().filter_map(Piece::word).nth(1).unwrap_or_default();
        let verb = match (first, second) {
            ("select" | "with" | "table", _) => Verb::Select,
            ("insert" | "copy", _) => Verb::Insert,
            ("update", _) => Verb::Update,
            ("delete" | "truncate", _) => Verb::Delete,
            ("create", "index" | "unique") => Verb::CreateIndex,
            ("drop", "index") => Verb::DropIndex,
            ("vacuum", _) => Verb::Vacuum,
            _ => Verb::Other,
        };
        let scope = Scope::of(&pieces);
        let written = match verb {
            Verb::Insert => after(&pieces, &["into", "copy"]),
            Verb::Update => after(&pieces, &["update", "only"]),
            Verb::Delete => after(&pieces, &["from", "truncate", "table"]),
            Verb::CreateIndex => after(&pieces, &["on"]),
            Verb::Vacuum => after(&pieces, &["vacuum", "analyze", "full"]),
            Verb::Select | Verb::DropIndex | Verb::Other => None,
        };
        let widest = scope.widest();
        Some(Self {
            verb,
            table: written.or_else(|| scope.tables.first().cloned()),
            tables: widest.tables.len(),
            unbound: scope.unbound(),
            // A value that was left open looks like a second column; one table can't be joined by it.
            keyed: scope.keyed || scope.joins > 0 && widest.tables.len() <= 1,
            filtered: scope.filtered,
            open_pattern: scope.open_pattern(),
            condensed: scope.condensed,
            correlated: scope.correlated(),
            rows: (verb == Verb::Insert).then(|| inserted(&pieces)).flatten(),
        })
    }

    /// Whether it changes rows.
    #[must_use]
    pub const fn writes(&self) -> bool {
        matches!(self.verb, Verb::Insert | Verb::Update | Verb::Delete)
    }
}

/// The name behind the last of these words that stand before any other.
fn after(pieces: &[Piece], words: &[&str]) -> Option<String> {
    let start = pieces.iter().position(|piece| piece.word().is_some_and(|word| words.contains(&word)))?;
    let mut rest = pieces[start..].iter().skip_while(|piece| piece.word().is_some_and(|word| words.contains(&word)));
    let mut name = rest.next()?.name()?;
    while rest.next().is_some_and(Piece::is_dot) {
        name = rest.next()?.name()?;
    }
    Some(name.to_owned())
}

/// Rows of an `INSERT`: the numbers a `generate_series` counts through, or the tuples behind `VALUES`.
fn inserted(pieces: &[Piece]) -> Option<f64> {
    if let Some(series) = pieces.iter().position(|piece| piece.word() == Some("generate_series")) {
        let mut bounds = pieces[series..].iter().skip(2).take_while(|piece| !piece.is_close());
        let from: f64 = bounds.next()?.number()?;
        let to: f64 = bounds.nth(1)?.number()?;
        return Some((to - from + 1.0).max(0.0));
    }
    let values = pieces.iter().position(|piece| piece.word() == Some("values"))?;
    let (mut depth, mut tuples) = (0_usize, 0_u32);
    for piece in &pieces[values..] {
        if piece.is_open() {
            tuples += u32::from(depth == 0);
            depth += 1;
        } else if piece.is_close() {
            depth = depth.saturating_sub(1);
        }
    }
    (tuples > 0).then(|| f64::from(tuples))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Statement {
        Statement::of(sql).unwrap()
    }

    #[test]
    fn writes_say_their_table_and_rows() {
        let load = of(
            "insert into shop.items select generate_series(1,3025995),(SELECT substr(md5(random()::text), 1, 78)), now();",
        );
        assert_eq!((load.verb, load.table.as_deref(), load.rows), (Verb::Insert, Some("items"), Some(3_025_995.0)));
        assert_eq!(of("INSERT INTO t(a,b) VALUES (1,(2)),(3,4),(5,6)").rows, Some(3.0));
        assert_eq!(of("INSERT INTO t SELECT * FROM u").rows, None);
        let update = of("UPDATE ONLY Stock SET n = n - 1 WHERE id = $1");
        assert_eq!((update.table.as_deref(), update.keyed), (Some("stock"), true));
        assert!(of("update t set name=(SELECT substr(md5('a'), 1, 9)) where id =id").keyed, "a place left open");
        assert!(of("UPDATE t SET a=(SELECT substr(md5('a'), 1, 56) WHERE id =M;").keyed, "a parenthesis left open");
        let delete = of("DELETE FROM t WHERE id < 2420796");
        assert!(delete.filtered && !delete.keyed);
        assert_eq!(of("CREATE UNIQUE INDEX i ON t (a)").table.as_deref(), Some("t"));
        assert_eq!(Statement::of("  ;"), None);
    }

    #[test]
    fn reads_say_how_rows_are_found() {
        let cut_off = of("select * from t where id=");
        assert!(cut_off.keyed && !cut_off.condensed);
        let all = of("SELECT a, b FROM t ORDER BY a");
        assert!(!all.filtered && !all.condensed && !all.keyed);
        assert!(of("SELECT count(*) FROM t").condensed && of("SELECT a FROM t LIMIT 5").condensed);
        assert!(
            of("SELECT a FROM t WHERE b LIKE '%x%'").open_pattern
                && !of("SELECT a FROM t WHERE b LIKE 'x%'").open_pattern
        );
        assert!(of("SELECT extract(year from a) FROM t WHERE b IN (1,2)").keyed);
    }

    #[test]
    fn joins_are_counted_and_unbound_ones_seen() {
        let bound = of("SELECT * FROM a, b JOIN c ON c.x = b.x WHERE a.y = b.y AND a.z = 3");
        assert_eq!((bound.tables, bound.unbound, bound.keyed), (3, false, true));
        assert!(of("SELECT * FROM a, b, c WHERE a.y = b.y").unbound);
        assert!(of("SELECT * FROM a CROSS JOIN b").unbound);
        assert!(!of("SELECT * FROM a JOIN b USING (id)").unbound);
        assert!(!of("SELECT * FROM a NATURAL JOIN b").unbound);
    }

    #[test]
    fn a_subquery_that_takes_outer_values_is_correlated() {
        assert!(of("SELECT * FROM o WHERE p > (SELECT avg(i.p) FROM i WHERE i.k = o.k)").correlated);
        assert!(
            of("SELECT * FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l_orderkey = o_orderkey AND l_q < 3)").correlated
        );
        assert!(!of("SELECT * FROM o WHERE id = (SELECT max(id) FROM o WHERE w = 1)").correlated);
        assert!(!of("SELECT * FROM o WHERE id IN (SELECT x.a FROM x, y WHERE x.b = y.b)").correlated);
        assert!(!of("INSERT INTO t SELECT generate_series(1,9),(SELECT substr(md5(random()::text), 1, 5))").correlated);
    }
}
