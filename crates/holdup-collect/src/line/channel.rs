//! The bytes of one connection, whatever its protocol: the socket with its time limits, TLS, and the
//! slot that it holds among the connections of its source.

use std::time::{Duration, Instant};

use holdup_protocol::database::{Error, Session};

use super::transport::Transport;
use super::{LineError, PATIENCE, Place, Trust, tls};
use crate::connections::{Connections, Slot};

/// What a protocol's session has to say.
pub(super) trait Speaker {
    /// The bytes to send.
    fn output(&self) -> &[u8];

    /// This many of them were sent.
    fn consumed(&mut self, count: usize);
}

impl Speaker for Session {
    fn output(&self) -> &[u8] {
        Session::output(self)
    }

    fn consumed(&mut self, count: usize) {
        Session::consumed(self, count);
    }
}

/// An open connection.
pub(super) struct Channel {
    /// None once it is closed.
    transport: Option<Transport>,
    /// Whether the server still owes an answer that holdup no longer waits for.
    is_silent: bool,
    /// Returned last.
    slot: Option<Slot>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        let socket = self.transport.as_ref().filter(|_| self.is_silent).and_then(|it| it.socket().ok());
        if let Some(socket) = socket
            && let Some(slot) = self.slot.take()
        {
            slot.keep(socket);
        }
    }
}

impl Channel {
    /// Connects, if the source has a slot left.
    pub(super) fn open(place: &Place<'_>, deadline: Instant, connections: &Connections) -> Result<Self, LineError> {
        let slot = connections.take_slot().map_err(LineError::Broken)?;
        let transport = Transport::open(place, deadline).map_err(LineError::Unreachable)?;
        Ok(Self { transport: Some(transport), is_silent: false, slot: Some(slot) })
    }

    /// Begins TLS.
    pub(super) fn encrypt(&mut self, host: &str, trust: &Trust<'_>, deadline: Instant) -> Result<(), LineError> {
        let client = tls::client(host, trust).map_err(|why| LineError::Broken(format!("TLS: {why}")))?;
        let Some(Transport::Plain(mut stream)) = self.transport.take() else {
            return Err(LineError::Broken("TLS needs a connection by TCP".to_owned()));
        };
        // The socket stays here: a server that falls silent now keeps its slot, too.
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

    /// Whether the server owes no answer.
    pub(super) fn is_at_rest(&self) -> bool {
        self.transport.is_some() && !self.is_silent
    }

    /// Sends what `session` has to say.
    pub(super) fn send(&mut self, session: &mut impl Speaker) -> Result<(), LineError> {
        let transport = self.transport.as_mut().ok_or_else(closed)?;
        let output = session.output();
        if !output.is_empty() {
            transport.send(output)?;
            let sent = output.len();
            session.consumed(sent);
        }
        Ok(())
    }

    /// Sends and receives until `take`, which gets what was received, has enough.
    pub(super) fn until<S: Speaker>(
        &mut self,
        session: &mut S,
        deadline: Instant,
        take: impl FnMut(&mut S, &[u8]) -> Result<bool, Error>,
    ) -> Result<(), LineError> {
        let result = self.talk(session, deadline, take);
        self.is_silent |= matches!(result, Err(LineError::Silent(_) | LineError::Late(_)));
        result
    }

    fn talk<S: Speaker>(
        &mut self,
        session: &mut S,
        deadline: Instant,
        mut take: impl FnMut(&mut S, &[u8]) -> Result<bool, Error>,
    ) -> Result<(), LineError> {
        let mut bytes = vec![0; 64 << 10];
        let (mut is_answering, mut is_enough) = (false, false);
        while !is_enough {
            self.send(session)?;
            let count = self.receive(&mut bytes, deadline, is_answering)?;
            is_answering = true;
            is_enough = take(session, bytes.get(..count).unwrap_or_default()).map_err(LineError::Protocol)?;
        }
        Ok(())
    }

    /// The number of bytes that were received. A server that does not begin to answer is silent; one
    /// that `is_answering` and does not end is late.
    fn receive(&mut self, bytes: &mut [u8], deadline: Instant, is_answering: bool) -> Result<usize, LineError> {
        use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        let late = || LineError::Late("no complete answer in time".to_owned());
        let rest = deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(late());
        }
        let time: Duration = rest.min(PATIENCE);
        match self.transport.as_mut().ok_or_else(closed)?.receive(bytes, time) {
            Err(error) if error.kind() == Interrupted => Ok(0),
            Err(error) if is_answering && time < PATIENCE && matches!(error.kind(), TimedOut | WouldBlock) => {
                Err(late())
            }
            Ok(0) => Err(LineError::Broken("the server closed the connection".to_owned())),
            result => Ok(result?),
        }
    }

    /// Closes the connection: its server is alive, and what it still sends is not wanted.
    pub(super) fn close(&mut self) {
        self.transport = None;
    }
}

fn closed() -> LineError {
    LineError::Broken("the connection is closed".to_owned())
}
