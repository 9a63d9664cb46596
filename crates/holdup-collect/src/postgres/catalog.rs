//! PostgreSQL's tables and indexes, and plans with an index that is not there, by the extension hypopg.

use holdup_recording::plan::Node;
use holdup_sql::catalog::{Index, Table};

use super::address::Address;
use super::server::{Failure, Server};
use crate::catalog::Trial;
use crate::connections::Connections;
use crate::plans::postgresql::tree;
use crate::{ProbeError, ReadError};

/// A plan takes longer than this in no healthy server.
const LIMITS: &str = "SET LOCAL statement_timeout = 2000; SET LOCAL lock_timeout = 200";

/// The path of those who connect to this database as we do, until the transaction's end.
const USUAL_PATH: &str = "SELECT pg_catalog.set_config('search_path', (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'search_path'), true)";

/// A connection that reads catalogs.
pub struct Catalog(Server);

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

impl Catalog {
    pub(crate) fn connect(address: &str) -> Result<Self, ProbeError> {
        let address = Address::parse(address)?;
        let source_name = format!("postgresql://{}:{}", address.host, address.port);
        Server::connect(&address, &Connections::default())
            .map(Self)
            .map_err(|failure| ProbeError::Unreachable { source_name, why: failure.to_string() })
    }

    pub(crate) fn table(&self, name: &str) -> Result<Option<Table>, ReadError> {
        // A name stands as the statement has it: with capitals where it was quoted, or where it was not and means small ones.
        let (own, folded) = (literal(&quoted(name)), literal(&quoted(&name.to_lowercase())));
        // Names are looked for where those who run the statements look; ours are elsewhere looked for in the catalog only.
        self.0.rows(&format!("BEGIN READ ONLY; {LIMITS}; {USUAL_PATH}"))?;
        let found = self.0.rows(&format!(
            "SELECT holdup_c.oid, holdup_c.reltuples::pg_catalog.float8 FROM pg_catalog.pg_class AS holdup_c \
             WHERE holdup_c.oid = coalesce(pg_catalog.to_regclass({own}), pg_catalog.to_regclass({folded})) \
             AND holdup_c.relkind IN ('r', 'p', 'm')"
        ));
        self.0.rows("ROLLBACK")?;
        // A name that can be none, e.g. of too many parts.
        let found = match found {
            Err(Failure::Server(..)) => return Ok(None),
            other => other?,
        };
        let Some(row) = found.rows.first() else { return Ok(None) };
        let Some(oid) = row.int(0) else { return Ok(None) };
        // Before it is vacuumed or analyzed for the first time the server does not know (-1, before version 14 also 0).
        let rows = row.float(1).filter(|rows| *rows > 0.0);
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
            return Ok(Some("before PostgreSQL 12 a statement is not planned without its values".to_owned()));
        }
        let there = self.0.value("SELECT 1 FROM pg_extension WHERE extname = 'hypopg'")?;
        let enable = "CREATE EXTENSION hypopg; in this database lets its planner try an index that is not there (package postgresql-VERSION-hypopg)";
        Ok(there.is_none().then(|| enable.to_owned()))
    }

    pub(crate) fn try_index(
        &self,
        (statement, values): (&str, usize),
        table: &str,
        columns: &[String],
    ) -> Result<Option<Trial>, ReadError> {
        self.0.rows(&format!(
            "BEGIN READ ONLY; {LIMITS}; SET LOCAL plan_cache_mode = force_generic_plan; {USUAL_PATH}"
        ))?;
        let answer = self.trial(statement, values, table, columns);
        if let Err(failure @ (Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) | Failure::Login(_))) = answer
        {
            return Err(failure.into());
        }
        self.0.rows("ROLLBACK")?;
        // Of all that is of the session, and outlives the transaction; what is not there need not go.
        let reset = format!("BEGIN READ ONLY; {USUAL_PATH}; SELECT hypopg_reset(); COMMIT");
        for undone in ["DEALLOCATE holdup_advice", reset.as_str(), "ROLLBACK"] {
            match self.0.rows(undone) {
                Ok(_) | Err(Failure::Server(..)) => {}
                Err(lost) => return Err(lost.into()),
            }
        }
        // A statement that this database does not plan is no failure of ours: its tables may be of another one.
        Ok(answer.unwrap_or(None))
    }

    fn trial(&self, statement: &str, values: usize, table: &str, columns: &[String]) -> Result<Option<Trial>, Failure> {
        let parameters = if values == 0 { String::new() } else { format!("({})", vec!["NULL"; values].join(", ")) };
        // What holds words of others goes where the server takes one statement and no more.
        let plan = || -> Result<Option<Node>, Failure> {
            self.0.rows_again(&format!("PREPARE holdup_advice AS {statement}"))?;
            let text = self.0.rows(&format!("EXPLAIN (FORMAT JSON) EXECUTE holdup_advice{parameters}"))?;
            self.0.rows("DEALLOCATE holdup_advice")?;
            Ok(text.rows.first().and_then(|row| row.text(0)).and_then(tree))
        };
        let Some(before) = plan()? else { return Ok(None) };
        let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let wanted = format!("CREATE INDEX ON {} ({})", quoted(table), columns.join(", "));
        let made = self.0.rows(&format!("SELECT indexname FROM hypopg_create_index({})", literal(&wanted)))?;
        let name = made.rows.first().and_then(|row| row.text(0)).unwrap_or_default().to_owned();
        let Some(after) = plan()? else { return Ok(None) };
        let is_used = !name.is_empty() && after.all().iter().any(|node| node.index.as_ref() == Some(&name));
        Ok(before.cost.zip(after.cost).map(|(cost_before, cost_after)| Trial { cost_before, cost_after, is_used }))
    }
}

/// A name, or one with its schema, as it stands where a name is taken literally.
fn quoted(name: &str) -> String {
    name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".")
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
