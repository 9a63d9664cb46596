//! What a session tells: events while it is of use, an error when it is no longer.

use thiserror::Error;

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The account was let in; statements can be executed.
    LoggedIn,
    /// TLS begins here: the caller sends what is in the output as it is, makes the handshake upon the same socket
    /// and then calls [`crate::database::Session::tls_started`].
    StartTls,
    /// The first row of a statement's first result that has one; only if it was asked for and is at most 1 MiB.
    Row {
        /// Which of the statements given, from 0.
        statement: usize,
        /// Names of its columns.
        columns: &'a [String],
        /// Its values as text; `None` is NULL. Binary columns are as the server writes them.
        values: &'a [Option<&'a [u8]>],
    },
    /// All statements were executed.
    Done {
        /// Rows received, of all of them.
        rows: u64,
        /// Rows that they changed, as the server counts.
        affected: u64,
        /// Bytes received.
        bytes: u64,
        /// Warnings that the server counted.
        warnings: u64,
        /// What the rows hash to, if that was asked for: see [`crate::database::Rows`].
        hash: u64,
    },
    /// One of them was refused; those after it were not sent, and an open transaction was rolled back.
    Failed {
        /// Which of the statements given, from 0.
        statement: usize,
        /// MySQL's number or PostgreSQL's SQLSTATE.
        code: &'a str,
        /// What the server says. It may quote values of the statement.
        message: &'a str,
    },
}

/// Why the connection is of no more use.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The server does not keep to the protocol.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(&'static str),
    /// The server said no to the account.
    #[error("the server refused the login ({code}): {message}")]
    LoginRefused {
        /// MySQL's number or PostgreSQL's SQLSTATE.
        code: String,
        /// What the server says.
        message: String,
    },
    /// The server ended the connection by itself, and said why.
    #[error("the server closed the connection ({code}): {message}")]
    ClosedByServer {
        /// MySQL's number or PostgreSQL's SQLSTATE.
        code: String,
        /// What the server says.
        message: String,
    },
    /// The account is to prove itself in a way that is not known here.
    #[error("the account uses the authentication method {0}, which holdup does not speak")]
    UnsupportedAuth(String),
    /// The account is to send its password in the clear, and there is no TLS.
    #[error("the server asks for the password itself ({0}), which is only sent encrypted: add ?tls=on to the address")]
    NeedsTls(&'static str),
    /// TLS was wanted, and the server has none.
    #[error("the server offers no TLS; with ?tls=off the connection is not encrypted")]
    TlsNotOffered,
    /// The server could not prove that it knows the password: it may be another than it says.
    #[error("the server did not prove that it knows the account; it may not be the one that was meant")]
    ServerNotProved,
    /// The server wanted something that is never done.
    #[error("the server asked for {0}, which holdup never does")]
    Refused(&'static str),
    /// A message of the server is larger than anything of its kind may be.
    #[error("{0} of the server is too large")]
    TooLarge(&'static str),
    /// The system gives no random numbers, without which nobody can prove who they are.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
}

/// Why statements were not taken; the session is as it was.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Not logged in, or others are being executed.
    #[error("the connection is not ready")]
    NotReady,
    /// No statement was given.
    #[error("there is no statement")]
    Empty,
    /// One is larger than [`crate::database::MAX_STATEMENT_BYTES`].
    #[error("a statement with its parameters is larger than 16 MB")]
    TooLarge,
    /// One has more than 65,535 parameters.
    #[error("a statement has more than 65535 parameters")]
    TooManyParameters,
    /// PostgreSQL ends a text at its first NUL.
    #[error("the text of a statement holds a NUL byte")]
    HoldsNul,
}

/// Most bytes of a server's message that are kept.
const MAX_MESSAGE_BYTES: usize = 2048;

/// A server's words as text that is not too long.
pub(crate) fn shortened(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MAX_MESSAGE_BYTES)]).into_owned()
}
