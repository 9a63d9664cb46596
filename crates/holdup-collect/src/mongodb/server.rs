//! The connection with the server: how it is made, what its errors mean, and the documents of a
//! cursor. It sends nothing but a [`Command`].

use std::sync::Arc;

use holdup_mongodb::{Value, Version};
use holdup_protocol::database::mongodb::Account;
use holdup_protocol::database::{Error, Login};

use super::address::Address;
use super::commands::Command;
use crate::connections::Connections;
use crate::database::{self, ErrorCode};
use crate::line::{DocumentLine, PATIENCE};

/// Why a command has no answer: the server numbers its errors, and 0 is holdup's own.
pub(super) type Failure = database::Failure<i64>;

impl ErrorCode for i64 {
    fn say(&self, words: &str) -> String {
        if *self == 0 { words.to_owned() } else { format!("{words} ({self})") }
    }

    fn of_protocol(error: Error) -> Failure {
        match &error {
            Error::UnsupportedAuth(_) => Failure::Login(format!(
                "{error}; give the account the other one: db.updateUser(USER, {{mechanisms: ['SCRAM-SHA-256'], \
                 pwd: …}})"
            )),
            Error::Refused(_) => Failure::Login(format!(
                "{error}; set scramSHA256IterationCount to 15000 on the server, then the account's password again"
            )),
            Error::ServerNotProved | Error::LoginRefused { .. } => Failure::Login(error.to_string()),
            _ => Failure::Lost(error.to_string()),
        }
    }
}

/// The server's codes for what the account may not do: `Unauthorized`, and that of a cloud's service.
const DENIED: [i64; 2] = [13, 8_000];

/// Codes for what the server does not have: `CommandNotFound`, `CommandNotSupported`, `NotImplemented`,
/// an unknown stage, and an option that only another kind of server has.
const LACKING: [i64; 6] = [59, 115, 238, 40_324, 20, 303];

/// `NoReplicationEnabled`: a server that stands alone.
const ALONE: i64 = 76;

impl Failure {
    /// Whether the account lacks a right.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Server(code, _) if DENIED.contains(code))
    }

    /// Whether the server does not have what was asked for.
    pub(super) fn is_lacking(&self) -> bool {
        matches!(self, Self::Server(code, _) if LACKING.contains(code))
    }

    /// Whether the server is not part of a replica set.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Server(ALONE, _))
    }
}

/// A connection.
pub(super) struct Server {
    line: DocumentLine,
    /// The server's version, as it writes it.
    pub(super) version: Option<String>,
}

impl Server {
    /// All of holdup's connections to the server share `connections`.
    pub(super) fn open(address: &Address, connections: &Connections) -> Result<Self, Failure> {
        let trust = address.tls.trust("tlsCAFile");
        let account = address.user.clone().map(|user| Account {
            login: Arc::new(Login::new(user, address.password.clone(), None)),
            source: address.auth_source.clone(),
        });
        let line = DocumentLine::open((&address.host, address.port), account, trust.as_ref(), connections)?;
        let mut server = Self { line, version: None };
        server.version = match server.ask(Command::Build) {
            Ok(build) => build.get("version").and_then(Value::text).map(str::to_owned),
            Err(Failure::Server(..)) => None,
            Err(failure) => return Err(failure),
        };
        Ok(server)
    }

    /// The version's first two numbers.
    pub(super) fn release(&self) -> Option<Version> {
        self.version.as_deref().and_then(Version::parse)
    }

    /// The answer to a command.
    pub(super) fn ask(&mut self, command: Command<'_>) -> Result<Value, Failure> {
        match self.line.ask(command.database(), command.document(), PATIENCE)? {
            Ok(answer) => Ok(answer),
            Err((code, words)) => Err(Failure::Server(code, words)),
        }
    }

    /// The first documents of a cursor.
    pub(super) fn list(&mut self, command: Command<'_>) -> Result<Vec<Value>, Failure> {
        let mut answer = self.ask(command)?;
        take(&mut answer, "cursor").and_then(|mut cursor| take(&mut cursor, "firstBatch")).map_or_else(
            || Err(Failure::Server(0, "an answer without a cursor".to_owned())),
            |batch| if let Value::List(items) = batch { Ok(items) } else { Ok(Vec::new()) },
        )
    }
}

/// Takes a field out of a document.
pub(super) fn take(value: &mut Value, field: &str) -> Option<Value> {
    let Value::Map(entries) = value else { return None };
    let place = entries.iter().position(|(name, _)| name == field)?;
    Some(entries.swap_remove(place).1)
}
