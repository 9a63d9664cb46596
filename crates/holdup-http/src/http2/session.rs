//! One connection.

use super::{Config, Error, Event, Template};

/// One HTTP/2 connection, from the client's side.
#[derive(Debug)]
pub struct Session {
    config: Config,
}

impl Session {
    /// A session whose first bytes wait in [`Session::output`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Bytes to be written to the server, in order.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &[]
    }

    /// The first `count` bytes of [`Session::output`] were written.
    pub fn consumed(&mut self, _count: usize) {}

    /// Streams that can be opened now.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.config.max_streams
    }

    /// Sends a request on a new stream that its events call `tag`; `tag` must not be in use. False, and nothing
    /// sent, if there is no [`Session::room`].
    pub fn send(&mut self, _template: &Template, _tag: u32) -> bool {
        false
    }

    /// Gives up the stream `tag`: tells the server, and no event of it comes any more.
    pub fn cancel(&mut self, _tag: u32) {}

    /// Takes the bytes that arrived, and calls `sink` for all that they say.
    ///
    /// # Errors
    /// If the connection is of no more use; see [`Error`]. [`Session::output`] then ends in a GOAWAY that says so.
    pub fn feed(&mut self, _bytes: &[u8], _sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        Ok(())
    }
}
