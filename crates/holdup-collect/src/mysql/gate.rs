//! The one way to a plan: what others wrote goes to the optimizer only from here. The optimizer works out functions of constants, looks
//! up rows, and opens views, all with our rights. So each table has to be a table whose rows the server keeps itself, by its whole name;
//! any other name means nothing, for the session's database is the server's catalog, in which nobody can make a function or a view. It
//! is sent as a prepared statement, of which servers take one: the driver lets texts hold several, and can't be told not to.

use std::collections::BTreeSet;

use super::catalog::literal;
use super::server::{Columns, Failure, Server};
use crate::plans::allowed::Allowed;

/// Engines that read their own files and nothing else.
const ENGINES: &[&str] = &["InnoDB", "MyISAM", "Aria", "MEMORY", "ROCKSDB", "TokuDB"];

/// A statement that may be planned: only this makes one.
pub(super) struct Admitted(String);

/// Lets `allowed`, which was run in `database`, through if its tables are plain; none if not.
pub(super) fn admit(server: &Server, allowed: &Allowed, database: &str) -> Result<Option<Admitted>, Failure> {
    let Some(names) = allowed.names() else { return Ok(None) };
    let mut places = Vec::new();
    for table in names.tables {
        let schema = table.schema.as_deref().unwrap_or(database);
        let Some((schema, name)) = plain_table(server, schema, &table.name)? else { return Ok(None) };
        places.push((table.at, schema, name));
    }
    let is_place = |first: &str, second: &str| places.iter().any(|(_, schema, name)| schema == first && name == second);
    let others: BTreeSet<String> = names
        .dotted
        .iter()
        .filter(|(first, second)| !is_place(first, second))
        .map(|(first, _)| literal(first))
        .collect();
    if !others.is_empty() {
        // An alias that is also a schema's name could be either.
        let others = others.into_iter().collect::<Vec<_>>().join(", ");
        let schemas =
            format!("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ({others}) LIMIT 1");
        if !server.rows(&schemas)?.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(Admitted(allowed.sql(&places))))
}

/// Schema and name of a plain table, as the server writes them.
fn plain_table(server: &Server, schema: &str, name: &str) -> Result<Option<(String, String)>, Failure> {
    let rows = server.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} LIMIT 2",
        literal(schema),
        literal(name)
    ))?;
    let [row] = rows.as_slice() else { return Ok(None) };
    let is_table = matches!(row.text(2).as_deref(), Some("BASE TABLE" | "SYSTEM VERSIONED"));
    let is_own = row.text(3).is_some_and(|engine| ENGINES.iter().any(|known| known.eq_ignore_ascii_case(&engine)));
    Ok(row.text(0).zip(row.text(1)).filter(|_| is_table && is_own))
}

impl Admitted {
    /// What the server says of its plan, asked for in the words `how`.
    pub(super) fn plan(&self, server: &Server, how: &str) -> Result<Option<String>, Failure> {
        // Strings end for the server where they end for us, whatever is set for others.
        server.rows("SET SESSION sql_mode = ''")?;
        server.rows("USE information_schema")?;
        Ok(server.rows_of_one(&format!("{how} {}", self.0))?.first().and_then(|row| row.text(0)))
    }
}
