//! What the statements of an episode do together: which are run by how many sessions, which table is loaded, indexed and
//! emptied. Single statements are read in [`super::statements`]; where their texts come from is the caller's.

use std::collections::{BTreeMap, BTreeSet};

use super::statements::{Statement, Verb};

/// A statement of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// Its text, with or without its values.
    pub sql: String,
    /// Sessions that ran it at once, if that is known.
    pub sessions: Option<f64>,
}

/// Rows that one statement has to insert to be a load of data and no request of an application.
const LOAD_ROWS: f64 = 10_000.0;

/// Sessions that are taken for "several".
const SEVERAL: f64 = 3.0;

/// The statements of an episode, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workload {
    statements: Vec<(Statement, Option<f64>, String)>,
}

impl Workload {
    /// Reads statements. `None` if there is none that does something.
    #[must_use]
    pub fn of(executed: &[Executed]) -> Option<Self> {
        let statements: Vec<_> = executed
            .iter()
            .filter_map(|executed| Some((Statement::of(&executed.sql)?, executed.sessions, executed.sql.clone())))
            .filter(|(statement, ..)| statement.verb != Verb::Other)
            .collect();
        (!statements.is_empty()).then_some(Self { statements })
    }

    fn of_kind(&self, verb: Verb) -> impl Iterator<Item = (&Statement, Option<f64>)> {
        self.statements
            .iter()
            .filter(move |(statement, ..)| statement.verb == verb)
            .map(|(s, sessions, _)| (s, *sessions))
    }

    /// Indexes made on one table, at the most, if rows of that table are written too; dropped ones count as much, since
    /// they were there.
    #[must_use]
    pub fn indexes_of_written_table(&self) -> f64 {
        let mut made: BTreeMap<Option<&str>, BTreeSet<&str>> = BTreeMap::new();
        for (statement, _, sql) in &self.statements {
            if statement.verb == Verb::CreateIndex {
                made.entry(statement.table.as_deref()).or_default().insert(sql);
            }
        }
        let written = |table: Option<&str>| {
            self.statements
                .iter()
                .any(|(s, ..)| s.writes() && (table.is_none() || s.table.is_none() || s.table.as_deref() == table))
        };
        let dropped: BTreeSet<&str> =
            self.statements.iter().filter(|(s, ..)| s.verb == Verb::DropIndex).map(|(.., sql)| sql.as_str()).collect();
        let most = made.into_iter().filter(|(table, _)| written(*table)).map(|(_, sqls)| sqls.len()).max().unwrap_or(0);
        count(if most > 0 { most.max(dropped.len()) } else { 0 })
    }

    /// How many indexes were made at all.
    #[must_use]
    pub fn indexes_made(&self) -> f64 {
        count(self.of_kind(Verb::CreateIndex).count())
    }

    /// Whether rows are deleted by a range or all of them: nobody knows how many, and they stay as dead rows.
    #[must_use]
    pub fn deletes_in_bulk(&self) -> bool {
        self.of_kind(Verb::Delete).any(|(statement, _)| !statement.keyed)
    }

    /// Whether rows are deleted in bulk of a table that several sessions read, so that its dead rows are in somebody's way.
    #[must_use]
    pub fn reads_what_was_deleted_from(&self) -> bool {
        self.of_kind(Verb::Delete).filter(|(deleted, _)| !deleted.keyed && deleted.table.is_some()).any(
            |(deleted, _)| {
                self.of_kind(Verb::Select).any(|(read, sessions)| {
                    read.table == deleted.table && sessions.is_none_or(|sessions| sessions > 1.0)
                })
            },
        )
    }

    /// Sessions that run small writes where several kinds of them are run: those of the second most frequent kind. Rows that
    /// are inserted for what follows are no kind of their own.
    #[must_use]
    pub fn sessions_of_mixed_writes(&self) -> f64 {
        let inserts = if self.insert_is_preparation() { 0.0 } else { self.sessions_of_small(Verb::Insert) };
        let mut kinds = [inserts, self.sessions_of_small(Verb::Update), self.sessions_of_small(Verb::Delete)];
        kinds.sort_by(f64::total_cmp);
        kinds[1]
    }

    /// Whether a vacuum was asked for.
    #[must_use]
    pub fn vacuums(&self) -> bool {
        self.of_kind(Verb::Vacuum).next().is_some()
    }

    /// Rows that the largest single `INSERT` brings, if a text tells.
    #[must_use]
    pub fn largest_insert_rows(&self) -> f64 {
        self.of_kind(Verb::Insert).filter_map(|(statement, _)| statement.rows).fold(0.0, f64::max)
    }

    /// Whether the largest `INSERT` only fills a table for what is then done with it: rows that are updated, get indexes, or are
    /// looked up by several sessions. A delete alone is less work than the load was: it marks rows and logs that, where the
    /// load wrote and logged them whole.
    #[must_use]
    pub fn insert_is_preparation(&self) -> bool {
        let largest = self
            .of_kind(Verb::Insert)
            .max_by(|a, b| a.0.rows.unwrap_or(0.0).total_cmp(&b.0.rows.unwrap_or(0.0)))
            .and_then(|(statement, _)| statement.table.clone());
        let Some(table) = largest else { return false };
        // A lookup that is told of without a number is one of many.
        let several = |sessions: Option<f64>| sessions.is_none_or(|sessions| sessions > 1.0);
        self.statements.iter().any(|(statement, sessions, _)| {
            let used = match statement.verb {
                Verb::Update | Verb::CreateIndex => true,
                Verb::Delete => self.reads_what_was_deleted_from(),
                Verb::Select => statement.keyed && several(*sessions),
                Verb::Insert | Verb::DropIndex | Verb::Vacuum | Verb::Other => false,
            };
            used && statement.table.as_deref() == Some(table.as_str())
        })
    }

    /// Sessions that run small statements of a kind at once: by key, or few rows inserted. 0 if there is no such statement,
    /// 1 if nobody said how many.
    #[must_use]
    pub fn sessions_of_small(&self, verb: Verb) -> f64 {
        self.of_kind(verb)
            .filter(|(statement, _)| match verb {
                Verb::Insert => statement.rows.is_none_or(|rows| rows < LOAD_ROWS),
                _ => statement.keyed,
            })
            .map(|(_, sessions)| sessions.unwrap_or(1.0))
            .fold(0.0, f64::max)
    }

    /// Sessions that look up rows by key in a table that was filled in bulk in this episode, and got no index in it; several
    /// if nobody said how many.
    #[must_use]
    pub fn sessions_reading_fresh_table(&self) -> f64 {
        let filled = |table: &str| {
            self.of_kind(Verb::Insert)
                .any(|(s, _)| s.table.as_deref() == Some(table) && s.rows.is_some_and(|rows| rows >= LOAD_ROWS))
        };
        if self.indexes_made() > 0.0 {
            return 0.0;
        }
        self.of_kind(Verb::Select)
            .filter(|(statement, _)| {
                statement.keyed && statement.tables == 1 && statement.table.as_deref().is_some_and(filled)
            })
            .map(|(_, sessions)| sessions.unwrap_or(SEVERAL))
            .fold(0.0, f64::max)
    }

    /// Whether a query's result has as many rows as its tables: no key, no limit, no group.
    #[must_use]
    pub fn fetches_whole_tables(&self) -> bool {
        self.of_kind(Verb::Select)
            .any(|(s, _)| s.tables > 0 && !s.keyed && !s.condensed && (!s.filtered || s.tables > 1))
    }

    /// Whether a subquery is run for each row of another query.
    #[must_use]
    pub fn correlates(&self) -> bool {
        self.statements.iter().any(|(statement, ..)| statement.correlated)
    }

    /// Tables that one query joins at the most.
    #[must_use]
    pub fn most_tables(&self) -> f64 {
        count(self.of_kind(Verb::Select).map(|(statement, _)| statement.tables).max().unwrap_or(0))
    }

    /// Whether a join has no condition, or its tables are picked by patterns that no index serves.
    #[must_use]
    pub fn joins_blindly(&self) -> bool {
        self.of_kind(Verb::Select).any(|(s, _)| s.unbound || s.tables > 1 && s.open_pattern)
    }
}

fn count(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(statements: &[(&str, Option<f64>)]) -> Workload {
        let executed: Vec<Executed> =
            statements.iter().map(|(sql, sessions)| Executed { sql: (*sql).to_owned(), sessions: *sessions }).collect();
        Workload::of(&executed).unwrap()
    }

    #[test]
    fn indexes_count_where_rows_are_written() {
        let made =
            [("CREATE INDEX a ON t(x)", None), ("CREATE INDEX b ON t(y)", None), ("CREATE INDEX b ON t(y)", None)];
        assert!(workload(&made).indexes_of_written_table() < 0.5);
        let written = workload(&[made[0], made[1], made[2], ("UPDATE t SET x = $1 WHERE id = $2", Some(9.0))]);
        assert!((written.indexes_of_written_table() - 2.0).abs() < f64::EPSILON);
        let other = workload(&[made[0], made[1], ("UPDATE u SET x = $1 WHERE id = $2", Some(9.0))]);
        assert!(other.indexes_of_written_table() < 0.5);
    }

    #[test]
    fn a_load_is_told_from_what_is_done_to_it() {
        let load = ("INSERT INTO t SELECT generate_series(1,2000000), now()", Some(1.0));
        let alone = workload(&[load]);
        assert!(alone.largest_insert_rows() > 1e6 && !alone.insert_is_preparation() && !alone.deletes_in_bulk());
        let emptied =
            workload(&[load, ("DELETE FROM t WHERE id < 1600000", None), ("SELECT * FROM t WHERE id=", Some(130.0))]);
        assert!(emptied.insert_is_preparation() && emptied.deletes_in_bulk());
        assert!((emptied.sessions_reading_fresh_table() - 130.0).abs() < f64::EPSILON);
        assert!(!workload(&[("DELETE FROM t WHERE id = $1", Some(40.0))]).deletes_in_bulk());
    }

    #[test]
    fn sessions_of_small_statements_count_alone() {
        let mixed = workload(&[
            ("INSERT INTO t SELECT generate_series(1,58), now()", Some(62.0)),
            ("INSERT INTO u SELECT generate_series(1,900000), now()", Some(177.0)),
            ("UPDATE t SET a = 1 WHERE b < 5", Some(99.0)),
        ]);
        assert!((mixed.sessions_of_small(Verb::Insert) - 62.0).abs() < f64::EPSILON);
        assert!(mixed.sessions_of_small(Verb::Update) < 0.5, "a range is no small update");
        assert_eq!(Workload::of(&[Executed { sql: "BEGIN".to_owned(), sessions: None }]), None);
    }

    #[test]
    fn queries_that_read_much_are_seen() {
        assert!(workload(&[("SELECT * FROM lineitem", None)]).fetches_whole_tables());
        assert!(!workload(&[("SELECT * FROM lineitem LIMIT 10", None)]).fetches_whole_tables());
        assert!(workload(&[("SELECT * FROM a, b", None)]).joins_blindly());
        assert!(workload(&[("SELECT * FROM a WHERE b > (SELECT avg(c) FROM d WHERE d.e = a.e)", None)]).correlates());
    }
}
