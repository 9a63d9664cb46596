//! One broker: its connection, and what its errors mean.

use holdup_protocol::database::Error;
use holdup_protocol::database::kafka::{self, Call, Writer, read};

use super::address::Address;
use crate::connections::Connections;
use crate::database::{self, ErrorCode};
use crate::line::{CallLine, LineError};

/// Why a request has no answer: brokers number their errors.
pub(super) type Failure = database::Failure<i16>;

impl ErrorCode for i16 {
    fn say(&self, words: &str) -> String {
        let denied = if read::DENIED.contains(self) { ": the account may not" } else { "" };
        format!("{words} (error {self}{denied})")
    }

    fn of_protocol(error: Error) -> Failure {
        match error {
            Error::UnsupportedAuth(_) | Error::LoginRefused { .. } | Error::ServerNotProved | Error::Refused(_) => {
                Failure::Login(error.to_string())
            }
            Error::TooLarge(_) => Failure::Large(format!("{error}, or no Kafka broker listens there")),
            _ => Failure::Lost(error.to_string()),
        }
    }
}

/// A broker, and holdup's connection with it.
pub(super) struct Broker {
    host: String,
    port: u16,
    connections: Connections,
    line: Option<CallLine>,
}

impl Broker {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, connections: Connections::default(), line: None }
    }

    /// Whether it is at this place.
    pub(super) fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// Closes the connection, which is opened again when it is needed.
    pub(super) fn close(&mut self) {
        self.line = None;
    }

    /// The next attempt to connect is made at once.
    pub(super) fn forget_failures(&self) {
        self.connections.forget_failures();
    }

    /// The answer to a request, as `read` understands it.
    pub(super) fn ask<T>(
        &mut self,
        address: &Address,
        call: Call,
        body: &Writer,
        read: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let answer = self.try_ask(address, call, body, read);
        let named = |why| format!("broker {}:{}: {why}", self.host, self.port);
        answer.map_err(|failure| match failure {
            Failure::Lost(why) => Failure::Lost(named(why)),
            Failure::Silent(why) => Failure::Silent(named(why)),
            Failure::Refused(why) => Failure::Refused(named(why)),
            other => other,
        })
    }

    fn try_ask<T>(
        &mut self,
        address: &Address,
        call: Call,
        body: &Writer,
        read: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.connections.attempt(|| self.open(address))?,
        };
        let answer = line.ask(call, body).and_then(|answer| read(&answer).map_err(LineError::Protocol));
        let answer = answer.map_err(Failure::from);
        match &answer {
            Ok(_) => {
                self.connections.served();
                self.line = Some(line);
            }
            Err(failure) => self.connections.lost(failure.to_string()),
        }
        answer
    }

    fn open(&self, address: &Address) -> Result<CallLine, Failure> {
        let account = address.account.as_ref().map(|(mechanism, login)| (*mechanism, &**login));
        let trust = address.tls.trust("tls_ca");
        let mut line = CallLine::open((&self.host, self.port), account, trust.as_ref(), &self.connections)?;
        let answer = line.ask(kafka::API_VERSIONS, &Writer::default())?;
        match read::is_new_enough(&answer).map_err(LineError::Protocol)? {
            true => Ok(line),
            false => Err(Failure::Lost(format!("the broker is older than Kafka {}, which holdup needs", read::OLDEST))),
        }
    }
}
