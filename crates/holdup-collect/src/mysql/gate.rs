//! The only path to a plan: foreign statements reach the optimizer only through here. The optimizer
//! evaluates functions of constants, looks up rows and opens views, all with holdup's rights. So
//! each table must be a base table of a known engine, and is addressed by its full name. Other
//! names resolve to nothing, because the session's database is the server's catalog, in which
//! functions and views cannot be created. The server accepts only one statement in a text, because
//! the connection does not ask for more.

use std::collections::BTreeSet;

use super::catalog::literal;
use super::failure::Failure;
use super::server::Server;
use crate::plans::allowed::AllowedStatement;

/// Engines that read only their own files.
const ENGINES: &[&str] = &["InnoDB", "MyISAM", "Aria", "MEMORY", "ROCKSDB", "TokuDB"];

/// A statement that may be planned; only [`admit`] creates one.
pub(super) struct Admitted(String);

/// Admits `allowed`, which was run in `database`, if all its tables are plain ones; none if not.
pub(super) fn admit(server: &Server, allowed: &AllowedStatement, database: &str) -> Result<Option<Admitted>, Failure> {
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
        // An alias that is also a schema's name would be ambiguous.
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
    let is_table = matches!(row.text(2), Some("BASE TABLE" | "SYSTEM VERSIONED"));
    let is_own = row.text(3).is_some_and(|engine| ENGINES.iter().any(|known| known.eq_ignore_ascii_case(engine)));
    let name = row.text(0).zip(row.text(1)).filter(|_| is_table && is_own);
    Ok(name.map(|(schema, name)| (schema.to_owned(), name.to_owned())))
}

impl Admitted {
    /// The server's plan, requested with the keywords `how`.
    pub(super) fn plan(&self, server: &Server, how: &str) -> Result<Option<String>, Failure> {
        // With this mode, strings end for the server where they end for our lexer, whatever is set
        // globally.
        server.rows("SET SESSION sql_mode = ''")?;
        server.rows("USE information_schema")?;
        Ok(server.rows(&format!("{how} {}", self.0))?.first().and_then(|row| row.text(0)).map(str::to_owned))
    }
}
