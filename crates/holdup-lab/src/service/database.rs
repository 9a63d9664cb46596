//! Connections to the service's database, and statements that run on them. The next statement
//! reopens a broken MariaDB connection; nothing else is tried again.

use std::path::PathBuf;

use holdup_protocol::database::Address;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use crate::service::address::{Database, PASSWORD_VARIABLE};
use crate::service::mysql::{Client, ClientError};
use crate::service::{Options, ServiceError, seed};

/// Placeholder in a route's SQL for the requested id.
const ID: &str = "{id}";

/// Most rows of a result that go into an answer; all are read.
const ROWS_IN_ANSWER: usize = 20;

/// A database that connections can be opened to.
pub struct Target {
    name: String,
    database: Database,
}

/// One open connection.
pub enum Connection {
    /// SQLite's.
    Sqlite(Box<rusqlite::Connection>),
    /// MariaDB's; without one after it broke.
    Mysql(Box<(Address, Option<Client>)>),
}

/// Why a statement failed, in the database's words.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// SQLite's error.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// MariaDB's error, or that of its connection.
    #[error(transparent)]
    Mysql(#[from] ClientError),
}

impl Target {
    /// Opens the database of `options`; makes and fills a SQLite file if needed.
    ///
    /// # Errors
    ///
    /// If its address is invalid, or the file cannot be filled.
    pub fn open(options: &Options) -> Result<Self, ServiceError> {
        let database = options.database.parse(std::env::var(PASSWORD_VARIABLE).ok())?;
        let target = Self { name: options.database.to_string(), database };
        target.seed(options.rows)?;
        Ok(target)
    }

    /// Fills a SQLite file that has no table yet. The lab fills other databases.
    ///
    /// # Errors
    ///
    /// Those of SQLite, e.g. a folder that does not exist.
    pub fn seed(&self, rows: u64) -> Result<(), ServiceError> {
        let Database::Sqlite(path) = &self.database else { return Ok(()) };
        rusqlite::Connection::open(path)
            .and_then(|mut connection| seed::seed(&mut connection, rows))
            .map_err(|error| self.failed(error))
    }

    /// Opens `count` connections, or none without a database.
    ///
    /// # Errors
    ///
    /// The first that cannot be opened.
    pub fn connect(&self, count: u32) -> Result<Vec<Connection>, ServiceError> {
        let one = || match &self.database {
            Database::None => Ok(None),
            Database::Sqlite(path) => open_sqlite(path).map(Some).map_err(|error| self.failed(error)),
            Database::Mysql(address) => Client::connect(address)
                .map(|client| Some(Connection::Mysql(Box::new((address.clone(), Some(client))))))
                .map_err(|error| self.failed(error)),
        };
        (0..count).filter_map(|_| one().transpose()).collect()
    }

    /// `db.system.name` of OpenTelemetry's conventions.
    pub fn system(&self) -> &'static str {
        match self.database {
            Database::None => "none",
            Database::Sqlite(_) => "sqlite",
            Database::Mysql(_) => "mariadb",
        }
    }

    /// Its host and port, if it has any.
    pub fn peer(&self) -> Option<(String, u16)> {
        match &self.database {
            Database::Mysql(address) => Some((address.host.clone(), address.port)),
            Database::None | Database::Sqlite(_) => None,
        }
    }

    fn failed(&self, error: impl std::fmt::Display) -> ServiceError {
        ServiceError::Database { database: self.name.clone(), why: error.to_string() }
    }
}

fn open_sqlite(path: &PathBuf) -> rusqlite::Result<Connection> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(Connection::Sqlite(Box::new(connection)))
}

impl Connection {
    /// Runs `sql` with `id` bound at `{id}`, reads all rows and returns the first few as JSON.
    ///
    /// # Errors
    ///
    /// The database's.
    pub fn run(&mut self, sql: &str, id: i64) -> Result<Vec<Value>, StatementError> {
        match self {
            Self::Sqlite(connection) => run_sqlite(connection, &sql.replace(ID, "?1"), id),
            Self::Mysql(place) => {
                let (address, client) = &mut **place;
                let mut live = match client.take() {
                    Some(live) => live,
                    None => Client::connect(address)?,
                };
                let result = run_mysql(&mut live, sql, id);
                // After an error of the server itself the connection is good; after any other it is
                // not trusted.
                if matches!(&result, Ok(_) | Err(ClientError::Server(..))) {
                    *client = Some(live);
                }
                Ok(result?)
            }
        }
    }
}

fn run_sqlite(connection: &rusqlite::Connection, sql: &str, id: i64) -> Result<Vec<Value>, StatementError> {
    let mut statement = connection.prepare_cached(sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    if statement.parameter_count() > 0 {
        statement.raw_bind_parameter(1, id)?;
    }
    let mut rows = statement.raw_query();
    let mut shown = Vec::new();
    while let Some(row) = rows.next()? {
        if shown.len() < ROWS_IN_ANSWER {
            let mut object = Map::new();
            for (index, name) in names.iter().enumerate() {
                object.insert(name.clone(), from_sqlite(row.get_ref(index)?));
            }
            shown.push(Value::Object(object));
        }
    }
    Ok(shown)
}

fn from_sqlite(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => n.into(),
        ValueRef::Real(x) => x.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => bytes.len().into(),
    }
}

fn run_mysql(client: &mut Client, sql: &str, id: i64) -> Result<Vec<Value>, ClientError> {
    // A prepared statement would bind the id. But MariaDB records executions of prepared statements
    // with neither text nor digest (events_statements_history*, 10.11), and most drivers send text.
    // The id is a number, so none of the client's text gets into the statement.
    let text = sql.replace(ID, &id.to_string());
    let mut shown = Vec::new();
    let value = |value: &Option<&[u8]>| value.map_or(Value::Null, |value| String::from_utf8_lossy(value).into());
    client.run(&text, &mut |columns, values| {
        if shown.len() < ROWS_IN_ANSWER {
            shown.push(Value::Object(columns.iter().cloned().zip(values.iter().map(value)).collect()));
        }
    })?;
    Ok(shown)
}
