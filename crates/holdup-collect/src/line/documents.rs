//! A connection to MongoDB: one command and its document at a time, with the limits, the TLS and the
//! slots of the other databases' connections. TLS begins with the first byte here.

use std::time::{Duration, Instant};

use holdup_mongodb::{Value, Writer};
use holdup_protocol::database::mongodb::{Account, Event, Session, failure};

use super::transport::Transport;
use super::{LineError, PATIENCE, Place, Trust, tls};
use crate::connections::{Connections, Slot};

/// Largest answer, bytes: a server's largest document, and its frame.
const DOCUMENT_BYTES: usize = 17 << 20;

/// A logged-in connection.
pub(crate) struct DocumentLine {
    session: Session,
    /// None once it is closed.
    transport: Option<Transport>,
    /// Whether the server still owes an answer that holdup no longer waits for.
    is_silent: bool,
    /// Returned last.
    slot: Option<Slot>,
}

impl Drop for DocumentLine {
    fn drop(&mut self) {
        let socket = self.transport.as_ref().filter(|_| self.is_silent).and_then(|it| it.socket().ok());
        if let (Some(slot), Some(socket)) = (socket.is_some().then(|| self.slot.take()).flatten(), socket) {
            slot.keep(socket);
        }
    }
}

/// What a call waits for.
#[derive(Default)]
struct Heard {
    logged_in: bool,
    answer: Option<Result<DocumentAnswer, String>>,
}

/// An answer: the document, or the server's code and message.
pub(crate) type DocumentAnswer = Result<Value, (i64, String)>;

impl Heard {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::LoggedIn => self.logged_in = true,
            Event::Answer(document) => {
                self.answer = Some(match failure(document) {
                    Some(failure) => Ok(Err(failure)),
                    None => document.value().map(Ok).map_err(|error| error.to_string()),
                });
            }
        }
    }
}

impl DocumentLine {
    /// Connects and logs in, over TLS if there is a `trust`.
    pub(crate) fn open(
        (host, port): (&str, u16),
        account: Option<Account>,
        trust: Option<&Trust<'_>>,
        connections: &Connections,
    ) -> Result<Self, LineError> {
        let slot = connections.take_slot().map_err(LineError::Broken)?;
        let deadline = Instant::now() + PATIENCE;
        let transport = Transport::open(&Place::Network(host, port), deadline).map_err(LineError::Unreachable)?;
        let session = Session::new(account, DOCUMENT_BYTES);
        let mut line = Self { session, transport: Some(transport), is_silent: false, slot: Some(slot) };
        if let Some(trust) = trust {
            line.encrypt(host, trust, deadline)?;
        }
        line.until(&mut Heard::default(), deadline, |heard| heard.logged_in)?;
        Ok(line)
    }

    fn encrypt(&mut self, host: &str, trust: &Trust<'_>, deadline: Instant) -> Result<(), LineError> {
        let client = tls::client(host, trust).map_err(|why| LineError::Broken(format!("TLS: {why}")))?;
        let Some(Transport::Plain(mut stream)) = self.transport.take() else {
            return Err(LineError::Broken("TLS needs a connection by TCP".to_owned()));
        };
        // The socket stays with the line: a server that falls silent here keeps its slot, too.
        match tls::shake_hands(client, &mut stream, deadline) {
            Ok(client) => {
                self.transport = Some(Transport::encrypted(client, stream));
                Ok(())
            }
            Err(error) => {
                self.transport = Some(Transport::Plain(stream));
                let error = LineError::from(error);
                self.is_silent |= matches!(error, LineError::Silent(_));
                Err(error)
            }
        }
    }

    /// Sends `command` to `database`. The whole answer may take this `time`.
    pub(crate) fn ask(&mut self, database: &str, command: Writer, time: Duration) -> Result<DocumentAnswer, LineError> {
        self.session.send(database, command).map_err(LineError::Protocol)?;
        let mut heard = Heard::default();
        self.until(&mut heard, Instant::now() + time, |heard| heard.answer.is_some())?;
        match heard.answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(why)) => Ok(Err((0, why))),
            None => Err(LineError::Broken("the connection is closed".to_owned())),
        }
    }

    /// Sends and receives until `enough` was heard.
    fn until(
        &mut self,
        heard: &mut Heard,
        deadline: Instant,
        enough: impl Fn(&Heard) -> bool,
    ) -> Result<(), LineError> {
        let result = self.talk(heard, deadline, enough);
        self.is_silent |= matches!(result, Err(LineError::Silent(_) | LineError::Late(_)));
        result
    }

    fn talk(&mut self, heard: &mut Heard, deadline: Instant, enough: impl Fn(&Heard) -> bool) -> Result<(), LineError> {
        use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        let closed = || LineError::Broken("the connection is closed".to_owned());
        let late = || LineError::Late("no complete answer in time".to_owned());
        let (mut bytes, mut is_answering) = (vec![0; 64 << 10], false);
        while !enough(heard) {
            let transport = self.transport.as_mut().ok_or_else(closed)?;
            let output = self.session.output();
            if !output.is_empty() {
                transport.send(output)?;
                let sent = output.len();
                self.session.consumed(sent);
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(late());
            }
            let time = rest.min(PATIENCE);
            let count = match transport.receive(&mut bytes, time) {
                Err(error) if error.kind() == Interrupted => 0,
                Err(error) if is_answering && time < PATIENCE && matches!(error.kind(), TimedOut | WouldBlock) => {
                    return Err(late());
                }
                Ok(0) => return Err(LineError::Broken("the server closed the connection".to_owned())),
                result => result?,
            };
            is_answering = true;
            let received = bytes.get(..count).unwrap_or_default();
            self.session.feed(received, &mut |event| heard.take(event)).map_err(LineError::Protocol)?;
        }
        Ok(())
    }
}
