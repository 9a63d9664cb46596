//! A connection that speaks PostgreSQL's protocol: how it is made, and the meaning of its errors. It
//! knows no server's views: PgBouncer's console is read through it, too.

use holdup_protocol::database::{Dialect, Error, Login, Statement};

use super::address::{Address, Tls};
use crate::connections::Connections;
use crate::database::{self, ErrorCode};
use crate::line::{Answer, Line, LineError, PATIENCE, Place, Trust};
use crate::table::{ANSWER_BYTES, Rows};

/// Why a statement has no answer: an error has a SQLSTATE.
pub(crate) type Failure = database::Failure<String>;

/// The SQLSTATE for a database that does not exist.
pub(crate) const NO_DATABASE: &str = "3D000";

impl ErrorCode for String {
    fn say(&self, words: &str) -> String {
        format!("{words} ({self})")
    }

    fn of_protocol(error: Error) -> Failure {
        match &error {
            // Class 28: invalid authorization.
            Error::LoginRefused { code, .. } if code.starts_with("28") => Failure::Login(error.to_string()),
            Error::LoginRefused { code, message } if code == NO_DATABASE => {
                Failure::Server(code.clone(), message.clone())
            }
            Error::UnsupportedAuth(_) | Error::ServerNotProved => Failure::Login(error.to_string()),
            _ => Failure::Lost(error.to_string()),
        }
    }
}

/// An open connection.
pub(crate) struct Connection(Line);

impl Connection {
    /// Opens a connection, encrypted as far as the address asks for it.
    pub(crate) fn open(address: &Address, connections: &Connections) -> Result<Self, Failure> {
        let trust = match address.tls {
            _ if address.host.starts_with('/') => None,
            Tls::Disable => None,
            Tls::Prefer | Tls::Require => Some(Trust::All),
            Tls::VerifyCa | Tls::VerifyFull => Some(Trust::Authority {
                file: address.root_certificates.as_deref(),
                parameter: "sslrootcert",
                any_name: address.tls == Tls::VerifyCa,
            }),
        };
        match Self::connect(address, trust.as_ref(), connections) {
            Err(LineError::Protocol(Error::TlsNotOffered)) if address.tls == Tls::Prefer => {
                Ok(Self::connect(address, None, connections)?)
            }
            other => Ok(other?),
        }
    }

    fn connect(address: &Address, trust: Option<&Trust<'_>>, connections: &Connections) -> Result<Self, LineError> {
        let place = if address.host.starts_with('/') {
            Place::Local(format!("{}/.s.PGSQL.{}", address.host, address.port))
        } else {
            Place::Network(&address.host, address.port)
        };
        let login = Login::new(address.user.clone(), address.password.clone(), Some(address.database.clone()));
        Line::open(&place, (Dialect::Postgres, login), trust, connections).map(Self)
    }

    /// The rows of one statement.
    pub(crate) fn rows(&mut self, text: String, is_prepared: bool, values: &[&str]) -> Result<Rows, Failure> {
        let parameters = values.iter().map(|value| Some(value.as_bytes().to_vec())).collect();
        match self.0.execute(Statement { text, is_prepared, parameters }, PATIENCE, true)? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Failed(code, words) => Err(Failure::Server(code, words)),
            Answer::TooLarge => {
                Err(Failure::Server("holdup".to_owned(), format!("the answer exceeds {ANSWER_BYTES} bytes")))
            }
        }
    }
}
