//! A connection to a database of either dialect: the answer of one statement at a time. Redis' and MongoDB's,
//! of commands, and Kafka's, of requests, are beside it; all speak over a [`Channel`]. The
//! protocols are in `holdup-protocol`; this is their caller. What an error means is for each
//! collector to say.

mod calls;
mod channel;
#[cfg(feature = "mongodb")]
mod documents;
mod exchange;
mod tls;
mod transport;

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdup_protocol::database::{Dialect, Error, Event, Login, Session, Statement, TlsMode};

pub(crate) use self::calls::CallLine;
use self::channel::Channel;
#[cfg(feature = "mongodb")]
pub(crate) use self::documents::DocumentLine;
pub(crate) use self::exchange::ExchangeLine;
pub(crate) use self::tls::{Tls, Trust};
use crate::connections::Connections;
use crate::table::{ANSWER_BYTES, Rows};

/// Longest wait for a connection, or for more of an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Why a connection or an answer failed.
#[derive(Debug)]
pub(crate) enum LineError {
    /// No connection was made.
    Unreachable(std::io::Error),
    /// The connection broke, was closed, or may not be opened.
    Broken(String),
    /// Nothing was received for [`PATIENCE`]: the server accepts but does not respond.
    Silent(String),
    /// The answer went on for longer than the caller allowed.
    Late(String),
    /// The protocol's own errors.
    Protocol(Error),
}

impl LineError {
    /// Whether nothing listens there. That includes a socket file that does not exist.
    pub(crate) fn is_refused(&self) -> bool {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        matches!(self, Self::Unreachable(error) if matches!(error.kind(), ConnectionRefused | NotFound))
    }
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "{error}"),
            Self::Broken(why) | Self::Silent(why) | Self::Late(why) => f.write_str(why),
            Self::Protocol(error) => write!(f, "{error}"),
        }
    }
}

impl From<std::io::Error> for LineError {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        if matches!(error.kind(), TimedOut | WouldBlock) {
            return Self::Silent(format!("no answer within {} s", PATIENCE.as_secs()));
        }
        Self::Broken(error.to_string())
    }
}

/// Where a server is.
pub(crate) enum Place<'a> {
    /// Host and port.
    Network(&'a str, u16),
    /// The path of a Unix socket.
    Local(String),
}

/// A logged-in connection.
pub(crate) struct Line {
    session: Session,
    channel: Channel,
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.channel.is_at_rest() && self.session.is_ready() {
            // Without it the server counts an aborted connection, and may log it.
            self.session.quit();
            let _ = self.channel.send(&mut self.session);
        }
    }
}

/// The parts of the server's answer that a call waits for.
#[derive(Default)]
struct Heard {
    logged_in: bool,
    tls: bool,
    done: bool,
    failed: Option<(String, String)>,
    rows: Rows,
}

impl Heard {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::LoggedIn => self.logged_in = true,
            Event::StartTls => self.tls = true,
            Event::Row { columns, values, .. } => self.rows.add(columns, values),
            Event::Done { .. } => self.done = true,
            Event::Failed { code, message, .. } => self.failed = Some((code.to_owned(), message.to_owned())),
        }
    }
}

/// The answer to a statement.
#[derive(Debug)]
pub(crate) enum Answer {
    Rows(Rows),
    /// It is larger than [`ANSWER_BYTES`]. Unless the rest was read, the connection is closed.
    TooLarge,
    /// The server's error: number or SQLSTATE, and message.
    Failed(String, String),
}

impl Line {
    /// Connects and logs in, over TLS if there is a `trust`.
    pub(crate) fn open(
        place: &Place<'_>,
        (dialect, login): (Dialect, Login),
        trust: Option<&Trust<'_>>,
        connections: &Connections,
    ) -> Result<Self, LineError> {
        let wish = if trust.is_some() { TlsMode::On } else { TlsMode::Off };
        let mut session = Session::new(dialect, Arc::new(login), wish);
        session.keep_every_row();
        if dialect == Dialect::Mysql {
            // The collectors mark each of their statements, which the session's own rollback is not.
            session.leave_transactions();
        }
        let deadline = Instant::now() + PATIENCE;
        let mut line = Self { session, channel: Channel::open(place, deadline, connections)? };
        let mut heard = Heard::default();
        line.until(&mut heard, deadline, |heard| heard.logged_in || heard.tls)?;
        if let (true, Place::Network(host, _), Some(trust)) = (heard.tls, place, trust) {
            // MySQL's request for TLS.
            line.channel.send(&mut line.session)?;
            line.channel.encrypt(host, trust, deadline)?;
            line.session.tls_started();
            line.until(&mut heard, deadline, |heard| heard.logged_in)?;
        }
        Ok(line)
    }

    /// Sends and receives until `enough` was heard.
    fn until(
        &mut self,
        heard: &mut Heard,
        deadline: Instant,
        enough: impl Fn(&Heard) -> bool,
    ) -> Result<(), LineError> {
        self.channel.until(&mut self.session, deadline, |session, received| {
            session.feed(received, &mut |event| heard.take(event))?;
            Ok(enough(heard))
        })
    }

    /// Executes one statement, whose whole answer may take this `time`. An answer that is too large
    /// is read to its end if `reads_on`; otherwise the connection is closed at once.
    pub(crate) fn execute(
        &mut self,
        statement: Statement,
        time: Duration,
        reads_on: bool,
    ) -> Result<Answer, LineError> {
        self.session.execute(&[statement], true).map_err(|refused| LineError::Broken(refused.to_string()))?;
        let mut heard = Heard::default();
        let enough =
            |heard: &Heard| heard.done || heard.failed.is_some() || !reads_on && heard.rows.bytes > ANSWER_BYTES;
        let ended = self.until(&mut heard, Instant::now() + time, enough);
        ended.map_err(|error| match error {
            LineError::Late(_) => LineError::Late(format!("no complete answer within {} s", time.as_secs())),
            other => other,
        })?;
        if heard.rows.bytes > ANSWER_BYTES {
            if !heard.done && heard.failed.is_none() {
                self.close();
            }
            return Ok(Answer::TooLarge);
        }
        Ok(heard.failed.map_or(Answer::Rows(heard.rows), |(code, message)| Answer::Failed(code, message)))
    }

    /// Closes the connection: its server is alive, and what it still sends is not wanted.
    pub(crate) fn close(&mut self) {
        self.channel.close();
    }
}
