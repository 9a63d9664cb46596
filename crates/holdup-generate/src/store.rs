//! What a database has to do for the generator, whichever it is, and which one an address means.

use holdup_protocol::database::Dialect;

use crate::client::{Client, Server};
use crate::error::GenerateError;
use crate::mongodb::Collection;
use crate::row::Row;
use crate::schema::Schema;
use crate::sql::Table;

/// A table or a collection, on a connection of its own.
pub(crate) trait Store {
    /// Makes it, if it is not there.
    fn create(&mut self) -> Result<(), GenerateError>;

    /// The largest key as text; none of an empty table.
    fn last_key(&mut self) -> Result<Option<String>, GenerateError>;

    /// Rows whose keys are below this one; without it, all.
    fn count(&mut self, below: Option<u64>) -> Result<u64, GenerateError>;

    /// The keys from one to another, in any order.
    fn keys(&mut self, from: u64, to: u64) -> Result<Vec<u64>, GenerateError>;

    /// Whether it has exactly this row.
    fn has(&mut self, row: &Row) -> Result<bool, GenerateError>;

    /// Inserts rows.
    fn insert(&mut self, rows: &[Row]) -> Result<(), GenerateError>;
}

/// Connects to the table of `schema`.
pub(crate) fn open<'s>(server: &Server, schema: &'s Schema) -> Result<Box<dyn Store + 's>, GenerateError> {
    let address = server.target.sql.as_ref().ok_or_else(|| GenerateError::Unfit("it is not a database".to_owned()))?;
    let dialect = address.dialect;
    if dialect == Dialect::Mongodb {
        let database = address.database.clone().ok_or_else(|| {
            let why = "the address names no database: add it after the slash, as in mongodb://HOST/shop";
            GenerateError::Unfit(why.to_owned())
        })?;
        return Ok(Box::new(Collection::new(Client::connect(server)?, schema, database)?));
    }
    Ok(Box::new(Table::new(Client::connect(server)?, schema, dialect)?))
}
