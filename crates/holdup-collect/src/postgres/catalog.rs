//! PostgreSQL's tables and indexes, and plans with a hypothetical index by way of the extension
//! hypopg.

use holdup_sql::Dialect;
use holdup_sql::catalog::{Index, Table, Trial};

use super::address::Address;
use super::gate;
use super::resolve::{ResolvedTable, path, resolve};
use super::server::{Failure, Server};
use crate::account;
use crate::connections::Connections;
use crate::plans::allowed::{self, AllowedStatement};
use crate::{ProbeError, ReadError};

/// No healthy server takes longer than this to plan.
const LIMITS: &str = "SET LOCAL statement_timeout = 2000; SET LOCAL lock_timeout = 200";

/// The default search path of a user who connects to this database like holdup.
const USUAL_PATH: &str = "SELECT reset_val, current_user FROM pg_settings WHERE name = 'search_path'";

/// A connection that reads catalogs.
pub struct Catalog(Server);

impl Catalog {
    pub(crate) fn connect(address: &str) -> Result<Self, ProbeError> {
        let address = account::parse(address, Address::parse)?;
        let server = Server::open(&address, &Connections::default());
        server.map(Self).map_err(|failure| ProbeError::unreachable(address.source(), failure.to_string()))
    }

    pub(crate) fn table(&self, name: &str) -> Result<Option<Table>, ReadError> {
        let Some(found) = self.found(name)? else { return Ok(None) };
        let oid = found.oid;
        let rows = self.0.rows(&format!("SELECT reltuples::float8 FROM pg_class WHERE oid = {oid}"))?;
        // Before the first vacuum or analyze the server reports -1, or before version 14 also 0.
        let rows = rows.rows.first().and_then(|row| row.float(0)).filter(|rows| *rows > 0.0);
        let columns = self.0.rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        ))?;
        let keys = self.0.rows(&format!(
            "SELECT holdup_i.relname, holdup_x.indisunique AND holdup_x.indpred IS NULL, coalesce(holdup_a.attname, '') \
             FROM pg_index AS holdup_x JOIN pg_class AS holdup_i ON holdup_i.oid = holdup_x.indexrelid \
             CROSS JOIN LATERAL unnest(holdup_x.indkey::int2[]) WITH ORDINALITY AS holdup_k(attnum, place) \
             LEFT JOIN pg_attribute AS holdup_a ON holdup_a.attrelid = {oid} AND holdup_a.attnum = holdup_k.attnum AND holdup_k.attnum > 0 \
             WHERE holdup_x.indrelid = {oid} AND holdup_x.indisvalid AND holdup_k.place <= holdup_x.indnkeyatts \
             ORDER BY holdup_i.relname, holdup_k.place"
        ))?;
        let indexes = Index::gather(keys.rows.iter().map(|row| {
            let text = |at| row.text(at).unwrap_or_default().to_owned();
            (text(0), row.text(1) == Some("t"), text(2))
        }));
        let columns = columns.rows.iter().filter_map(|row| row.text(0)).map(str::to_owned).collect();
        Ok(Some(Table { name: name.to_owned(), columns, indexes, rows }))
    }

    pub(crate) fn cannot_try(&self) -> Result<Option<String>, ReadError> {
        if self.0.major() < 12 {
            return Ok(Some("PostgreSQL before 12 cannot plan a statement without its values".to_owned()));
        }
        if let Some(why) = gate::refuses(&self.0)? {
            return Ok(Some(why));
        }
        let there = self.extension()?;
        let enable = "CREATE EXTENSION hypopg; in this database lets its planner try a hypothetical index (package postgresql-VERSION-hypopg)";
        Ok(there.is_none().then(|| enable.to_owned()))
    }

    pub(crate) fn try_index(
        &self,
        (statement, values): (&str, usize),
        table: &str,
        columns: &[String],
    ) -> Result<Option<Trial>, ReadError> {
        let Some(allowed) =
            allowed::check(statement, Dialect::PostgreSql).filter(|allowed| allowed.parameters == values)
        else {
            return Ok(None);
        };
        self.0.rows(&format!("BEGIN READ ONLY; {LIMITS}"))?;
        let answer = self.trial(&allowed, table, columns);
        if let Err(failure @ (Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) | Failure::Login(_))) = answer
        {
            return Err(failure.into());
        }
        self.0.rows("ROLLBACK")?;
        // Drops what belongs to the session and outlives the transaction, if it exists.
        gate::forget(&self.0)?;
        if let Some(schema) = self.extension()? {
            match self.0.rows(&format!("SELECT {schema}.hypopg_reset()")) {
                Ok(_) | Err(Failure::Server(..)) => {}
                Err(lost) => return Err(lost.into()),
            }
        }
        // A statement that this database cannot plan is not an error: its tables may be in another
        // one.
        Ok(answer.unwrap_or(None))
    }

    fn trial(&self, allowed: &AllowedStatement, table: &str, columns: &[String]) -> Result<Option<Trial>, Failure> {
        let (Some(schema), Some(table)) = (self.extension()?, self.found(table)?) else { return Ok(None) };
        let Some(admitted) = gate::admit(&self.0, allowed, &self.path()?)? else { return Ok(None) };
        let Some(before) = admitted.plan(&self.0, false)? else { return Ok(None) };
        let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let on = format!("{}.{}", quoted(&table.schema), quoted(&table.name));
        let wanted = format!("CREATE INDEX ON {on} ({})", columns.join(", "));
        let made = format!("SELECT indexname FROM {schema}.hypopg_create_index($1::text)");
        let made = self.0.rows_with(&made, &[&wanted])?;
        let name = made.rows.first().and_then(|row| row.text(0)).unwrap_or_default().to_owned();
        let Some(after) = admitted.plan(&self.0, false)? else { return Ok(None) };
        let is_used = !name.is_empty() && after.all().iter().any(|node| node.index.as_ref() == Some(&name));
        Ok(before.cost.zip(after.cost).map(|(cost_before, cost_after)| Trial { cost_before, cost_after, is_used }))
    }

    /// The table that a statement's name means. The name is as in the statement: a capital may come
    /// from a quoted name, or stand for a small letter in an unquoted one.
    fn found(&self, name: &str) -> Result<Option<ResolvedTable>, Failure> {
        let path = self.path()?;
        let parts = |name: &str| match name.split('.').collect::<Vec<_>>().as_slice() {
            [name] => Some((None, (*name).to_owned())),
            [schema, name] => Some((Some((*schema).to_owned()), (*name).to_owned())),
            _ => None,
        };
        let Some((own, folded)) = parts(name).zip(parts(&name.to_lowercase())) else { return Ok(None) };
        Ok(resolve(&self.0, &path, &[own, folded])?.into_iter().flatten().next())
    }

    fn path(&self) -> Result<Vec<String>, Failure> {
        let set = self.0.rows(USUAL_PATH)?;
        let text = |at| set.rows.first().and_then(|row| row.text(at)).unwrap_or_default();
        Ok(path(text(0), text(1)))
    }

    /// The quoted schema of hypopg: its functions are called by their full name.
    fn extension(&self) -> Result<Option<String>, Failure> {
        self.0.value(
            "SELECT quote_ident(holdup_n.nspname) FROM pg_extension AS holdup_e \
             JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_e.extnamespace WHERE holdup_e.extname = 'hypopg'",
        )
    }
}

/// Quotes a name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
