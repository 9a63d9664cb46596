//! Kafka's protocol from the client's side: one request at a time, each in one version that brokers from
//! 3.0 to 4.x speak. The session cuts answers out of what arrives; [`read`] says what they mean.
//!
//! A library for it exists, and allocates whatever length a broker names. Here a list is as long as the
//! bytes that arrived. Deliberately absent: record batches, transactions, and requests that change
//! anything.

pub mod read;
mod sasl;
mod wire;

pub use self::sasl::{Mechanism, authenticate};
pub use self::wire::{Reader, Writer};
use crate::database::event::Error;
use crate::database::login::APPLICATION;

/// A kind of request in the version that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    key: i16,
    version: i16,
    /// Whether this version has compact lengths and tagged fields, in its head, too.
    is_flexible: bool,
}

impl Call {
    /// Request `key` in `version`, before tagged fields came.
    #[must_use]
    pub const fn new(key: i16, version: i16) -> Self {
        Self { key, version, is_flexible: false }
    }

    const fn flexible(key: i16, version: i16) -> Self {
        Self { key, version, is_flexible: true }
    }
}

/// Where a partition's log ends, or the first record since a time.
pub const LIST_OFFSETS: Call = Call::new(2, 2);
/// Brokers, topics and partitions.
pub const METADATA: Call = Call::new(3, 5);
/// What groups have committed, many groups in one.
pub const OFFSET_FETCH: Call = Call::flexible(9, 8);
/// States and members of groups.
pub const DESCRIBE_GROUPS: Call = Call::new(15, 1);
/// The groups that a broker coordinates.
pub const LIST_GROUPS: Call = Call::flexible(16, 4);
/// Which requests the broker knows.
pub const API_VERSIONS: Call = Call::new(18, 0);
const SASL_HANDSHAKE: Call = Call::new(17, 1);
const SASL_AUTHENTICATE: Call = Call::new(36, 0);

/// One side of a connection.
#[derive(Debug)]
pub struct Session {
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    number: i32,
    /// Whether the head of the awaited answer has tagged fields.
    is_flexible: bool,
    answer_bytes_max: usize,
}

impl Session {
    /// A session that accepts answers of so many bytes.
    #[must_use]
    pub fn new(answer_bytes_max: usize) -> Self {
        Self { outgoing: Vec::new(), incoming: Vec::new(), number: 0, is_flexible: false, answer_bytes_max }
    }

    /// The bytes to send.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.outgoing
    }

    /// This many of them were sent.
    pub fn consumed(&mut self, count: usize) {
        self.outgoing.drain(..count.min(self.outgoing.len()));
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If it is too large for the protocol.
    pub fn send(&mut self, call: Call, body: &Writer) -> Result<(), Error> {
        self.number = self.number.wrapping_add(1);
        self.is_flexible = call.is_flexible;
        let mut head = Writer::default();
        head.i16(call.key).i16(call.version).i32(self.number).text(APPLICATION);
        if call.is_flexible {
            head.tags();
        }
        let length = head.bytes().len() + body.bytes().len();
        let length = i32::try_from(length).map_err(|_| Error::TooLarge("a request"))?;
        for part in [&length.to_be_bytes()[..], head.bytes(), body.bytes()] {
            self.outgoing.extend_from_slice(part);
        }
        Ok(())
    }

    /// The answer to the last request, once it is complete.
    ///
    /// # Errors
    /// If what arrives is not one.
    pub fn feed(&mut self, received: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.incoming.extend_from_slice(received);
        let Some((length, rest)) = self.incoming.split_first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.answer_bytes_max {
            return Err(Error::TooLarge("an answer"));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let mut reader = Reader::new(frame);
        if reader.i32()? != self.number {
            return Err(Error::Protocol("an answer to another request"));
        }
        if self.is_flexible {
            reader.skip_tags()?;
        }
        let answer = reader.rest().to_vec();
        self.incoming.clear();
        Ok(Some(answer))
    }
}

#[cfg(test)]
mod tests;
