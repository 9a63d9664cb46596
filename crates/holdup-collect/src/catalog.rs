//! The tables and indexes of a database, and how its planner would run a statement with one more
//! index. The catalogs are read once, for advice. holdup reads no row of a table and executes no
//! statement.

use holdup_sql::catalog::{Table, Trial};

use crate::{ProbeError, ReadError};

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
    /// If the address is not one of a database, or the server refuses the connection. No message
    /// contains a password.
    pub fn connect(address: &str) -> Result<Self, ProbeError> {
        #[cfg(feature = "mysql")]
        if address.starts_with("mysql:") {
            return crate::mysql::Catalog::connect(address).map(Self::MySql);
        }
        #[cfg(feature = "postgresql")]
        if address.starts_with("postgresql:") || address.starts_with("postgres:") {
            return crate::postgres::Catalog::connect(address).map(Self::PostgreSql);
        }
        // The address may hold a password: no part of it is repeated.
        let known = "mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE";
        Err(ProbeError::BadAddress(format!("not a database address; supported: {known}")))
    }

    /// The table with the name that a statement uses, with or without its schema. None if no table
    /// or several tables match.
    ///
    /// # Errors
    /// If the query failed.
    pub fn table(&self, name: &str) -> Result<Option<Table>, ReadError> {
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(catalog) => catalog.table(name),
            #[cfg(feature = "postgresql")]
            Self::PostgreSql(catalog) => catalog.table(name),
        }
    }

    /// Why the server cannot plan with a hypothetical index, and how to enable that; none if it
    /// can.
    ///
    /// # Errors
    /// If the query failed.
    pub fn cannot_try(&self) -> Result<Option<String>, ReadError> {
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(_) => Ok(Some(
                "this server cannot plan with a hypothetical index: create the index on a copy and compare there"
                    .to_owned(),
            )),
            #[cfg(feature = "postgresql")]
            Self::PostgreSql(catalog) => catalog.cannot_try(),
        }
    }

    /// Lets the server plan `statement`, whose values are written `$1`, without and with an index
    /// on `columns` of `table`. None if the statement cannot be planned.
    ///
    /// # Errors
    /// If the connection to the server is lost.
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
