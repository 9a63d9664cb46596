//! Proposes indexes by which a statement would find its rows, unless the table already has one.

use holdup_sql::Dialect;
use holdup_sql::catalog::Table;
use serde::Serialize;

use crate::advice::touches::{Column, Scope, Touches};

/// An index with more columns is expensive to keep and serves only one statement.
const MOST_COLUMNS: usize = 4;

/// A table with fewer rows is faster to read as a whole than through an index.
const FEWEST_ROWS: f64 = 500.0;

/// An index that may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its table, as the statement names it.
    pub table: String,
    /// Its columns in order.
    pub columns: Vec<String>,
    /// Why these columns.
    pub why: String,
}

impl Candidate {
    /// The statement that creates it.
    pub fn statement(&self, dialect: Dialect) -> String {
        let is_postgresql = dialect == Dialect::PostgreSql;
        let quote = if is_postgresql { '"' } else { '`' };
        let quoted = |name: &str| {
            let parts = name
                .split('.')
                .map(|part| format!("{quote}{}{quote}", part.replace(quote, &format!("{quote}{quote}"))));
            parts.collect::<Vec<_>>().join(".")
        };
        let columns: Vec<String> = self.columns.iter().map(|column| quoted(column)).collect();
        let (table, columns) = (quoted(&self.table), columns.join(", "));
        match is_postgresql {
            true => format!("CREATE INDEX CONCURRENTLY ON {table} ({columns})"),
            false => format!("ALTER TABLE {table} ADD INDEX ({columns})"),
        }
    }
}

/// The indexes that would help `touches` and that its tables lack. Only for known tables that are
/// not small.
pub fn candidates(touches: &Touches, tables: &[Table]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for scope in &touches.scopes {
        for named in &scope.tables {
            let Some(table) = tables.iter().find(|table| table.name == named.table) else { continue };
            if table.rows.is_some_and(|rows| rows < FEWEST_ROWS) {
                continue;
            }
            for candidate in table_candidates(scope, &named.alias, table, tables) {
                if !found.iter().any(|other| (&other.table, &other.columns) == (&candidate.table, &candidate.columns)) {
                    found.push(candidate);
                }
            }
        }
    }
    found
}

fn table_candidates(scope: &Scope, alias: &str, table: &Table, tables: &[Table]) -> Vec<Candidate> {
    let own = |columns: &[Column]| {
        let mut own: Vec<String> = Vec::new();
        for column in columns.iter().filter(|column| belongs_to(column, alias, table, scope, tables)) {
            if !own.contains(&column.name) {
                own.push(column.name.clone());
            }
        }
        own
    };
    let (equal, joined, within, ordered) =
        (own(&scope.equal), own(&scope.joined), own(&scope.within), own(&scope.ordered));
    let mut found = Vec::new();
    // The columns behind those that equal something: one range, or the order, if all of it belongs
    // to this table.
    let tail = |first: &[String]| {
        let range = within.iter().find(|name| !first.contains(name)).map(|name| (vec![name.clone()], "is in a range"));
        let whole = ordered.len() == scope.ordered.len() && !ordered.is_empty();
        let order = whole.then(|| (ordered.clone(), "gives the order"));
        range.or(order).unwrap_or_default()
    };
    let with_constants = (!equal.is_empty() || joined.is_empty()).then(|| equal.clone());
    let with_join = (!joined.is_empty()).then(|| joined.iter().chain(&equal).cloned().collect::<Vec<_>>());
    for first in [with_constants, with_join].into_iter().flatten() {
        let (last, why_last) = tail(&first);
        let mut columns = first.clone();
        columns.extend(last.iter().filter(|name| !first.contains(name)).cloned());
        columns.truncate(MOST_COLUMNS);
        if columns.is_empty() || is_served(&columns, first.len(), table) {
            continue;
        }
        let mut why = Vec::new();
        if !first.is_empty() {
            why.push(format!("{} must equal something", first.join(", ")));
        }
        if !last.is_empty() {
            why.push(format!("{} {why_last}", last.join(", ")));
        }
        found.push(Candidate { table: table.name.clone(), columns, why: why.join("; ") });
    }
    found
}

/// Whether a column belongs to this table: by its prefix, or, without a prefix, if no other table
/// of the scope has that column.
fn belongs_to(column: &Column, alias: &str, table: &Table, scope: &Scope, tables: &[Table]) -> bool {
    let has = |table: &Table| table.columns.iter().any(|name| name.eq_ignore_ascii_case(&column.name));
    match &column.table {
        Some(prefix) => prefix == alias && has(table),
        None => {
            let find = |name: &str| tables.iter().find(|table| table.name == name);
            has(table) && scope.tables.iter().filter(|n| n.alias != alias).all(|n| !find(&n.table).is_some_and(has))
        }
    }
}

/// Whether an index begins with all of the first `equal` columns in any order and continues as
/// wanted. A unique row needs fewer.
fn is_served(wanted: &[String], equal: usize, table: &Table) -> bool {
    let equal = equal.min(wanted.len());
    table.indexes.iter().any(|index| {
        let begin: Vec<&String> = index.columns.iter().take(equal).collect();
        let all = wanted[..equal].iter().all(|name| begin.iter().any(|has| has.eq_ignore_ascii_case(name)));
        let rest = wanted[equal..].iter().zip(index.columns.iter().skip(equal)).all(|(a, b)| a.eq_ignore_ascii_case(b));
        all && rest && index.columns.len() >= wanted.len()
    }) || table.indexes.iter().any(|index| {
        // All columns of a unique index are given: one row is found.
        index.is_unique && index.columns.iter().all(|name| wanted[..equal].contains(name))
    })
}

#[cfg(test)]
mod tests {
    use holdup_sql::catalog::Index;

    use super::*;

    fn table(name: &str, columns: &[&str], indexes: &[(&str, &[&str])], rows: f64) -> Table {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let indexes = indexes
            .iter()
            .map(|(name, columns)| Index {
                name: (*name).to_owned(),
                columns: owned(columns),
                is_unique: name.ends_with("_pkey"),
            })
            .collect();
        Table { name: name.to_owned(), columns: owned(columns), indexes, rows: Some(rows) }
    }

    fn proposed(sql: &str, tables: &[Table]) -> Vec<String> {
        let touches = Touches::parse(sql, Dialect::PostgreSql).unwrap();
        candidates(&touches, tables).iter().map(|c| format!("{}({})", c.table, c.columns.join(","))).collect()
    }

    #[test]
    fn what_equals_something_comes_first_then_a_range_or_the_order() {
        let orders = table("orders", &["id", "customer", "state", "at"], &[("orders_pkey", &["id"])], 1e6);
        let one = std::slice::from_ref(&orders);
        assert_eq!(proposed("SELECT * FROM orders WHERE at > ? AND customer = ?", one), ["orders(customer,at)"]);
        assert_eq!(proposed("SELECT * FROM orders WHERE customer = ? ORDER BY at", one), ["orders(customer,at)"]);
        assert_eq!(proposed("SELECT * FROM orders ORDER BY at LIMIT ?", one), ["orders(at)"]);
        assert!(proposed("SELECT * FROM orders WHERE id = ? AND state = ?", one).is_empty(), "one row is found");
        assert!(proposed("SELECT * FROM orders WHERE customer = ? OR state = ?", one).is_empty());
        let small = Table { rows: Some(20.0), ..orders };
        assert!(proposed("SELECT * FROM orders WHERE customer = ?", &[small]).is_empty());
    }

    #[test]
    fn an_index_that_is_there_is_not_proposed_again() {
        let indexed = |columns: &[&str]| [table("t", &["a", "b", "c"], &[("t_x", columns)], 1e5)];
        assert!(proposed("SELECT * FROM t WHERE a = ? AND b = ?", &indexed(&["b", "a", "c"])).is_empty());
        assert_eq!(proposed("SELECT * FROM t WHERE a = ? AND b = ?", &indexed(&["c", "a"])), ["t(a,b)"]);
        assert_eq!(proposed("SELECT * FROM t WHERE a = ? AND b > ?", &indexed(&["a"])), ["t(a,b)"]);
    }

    #[test]
    fn columns_without_a_prefix_find_their_table_and_a_join_proposes_both_ways() {
        let orders = table("orders", &["id", "customer"], &[("orders_pkey", &["id"])], 1e5);
        let items = table("items", &["order_id", "sku"], &[], 1e6);
        let sql = "SELECT * FROM orders o JOIN items i ON i.order_id = o.id WHERE customer = ? AND sku = ?";
        let found = proposed(sql, &[orders, items]);
        assert_eq!(found, ["orders(customer)", "items(sku)", "items(order_id,sku)"]);
    }
}
