//! A connection to a Kafka broker: one request and its answer at a time. TLS begins with the first byte
//! here.

use std::time::Instant;

use holdup_protocol::database::kafka::{self, Call, Mechanism, Session, Writer};
use holdup_protocol::database::{Error, Login};

use super::channel::{Channel, Speaker};
use super::{LineError, PATIENCE, Place, Trust};
use crate::connections::Connections;

/// Largest answer, bytes: some hundred thousand partitions.
const ANSWER_BYTES: usize = 32 << 20;

/// A logged-in connection.
pub(crate) struct CallLine {
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

impl From<Error> for LineError {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}

impl CallLine {
    /// Connects, over TLS if there is a `trust`, and logs in if there is an `account`.
    pub(crate) fn open(
        (host, port): (&str, u16),
        account: Option<(Mechanism, &Login)>,
        trust: Option<&Trust<'_>>,
        connections: &Connections,
    ) -> Result<Self, LineError> {
        let deadline = Instant::now() + PATIENCE;
        let channel = Channel::open(&Place::Network(host, port), deadline, connections)?;
        let mut line = Self { session: Session::new(ANSWER_BYTES), channel };
        if let Some(trust) = trust {
            line.channel.encrypt(host, trust, deadline)?;
        }
        if let Some((mechanism, login)) = account {
            kafka::authenticate(mechanism, login, |call, body| line.ask(call, body))?;
        }
        Ok(line)
    }

    /// The answer to a request.
    pub(crate) fn ask(&mut self, call: Call, body: &Writer) -> Result<Vec<u8>, LineError> {
        self.session.send(call, body)?;
        let mut answer = None;
        self.channel.until(&mut self.session, Instant::now() + PATIENCE, |session, received| {
            answer = session.feed(received)?;
            Ok(answer.is_some())
        })?;
        answer.ok_or_else(|| LineError::Broken("the connection is closed".to_owned()))
    }
}
