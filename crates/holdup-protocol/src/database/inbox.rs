//! Cuts what arrives into messages, wherever the network cut it. Of each message only as much is kept as the receiver
//! says it needs; one that arrived whole is not copied.

use crate::database::event::{Error, Event};

/// What a session tells its events.
pub(crate) type Events<'e> = dyn FnMut(Event<'_>) + 'e;

/// The measures of a message, of which the first bytes have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Bytes of all of it.
    pub(crate) length: usize,
    /// Bytes of it that are needed, from its beginning.
    pub(crate) keep: usize,
}

impl Frame {
    /// `keep` is at least the head, of which more bytes than needed may have been looked at.
    pub(crate) fn new(length: usize, keep: usize) -> Self {
        Self { length, keep: keep.max(HEAD_BYTES).min(length) }
    }
}

/// A receiver needs so many bytes at most to measure a message.
pub(crate) const HEAD_BYTES: usize = 5;

/// Room for messages that is kept for the next.
const SPARE_BYTES: usize = 16 << 10;

/// One side of a protocol.
pub(crate) trait Receive {
    /// Measures a message by its first bytes; `None` if there are too few.
    ///
    /// # Errors
    /// The server sends what cannot be.
    fn frame(&self, head: &[u8]) -> Result<Option<Frame>, Error>;

    /// Takes a message of `length` bytes, of which `kept` are there.
    ///
    /// # Errors
    /// The connection is of no more use.
    fn receive(&mut self, kept: &[u8], length: usize, events: &mut Events<'_>) -> Result<(), Error>;
}

/// The beginning of a message that has not arrived whole.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    kept: Vec<u8>,
    /// The message's measures once its head is there, and how much of it has been read.
    frame: Option<Frame>,
    read: usize,
}

impl Inbox {
    /// Whether no message has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.frame.is_none()
    }

    /// Room that is taken by the beginning of a message.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.kept.capacity()
    }

    /// Hands on all messages that end in `bytes`.
    pub(crate) fn feed<R: Receive>(
        &mut self,
        mut bytes: &[u8],
        receiver: &mut R,
        events: &mut Events<'_>,
    ) -> Result<(), Error> {
        while let Some(&next) = bytes.first() {
            if let Some(frame) = self.frame {
                let (more, _) = bytes.split_at((frame.keep.saturating_sub(self.kept.len())).min(bytes.len()));
                self.kept.extend_from_slice(more);
                let passed = (frame.length - self.read).min(bytes.len());
                self.read += passed;
                bytes = &bytes[passed..];
                self.hand_on(frame, receiver, events)?;
            } else if self.kept.is_empty() {
                match receiver.frame(bytes)? {
                    Some(frame) if frame.length <= bytes.len() => {
                        receiver.receive(&bytes[..frame.keep], frame.length, events)?;
                        bytes = &bytes[frame.length..];
                    }
                    Some(frame) => (self.frame, self.read) = (Some(frame), 0),
                    None => {
                        self.kept.extend_from_slice(bytes);
                        bytes = &[];
                    }
                }
            } else {
                self.kept.push(next);
                bytes = &bytes[1..];
                if let Some(frame) = receiver.frame(&self.kept)? {
                    (self.frame, self.read) = (Some(frame), self.kept.len());
                    self.hand_on(frame, receiver, events)?;
                }
            }
        }
        Ok(())
    }

    /// If the message is whole.
    fn hand_on<R: Receive>(&mut self, frame: Frame, receiver: &mut R, events: &mut Events<'_>) -> Result<(), Error> {
        if self.read < frame.length {
            return Ok(());
        }
        self.frame = None;
        let result = receiver.receive(&self.kept, frame.length, events);
        self.kept.clear();
        self.kept.shrink_to(SPARE_BYTES);
        result
    }
}
