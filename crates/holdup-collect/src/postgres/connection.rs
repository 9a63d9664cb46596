//! A connection that speaks PostgreSQL's protocol: how it is made, and the meaning of its errors. It
//! knows no server's views: PgBouncer's console is read through it, too.

use holdup_protocol::database::{Dialect, Error, Login, Statement};

use super::address::{Address, Tls};
use crate::connections::Connections;
use crate::database::Trouble;
use crate::line::{ANSWER_BYTES, Answer, Line, LineError, PATIENCE, Place, Trust};
pub(crate) use crate::line::{Row, Rows};

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// Nothing listens there.
    Refused(String),
    /// The server rejected the login.
    Login(String),
    /// The server's error, SQLSTATE and message.
    Server(String, String),
}

impl Trouble for Failure {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_))
    }

    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    fn not_tried(why: String) -> Self {
        Self::Lost(why)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Refused(why) | Self::Login(why) => f.write_str(why),
            Self::Server(code, words) => write!(f, "{words} ({code})"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            // Class 28: invalid authorization; 3D000: no such database.
            Error::LoginRefused { code, .. } if code.starts_with("28") || code == "3D000" => {
                Self::Login(error.to_string())
            }
            Error::UnsupportedAuth(_) | Error::ServerNotProved => Self::Login(error.to_string()),
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl From<LineError> for Failure {
    fn from(error: LineError) -> Self {
        if error.is_refused() {
            return Self::Refused(error.to_string());
        }
        match error {
            LineError::Silent(why) | LineError::Late(why) => Self::Silent(why),
            LineError::Protocol(error) => Self::from(error),
            other => Self::Lost(other.to_string()),
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
