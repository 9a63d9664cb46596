//! What tables and indexes a database has, and how it would go about a statement with one more: asked for once, for advice. All of
//! it is read from catalogs; no row of a table, and no statement is executed.

use holdup_sql::catalog::Table;

use crate::{ProbeError, ReadError};

/// The planner's costs of a statement without an index and with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// As things are, in the planner's unit.
    pub cost_before: f64,
    /// With the index.
    pub cost_after: f64,
    /// Whether it would be used.
    pub is_used: bool,
}

/// A server whose catalogs are read.
pub enum Catalog {
    /// MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    MySql(crate::mysql::Catalog),
    /// PostgreSQL.
    #[cfg(feature = "postgresql")]
    PostgreSql(crate::postgres::Catalog),
}

impl Catalog {
    /// Connects to `mysql://…` or `postgresql://…`, addressed as for `--watch`.
    ///
    /// # Errors
    /// If the address is none, or the server lets nobody in. Passwords are in no message.
    pub fn connect(address: &str) -> Result<Self, ProbeError> {
        #[cfg(feature = "mysql")]
        if address.starts_with("mysql:") {
            return crate::mysql::Catalog::connect(address).map(Self::MySql);
        }
        #[cfg(feature = "postgresql")]
        if address.starts_with("postgresql:") || address.starts_with("postgres:") {
            return crate::postgres::Catalog::connect(address).map(Self::PostgreSql);
        }
        // It may hold a password: nothing of it is repeated.
        let known = "mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE";
        Err(ProbeError::BadAddress(format!("not a database address; supported: {known}")))
    }

    /// A table by the name that a statement has for it, with or without its schema. None if there is none of that name, or
    /// several.
    ///
    /// # Errors
    /// If it could not be asked for.
    pub fn table(&self, name: &str) -> Result<Option<Table>, ReadError> {
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(catalog) => catalog.table(name),
            #[cfg(feature = "postgresql")]
            Self::PostgreSql(catalog) => catalog.table(name),
        }
    }

    /// Why the server can't plan with an index that is not there, and what would let it; none if it can.
    ///
    /// # Errors
    /// If it could not be asked for.
    pub fn cannot_try(&self) -> Result<Option<String>, ReadError> {
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(_) => {
                Ok(Some("this server can't plan with an index that is not there: try it on a copy".to_owned()))
            }
            #[cfg(feature = "postgresql")]
            Self::PostgreSql(catalog) => catalog.cannot_try(),
        }
    }

    /// Lets the server plan `statement`, whose `values` stand as `$1`, without and with an index on `columns` of `table`. None if it
    /// can't be planned.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn try_index(
        &self,
        (statement, values): (&str, usize),
        table: &str,
        columns: &[String],
    ) -> Result<Option<Trial>, ReadError> {
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(_) => Ok(None),
            #[cfg(feature = "postgresql")]
            Self::PostgreSql(catalog) => catalog.try_index((statement, values), table, columns),
        }
    }
}
