//! Tables and indexes of MySQL and MariaDB, from `information_schema`.

use holdup_sql::catalog::{Index, Table};

use super::address::Address;
use super::server::{OwnDigests, Server};
use crate::account;
use crate::connections::Connections;
use crate::{ProbeError, ReadError};

/// A connection that reads catalogs.
pub struct Catalog(Server);

impl Catalog {
    pub(crate) fn connect(address: &str) -> Result<Self, ProbeError> {
        let address = account::parse(address, Address::parse)?;
        let server = Server::reach(&address, &OwnDigests::default(), &Connections::default());
        server.map(Self).map_err(|failure| ProbeError::unreachable(address.source(), failure.to_string()))
    }

    pub(crate) fn table(&self, name: &str) -> Result<Option<Table>, ReadError> {
        let (schema, bare) = name.split_once('.').map_or((None, name), |(schema, bare)| (Some(schema), bare));
        let of_schema = schema.map_or_else(
            || "TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')".to_owned(),
            |schema| format!("TABLE_SCHEMA = {}", literal(schema)),
        );
        let found = self.0.rows(&format!(
            "SELECT TABLE_SCHEMA, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = {} AND {of_schema} LIMIT 2",
            literal(bare)
        ))?;
        let [row] = found.as_slice() else { return Ok(None) };
        let is_it =
            format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", literal(row.text(0).unwrap_or_default()), literal(bare));
        let columns = self.0.rows(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {is_it} ORDER BY ORDINAL_POSITION"
        ))?;
        let keys = self.0.rows(&format!(
            "SELECT INDEX_NAME, NON_UNIQUE, COALESCE(COLUMN_NAME, '') FROM information_schema.STATISTICS \
             WHERE {is_it} AND INDEX_TYPE = 'BTREE' ORDER BY INDEX_NAME, SEQ_IN_INDEX"
        ))?;
        let indexes = Index::gather(keys.iter().map(|row| {
            let text = |at| row.text(at).unwrap_or_default().to_owned();
            (text(0), row.int(1) == Some(0), text(2))
        }));
        let columns = columns.iter().filter_map(|row| row.text(0)).map(str::to_owned).collect();
        Ok(Some(Table { name: name.to_owned(), columns, indexes, rows: row.float(1) }))
    }
}

/// A text as a literal that is safe in any SQL mode: by its bytes.
pub(super) fn literal(text: &str) -> String {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    if hex.is_empty() { "''".to_owned() } else { format!("CONVERT(X'{hex}' USING utf8)") }
}
