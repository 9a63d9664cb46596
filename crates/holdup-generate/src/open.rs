//! Which database an address means, and a connection to the table or collection there.

use holdup_protocol::database::Dialect;

use crate::client::{Client, Server};
use crate::error::GenerateError;
use crate::mongodb::Collection;
use crate::schema::Schema;
use crate::sql::Table;
use crate::store::Store;

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
