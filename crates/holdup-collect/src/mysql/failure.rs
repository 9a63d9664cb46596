//! Why a server gave no answer: its own errors and their meaning, and the limits of waiting for it.

use std::error::Error as _;
use std::time::Duration;

use crate::database::Trouble;

/// Longest wait for a connection, or for more of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Size limit of one whole answer.
pub(super) const ANSWER_BYTES: usize = 32 << 20;

/// Why a statement has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// The answer exceeds holdup's size limit.
    Large(String),
    /// Nothing listens there.
    Refused(String),
    /// The server's error, number and message.
    Server(u16, String),
}

impl Trouble for Failure {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_) | Self::Large(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Large(why) | Self::Refused(why) => f.write_str(why),
            Self::Server(number, words) => write!(f, "error {number}: {words}"),
        }
    }
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(error) => Self::Server(error.code, error.message),
            mysql::Error::IoError(error) => Self::io(&error),
            mysql::Error::CodecError(error) => match error.source().and_then(|source| source.downcast_ref()) {
                Some(error) => Self::io(error),
                // The driver does not export the variants of this error.
                None if error.to_string().starts_with("Packet is larger") => Self::large(),
                None => Self::Lost(error.to_string()),
            },
            mysql::Error::DriverError(mysql::DriverError::ConnectTimeout) => {
                Self::Lost(format!("no connection within {} s", PATIENCE.as_secs()))
            }
            mysql::Error::DriverError(mysql::DriverError::CouldNotConnect(Some((_, why, kind)))) => {
                if kind == std::io::ErrorKind::ConnectionRefused { Self::Refused(why) } else { Self::Lost(why) }
            }
            other => Self::Lost(other.to_string()),
        }
    }
}

impl Failure {
    fn io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        if matches!(error.kind(), TimedOut | WouldBlock) {
            return Self::silent();
        }
        Self::Lost(error.to_string())
    }

    pub(super) fn silent() -> Self {
        Self::Silent(format!("no answer within {} s", PATIENCE.as_secs()))
    }

    pub(super) fn large() -> Self {
        Self::Large(format!("the answer is larger than {} MiB", ANSWER_BYTES >> 20))
    }

    /// Whether a privilege is missing: 1142 for a table, 1143 for a column, 1227 in general, 1044
    /// for a database.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Server(1044 | 1142 | 1143 | 1227, _))
    }

    /// Whether the account or password is wrong: 1045 in general, 1698 for a plugin, 1130 for the
    /// host, 1251, 1524 and 2059 for the authentication method, 1862 expired, 3118 and 4151 locked.
    pub(super) fn is_login(&self) -> bool {
        matches!(self, Self::Server(1045 | 1130 | 1251 | 1524 | 1698 | 1862 | 2059 | 3118 | 4151, _))
    }
}
