//! `EXPLAIN` of MySQL and MariaDB as a table, and MariaDB's `ANALYZE`: one row for each table, in the order
//! in which they are joined.

use holdup_recording::plan::Node;

use super::put;
use crate::text::kinds::{Context, Kind, Row, Table};

pub(in crate::text::kinds) const KIND: Kind = Kind::table(
    "EXPLAIN",
    |columns| {
        columns.has(&["table", "type", "key", "rows"]) && columns.has_any(&["select_type", "possible_keys", "Extra"])
    },
    read,
);

/// Words in `Extra` for what is done with the rows of all tables.
const OPERATIONS: [(&str, &str); 2] = [("Using temporary", "temporary_table"), ("Using filesort", "filesort")];

fn read(table: &Table, context: &mut Context) {
    let mut children: Vec<Node> = table.rows().filter_map(|row| node(&row)).collect();
    if children.is_empty() {
        return context.unread.extend(0..table.used);
    }
    for (words, kind) in OPERATIONS {
        if table.rows().any(|row| row.text(&["Extra"]).is_some_and(|extra| extra.contains(words))) {
            children = vec![Node { kind: kind.to_owned(), children, ..Node::default() }];
        }
    }
    put(&Node { kind: "query_block".to_owned(), children, ..Node::default() }, false, None, context);
}

fn node(row: &Row<'_, '_>) -> Option<Node> {
    let kind = row.text(&["type"])?;
    let extra = row.text(&["Extra"]).unwrap_or_default();
    let rows = row.number(&["rows"]);
    let share = |name: &str| row.number(&[name]).map(|percent| percent / 100.0);
    let (read, passed) = (row.number(&["r_rows"]), share("r_filtered"));
    Some(Node {
        kind: kind.to_owned(),
        relation: row.text(&["table"]).map(str::to_owned),
        index: row.text(&["key"]).map(str::to_owned),
        // The condition itself is not shown.
        filter: extra.contains("Using where").then(|| "?".to_owned()),
        rows_read: rows,
        rows_estimated: rows.map(|rows| rows * share("filtered").unwrap_or(1.0)),
        rows_actual: read.map(|read| read * passed.unwrap_or(1.0)),
        rows_removed: read.zip(passed).map(|(read, passed)| read * (1.0 - passed)),
        ..Node::default()
    })
}
