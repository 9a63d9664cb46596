//! A connection of a protocol whose answers its caller reads itself, such as Redis'. TLS begins with
//! the first byte here.

use std::time::Instant;

use holdup_protocol::database::Error;

use super::channel::{Channel, Speaker};
use super::{LineError, PATIENCE, Place, Trust};
use crate::connections::Connections;

/// An open connection.
pub(crate) struct ExchangeLine {
    requests: Requests,
    channel: Channel,
}

/// What is not sent yet.
#[derive(Default)]
struct Requests(Vec<u8>);

impl Speaker for Requests {
    fn output(&self) -> &[u8] {
        &self.0
    }

    fn consumed(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }
}

impl ExchangeLine {
    /// Connects, over TLS if there is a `trust`.
    pub(crate) fn open(
        place: &Place<'_>,
        trust: Option<&Trust<'_>>,
        connections: &Connections,
    ) -> Result<Self, LineError> {
        let deadline = Instant::now() + PATIENCE;
        let mut channel = Channel::open(place, deadline, connections)?;
        if let (Place::Network(host, _), Some(trust)) = (place, trust) {
            channel.encrypt(host, trust, deadline)?;
        }
        Ok(Self { requests: Requests::default(), channel })
    }

    /// Sends `request`. `read` gets all that was received so far, until it makes an answer of it; that
    /// may take `bytes_max` at most.
    pub(crate) fn ask<T>(
        &mut self,
        request: &[u8],
        bytes_max: usize,
        read: impl Fn(&[u8]) -> Result<Option<T>, &'static str>,
    ) -> Result<T, LineError> {
        self.requests.0.extend(request);
        let (mut received, mut answer) = (Vec::new(), None);
        self.channel.until(&mut self.requests, Instant::now() + PATIENCE, |_, bytes| {
            received.extend_from_slice(bytes);
            if received.len() > bytes_max {
                return Err(Error::Protocol("its answer is too large"));
            }
            answer = read(&received).map_err(Error::Protocol)?;
            Ok(answer.is_some())
        })?;
        answer.ok_or_else(|| LineError::Broken("the server closed the connection".to_owned()))
    }
}
