//! What collectors of databases share: the connection across losses, and the results of a sample's
//! parts. It speaks no protocol.

use std::fmt::Display;

use holdup_protocol::database::{Dialect, Error};
use holdup_recording::Coverage;

use crate::backoff::Backoffs;
use crate::connections::Connections;
use crate::line::LineError;
pub(crate) use crate::trouble::{Reads, Trouble};
use crate::{ProbeError, ReadError};

/// Why a database has no answer. `Code` is what it numbers its errors with.
#[derive(Debug)]
pub(crate) enum Failure<Code> {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// The answer exceeds holdup's size limit.
    Large(String),
    /// Nothing listens there.
    Refused(String),
    /// The server rejected the login, or holdup will not log in this way.
    Login(String),
    /// The server's error, code and message.
    Server(Code, String),
}

/// What a database numbers its errors with.
pub(crate) trait ErrorCode: Sized {
    /// The error with this code, in the server's `words`.
    fn say(&self, words: &str) -> String;

    /// What an error of the protocol means.
    fn of_protocol(error: Error) -> Failure<Self>;

    /// What an answer means that began and did not end in time.
    fn late(why: String) -> Failure<Self> {
        Failure::Silent(why)
    }
}

impl<Code: ErrorCode> From<LineError> for Failure<Code> {
    fn from(error: LineError) -> Self {
        match error {
            refused if refused.is_refused() => Self::Refused(refused.to_string()),
            LineError::Silent(why) => Self::Silent(why),
            LineError::Late(why) => Code::late(why),
            LineError::Protocol(error) => Code::of_protocol(error),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl<Code: ErrorCode> Trouble for Failure<Code> {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_) | Self::Large(_))
    }

    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    fn not_tried(why: String) -> Self {
        Self::Lost(why)
    }
}

impl<Code: ErrorCode> Display for Failure<Code> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Large(why) | Self::Refused(why) | Self::Login(why) => {
                f.write_str(why)
            }
            Self::Server(code, words) => f.write_str(&code.say(words)),
        }
    }
}

impl<Code: ErrorCode> From<Failure<Code>> for ReadError {
    fn from(failure: Failure<Code>) -> Self {
        Self(failure.to_string())
    }
}

/// What a probe found.
pub(crate) struct Found<Parts> {
    /// What can be read.
    pub parts: Parts,
    /// An entry for each part.
    pub coverage: Vec<Coverage>,
    /// What the account may not do, and the grants for it.
    pub missing: Option<(String, String)>,
}

impl<Parts> Found<Parts> {
    /// An error if a grant of `source` is missing, unless the readable parts are enough.
    pub fn enough(mut self, source: &str, partial: bool) -> Result<Self, ProbeError> {
        match self.missing.take().filter(|_| !partial) {
            Some((why, grant)) => Err(ProbeError::MissingGrant { source_name: source.to_owned(), why, grant }),
            None => Ok(self),
        }
    }
}

/// The connection of a source with its server, across losses.
pub(crate) struct Link<S> {
    /// None before the first connection and after a loss.
    pub server: Option<S>,
    /// The number of connections, and when the next attempt is due.
    pub connections: Connections,
    /// Parts that failed lately.
    backoffs: Backoffs,
}

impl<S> Default for Link<S> {
    fn default() -> Self {
        Self { server: None, connections: Connections::default(), backoffs: Backoffs::default() }
    }
}

impl<S> Link<S> {
    /// A new connection, and what `probe` finds over it.
    pub fn find<T, E: Trouble>(
        &self,
        connect: impl FnOnce(&Connections) -> Result<S, E>,
        probe: impl FnOnce(&mut S) -> Result<T, E>,
    ) -> Result<(S, T), E> {
        let mut server = self.connections.attempt(|| connect(&self.connections))?;
        let found = probe(&mut server).inspect_err(|failure| self.connections.lost(failure.to_string()))?;
        Ok((server, found))
    }

    /// Begins the reads of a sample.
    pub fn reads(&mut self) -> Reads {
        Reads { backoffs: std::mem::take(&mut self.backoffs), ..Reads::default() }
    }

    /// Puts the connection back after those reads, if it still works.
    pub fn finish(&mut self, server: S, reads: Reads) -> Result<(), ReadError> {
        self.server = self.connections.keep(server, &reads);
        self.backoffs = reads.backoffs;
        ReadError::all(reads.failures)
    }
}

/// The failure of a new connection, as a gap.
pub(crate) fn cannot_connect(failure: impl Trouble) -> ReadError {
    ReadError(format!("cannot connect: {failure}"))
}

/// What the server said of a login that it refused, with where the password comes from.
pub(crate) fn refused_login(words: &dyn Display, user: &str, is_password_given: bool, dialect: Dialect) -> String {
    login_refused(words, user, is_password_given, dialect.password_variable())
}

/// The same with the environment variable that may hold the password.
pub(crate) fn login_refused(words: impl Display, user: &str, is_password_given: bool, variable: &str) -> String {
    if is_password_given {
        return format!("{words}. User {user} came with a password: check it in the address or in {variable}");
    }
    format!("{words}. User {user} came without a password: put it into the environment variable {variable}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_names_the_one_variable() {
        for (dialect, variable) in
            [(Dialect::Mysql, "HOLDUP_MYSQL_PASSWORD"), (Dialect::Postgres, "HOLDUP_POSTGRES_PASSWORD")]
        {
            let refused = |is_given| refused_login(&"refused", "me", is_given, dialect);
            assert_eq!(
                refused(false),
                format!("refused. User me came without a password: put it into the environment variable {variable}")
            );
            assert_eq!(
                refused(true),
                format!("refused. User me came with a password: check it in the address or in {variable}")
            );
        }
    }
}
