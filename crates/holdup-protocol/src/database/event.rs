//! What a session reports: events while it works, an error once it is broken.

use thiserror::Error;

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The login succeeded; statements can be executed.
    LoggedIn,
    /// TLS begins here: the caller sends the output unencrypted, performs the handshake on the same
    /// socket and then calls [`crate::database::Session::tls_started`].
    StartTls,
    /// The first row of a statement's first result that has one; only if it was requested and is at
    /// most 1 MiB. See [`crate::database::Session::keep_every_row`] for all rows.
    Row {
        /// Index of the statement, from 0.
        statement: usize,
        /// Names of its columns.
        columns: &'a [String],
        /// Its values as text; `None` is NULL. Binary columns are in the server's encoding.
        values: &'a [Option<&'a [u8]>],
    },
    /// All statements were executed.
    Done {
        /// Rows received, of all statements.
        rows: u64,
        /// Rows changed by them, as the server counts.
        affected: u64,
        /// Bytes received.
        bytes: u64,
        /// Warnings that the server counted.
        warnings: u64,
        /// Hash of the rows, if requested: see [`crate::database::Rows`].
        hash: u64,
    },
    /// One of them was refused; those after it were not sent, and an open transaction was rolled
    /// back.
    Failed {
        /// Index of the statement, from 0.
        statement: usize,
        /// MySQL's or MongoDB's number, or PostgreSQL's SQLSTATE.
        code: &'a str,
        /// The server's message. It may quote values of the statement.
        message: &'a str,
    },
}

/// Why the connection is broken.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The server violates the protocol.
    #[error("the server violates the protocol: {0}")]
    Protocol(&'static str),
    /// The server refused the login.
    #[error("the server refused the login ({code}): {message}")]
    LoginRefused {
        /// MySQL's or MongoDB's number, or PostgreSQL's SQLSTATE.
        code: String,
        /// The server's message.
        message: String,
    },
    /// The server closed the connection by itself, and said why.
    #[error("the server closed the connection ({code}): {message}")]
    ClosedByServer {
        /// MySQL's or MongoDB's number, or PostgreSQL's SQLSTATE.
        code: String,
        /// The server's message.
        message: String,
    },
    /// The account uses an authentication method that is not supported here.
    #[error("the account uses the authentication method {0}, which holdup does not support")]
    UnsupportedAuth(String),
    /// The account's method sends its password in clear text, and the connection has no TLS.
    #[error("the server asks for the password itself ({0}), which is only sent encrypted: add ?tls=on to the address")]
    NeedsTls(&'static str),
    /// TLS was requested, and the server does not offer it.
    #[error("the server offers no TLS; with ?tls=off the connection is not encrypted")]
    TlsNotOffered,
    /// The server could not prove that it knows the password: it may be an impostor.
    #[error("the server did not prove that it knows the account; it may be an impostor")]
    ServerNotProved,
    /// The server requested something that is never done.
    #[error("the server asked for {0}, which holdup never does")]
    Refused(&'static str),
    /// A message of the server exceeds the limit for its kind.
    #[error("{0} of the server is too large")]
    TooLarge(&'static str),
    /// The system provides no random numbers, which authentication needs.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
}

/// Why statements were not accepted; the session is unchanged.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ExecuteError {
    /// Not logged in yet, or other statements are running.
    #[error("the connection is not ready")]
    NotReady,
    /// No statement was given.
    #[error("no statement was given")]
    Empty,
    /// One is larger than [`crate::database::MAX_STATEMENT_BYTES`].
    #[error("a statement with its parameters is larger than 16 MB")]
    TooLarge,
    /// One has more than 65,535 parameters.
    #[error("a statement has more than 65535 parameters")]
    TooManyParameters,
    /// Commands for a server of SQL, statements for MongoDB, or `COPY` for another than PostgreSQL.
    #[error("the server does not take what another kind of database takes")]
    OtherKind,
    /// MongoDB has transactions only in replica sets.
    #[error("the server has no transactions: it is neither a member of a replica set nor a mongos")]
    NoTransactions,
    /// The system provides no random numbers, of which MongoDB's sessions have their names.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
    /// PostgreSQL ends a text at its first NUL.
    #[error("the text of a statement contains a NUL byte")]
    HoldsNul,
}

/// Most bytes of a server's message that are kept.
const MAX_MESSAGE_BYTES: usize = 2048;

/// A server's message as text of limited length.
pub(crate) fn shortened(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MAX_MESSAGE_BYTES)]).into_owned()
}
