//! Which statements a replica could run: those that only read, by how often their tables are
//! written.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::advice::touches::Touches;

/// What a replica would mean for a statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Replica {
    /// A replica cannot run it.
    No {
        /// Why.
        why: String,
    },
    /// It only reads. Its data is as old as the replica's lag, which matters more the more often
    /// that data changes.
    Could {
        /// Writes per second to its tables, by table; tables without writes are absent.
        writes_per_second: BTreeMap<String, f64>,
    },
}

impl Replica {
    /// Whether no statement writes its tables: it then reads the same, however late the replica is.
    pub fn is_never_stale(&self) -> bool {
        matches!(self, Self::Could { writes_per_second } if writes_per_second.is_empty())
    }
}

/// Writes per second to each table, from all statements of a log of `seconds`, each with its number
/// of executions.
pub fn writes_per_second<'t>(all: impl Iterator<Item = (&'t Touches, u64)>, seconds: f64) -> BTreeMap<String, f64> {
    let mut writes: BTreeMap<String, f64> = BTreeMap::new();
    for (touches, calls) in all {
        for table in &touches.writes {
            *writes.entry(bare(table).to_owned()).or_default() += calls as f64 / seconds.max(1e-6);
        }
    }
    writes
}

/// Whether `touches` could move. Tables in `fresh` must be read where they are written.
pub fn assess(touches: &Touches, writes: &BTreeMap<String, f64>, fresh: &[String]) -> Replica {
    let no = |why: String| Replica::No { why };
    if let Some(why) = touches.stays {
        return no(why.to_owned());
    }
    if touches.reads.is_empty() {
        return no("it reads no table".to_owned());
    }
    if let Some(table) = touches.reads.iter().find(|table| fresh.iter().any(|name| bare(name) == bare(table))) {
        return no(format!("{table} has to be fresh (--fresh)"));
    }
    let own = touches.reads.iter().filter_map(|table| writes.get(bare(table)).map(|rate| (table.clone(), *rate)));
    Replica::Could { writes_per_second: own.collect() }
}

/// The name without its schema, because statements of one log write or omit it.
fn bare(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_sql::Dialect;

    #[test]
    fn who_only_reads_could_move_and_how_stale_it_may_be_is_told_by_writes() {
        let read = |sql| Touches::parse(sql, Dialect::MySql).unwrap();
        let [orders, prices, write] =
            ["SELECT * FROM shop.orders", "SELECT * FROM prices WHERE id = ?", "UPDATE orders SET a = ?"].map(read);
        let writes = writes_per_second([(&orders, 900), (&prices, 50), (&write, 30)].into_iter(), 60.0);
        assert_eq!(writes, BTreeMap::from([("orders".to_owned(), 0.5)]));
        let expected = BTreeMap::from([("shop.orders".to_owned(), 0.5)]);
        assert_eq!(assess(&orders, &writes, &[]), Replica::Could { writes_per_second: expected });
        assert!(assess(&prices, &writes, &[]).is_never_stale());
        assert_eq!(assess(&write, &writes, &[]), Replica::No { why: "it writes".to_owned() });
        assert!(matches!(assess(&orders, &writes, &["orders".to_owned()]), Replica::No { .. }));
    }
}
