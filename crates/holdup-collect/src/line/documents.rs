//! A connection to MongoDB: one command and its document at a time. TLS begins with the first byte here.

use std::time::{Duration, Instant};

use holdup_mongodb::{Value, Writer};
use holdup_protocol::database::mongodb::{Account, Event, Session, failure};

use super::channel::{Channel, Speaker};
use super::{LineError, PATIENCE, Place, Trust};
use crate::connections::Connections;

/// Largest answer, bytes: a server's largest document, and its frame.
const DOCUMENT_BYTES: usize = 17 << 20;

/// A logged-in connection.
pub(crate) struct DocumentLine {
    session: Session,
    channel: Channel,
}

impl Speaker for Session {
    fn output(&self) -> &[u8] {
        Session::output(self)
    }

    fn consumed(&mut self, count: usize) {
        Session::consumed(self, count);
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
        let deadline = Instant::now() + PATIENCE;
        let channel = Channel::open(&Place::Network(host, port), deadline, connections)?;
        let mut line = Self { session: Session::new(account, DOCUMENT_BYTES), channel };
        if let Some(trust) = trust {
            line.channel.encrypt(host, trust, deadline)?;
        }
        line.until(&mut Heard::default(), deadline, |heard| heard.logged_in)?;
        Ok(line)
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
        self.channel.until(&mut self.session, deadline, |session, received| {
            session.feed(received, &mut |event| heard.take(event))?;
            Ok(enough(heard))
        })
    }
}
