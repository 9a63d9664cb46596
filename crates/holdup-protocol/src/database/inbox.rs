//! Cuts what arrives into messages, however the network split it. Of each message only as much is
//! kept as the receiver needs; one that arrived complete is not copied.

use crate::database::event::{Error, Event};

/// Where a session reports its events.
pub(crate) type Events<'e> = dyn FnMut(Event<'_>) + 'e;

/// The size of a message whose first bytes have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Its total bytes.
    pub(crate) length: usize,
    /// How many bytes from its start are needed.
    pub(crate) keep: usize,
}

impl Frame {
    /// `keep` is at least the head, because more bytes of it than needed may have been read.
    pub(crate) fn new(length: usize, keep: usize) -> Self {
        Self { length, keep: keep.max(HEAD_BYTES).min(length) }
    }
}

/// Most bytes that a receiver needs to measure a message.
pub(crate) const HEAD_BYTES: usize = 5;

/// Capacity that is kept for the next messages.
const SPARE_BYTES: usize = 16 << 10;

/// One side of a protocol.
pub(crate) trait Receive {
    /// Measures a message by its first bytes; `None` if there are too few.
    ///
    /// # Errors
    /// If the server sends something impossible.
    fn frame(&self, head: &[u8]) -> Result<Option<Frame>, Error>;

    /// Takes a message of `length` bytes, of which `kept` are available.
    ///
    /// # Errors
    /// If the connection is broken.
    fn receive(&mut self, kept: &[u8], length: usize, events: &mut Events<'_>) -> Result<(), Error>;
}

/// The start of a message that has not arrived completely.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    kept: Vec<u8>,
    /// The message's size once its head has arrived, and how much of it has been read.
    frame: Option<Frame>,
    read: usize,
}

impl Inbox {
    /// Whether no message has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.frame.is_none()
    }

    /// Bytes allocated for the start of a message.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.kept.capacity()
    }

    /// Passes on all messages that end in `bytes`.
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

    /// Passes the message on, if it is complete.
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
