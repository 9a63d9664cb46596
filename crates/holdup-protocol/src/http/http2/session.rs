//! One connection: opens streams, and reads the server's frames. Whatever the server sends, memory
//! stays bounded: by one frame, one head, and the streams that the caller opened.

mod frames;
mod reading;

use super::frame::{MAX_PAYLOAD, PREFACE, code, kind, setting};
use super::heads::Heads;
use super::hpack::NO_TABLE;
use super::outbox::Outbox;
use super::streams::Streams;
use super::uploads::Uploads;
use super::{Config, Error, Event, MAX_HEAD_BYTES, Template};
use reading::{OpenHead, Reading};

/// Bytes that a stream, and all of them together, may send without a window update. It is as large
/// as makes sense: nothing is kept here, TCP slows down a server that is too fast, and each update
/// is work for both sides.
const WINDOW: u32 = 1 << 30;

/// The connection's window before it is raised (RFC 9113, section 6.9.2).
const DEFAULT_WINDOW: u32 = 65_535;

/// Streams to open before the server has announced its limit: it refuses those beyond it, so one
/// has to ask first.
const STREAMS_BEFORE_SETTINGS: u32 = 1;

/// The highest number of a stream.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// Most frames in a row that make no progress on any stream.
const MAX_IDLE_FRAMES: u32 = 10_000;

/// One HTTP/2 connection, from the client's side.
#[derive(Debug)]
pub struct Session {
    max_streams: u32,
    outbox: Outbox,
    uploads: Uploads,
    streams: Streams,
    heads: Heads,
    next_stream: u32,
    /// Streams that the server accepts at once.
    allowed_streams: u32,
    /// The server's settings, its first frame, have arrived.
    settled: bool,
    going_away: bool,
    dead: Option<Error>,
    /// A head has been sent, and with it the table size of 0.
    head_sent: bool,
    /// Bytes that the server may still send on all streams.
    window: u32,
    idle_frames: u32,
    reading: Reading,
    /// The start of a frame that is not complete.
    partial: Vec<u8>,
    open_head: Option<OpenHead>,
}

impl Session {
    /// A session whose first bytes wait in [`Session::output`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut outbox = Outbox::default();
        outbox.put(PREFACE);
        let mut settings = Vec::new();
        for (name, value) in [
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES as u32),
        ] {
            settings.extend(name.to_be_bytes());
            settings.extend(value.to_be_bytes());
        }
        outbox.frame(kind::SETTINGS, 0, 0, &settings);
        outbox.window_update(0, WINDOW - DEFAULT_WINDOW);
        Self {
            max_streams: config.max_streams,
            outbox,
            uploads: Uploads::new(),
            streams: Streams::new(),
            heads: Heads::new(config.wanted),
            next_stream: 1,
            allowed_streams: STREAMS_BEFORE_SETTINGS,
            settled: false,
            going_away: false,
            dead: None,
            head_sent: false,
            window: WINDOW,
            idle_frames: 0,
            reading: Reading::Header,
            partial: Vec::new(),
            open_head: None,
        }
    }

    /// Bytes to be written to the server, in order.
    #[inline]
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.outbox.waiting()
    }

    /// The first `count` bytes of [`Session::output`] were written. Waiting bodies may then fill it
    /// again.
    #[inline]
    pub fn consumed(&mut self, count: usize) {
        self.outbox.consumed(count);
        if self.dead.is_none() {
            self.uploads.send(&mut self.outbox);
        }
    }

    /// Streams that can be opened now: none once the server sent GOAWAY or the session failed, and
    /// only one before the server's settings have arrived, which it sends at the start of the
    /// connection: see [`Session::settled`].
    #[inline]
    #[must_use]
    pub fn room(&self) -> u32 {
        if self.going_away || self.dead.is_some() || self.next_stream > LAST_STREAM {
            return 0;
        }
        let left = (LAST_STREAM - self.next_stream) / 2 + 1;
        let allowed = self.max_streams.min(self.allowed_streams);
        allowed.saturating_sub(self.streams.count() as u32).min(left)
    }

    /// Whether the server's settings have arrived.
    #[inline]
    #[must_use]
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Streams that are open.
    #[inline]
    #[must_use]
    pub fn open_streams(&self) -> u32 {
        self.streams.count() as u32
    }

    /// Sends a request on a new stream whose events carry `tag`; `tag` must not be in use. Returns
    /// false, and sends nothing, without [`Session::room`].
    #[inline]
    pub fn send(&mut self, template: &Template, tag: u32) -> bool {
        self.send_marked(template, tag, None)
    }

    /// The same with other bytes at a place in the head's frames, found by [`Template::place_of`]:
    /// for values that differ between requests of one template, such as an id.
    #[inline]
    pub fn send_marked(&mut self, template: &Template, tag: u32, mark: Option<(usize, &[u8])>) -> bool {
        if self.room() == 0 {
            return false;
        }
        let id = self.next_stream;
        self.next_stream += 2;
        self.idle_frames = 0;
        // The server's decoder may require the smaller table size to be announced first, so the
        // first head does it.
        let first = (!self.head_sent).then_some(NO_TABLE);
        self.head_sent = true;
        let body = template.body();
        if body.len() <= MAX_PAYLOAD && self.uploads.fits(body.len()) {
            self.outbox.frames(template.whole(), id, first, mark);
        } else {
            self.outbox.frames(template.head(), id, first, mark);
            self.uploads.add(id, body.clone());
            self.uploads.send(&mut self.outbox);
        }
        self.streams.open(id, tag, template.head_request());
        true
    }

    /// Gives up the stream `tag`: informs the server, and reports no more events for it.
    pub fn cancel(&mut self, tag: u32) {
        if let Some(id) = self.streams.find_tag(tag) {
            self.streams.close(id);
            self.uploads.drop(id);
            if self.dead.is_none() {
                self.outbox.reset(id, code::CANCEL);
            }
        }
    }

    /// Takes received bytes, and calls `sink` for each event.
    ///
    /// # Errors
    /// If the connection cannot be used any more; see [`Error`]. [`Session::output`] then ends with
    /// a GOAWAY.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        if let Some(error) = self.dead {
            return Err(error);
        }
        self.read(bytes, sink).inspect_err(|&error| self.fail(error))
    }

    #[cold]
    fn fail(&mut self, error: Error) {
        self.dead = Some(error);
        self.partial = Vec::new();
        self.open_head = None;
        let code = match error {
            Error::NotHttp2 | Error::Protocol(_) => code::PROTOCOL_ERROR,
            Error::FrameTooLarge => code::FRAME_SIZE_ERROR,
            Error::Compression => code::COMPRESSION_ERROR,
            Error::FlowControl => code::FLOW_CONTROL_ERROR,
            Error::HeadTooLarge | Error::TooManyControlFrames => code::ENHANCE_YOUR_CALM,
        };
        // No stream opened by the server was ever accepted.
        let [c0, c1, c2, c3] = code.to_be_bytes();
        self.outbox.frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, c0, c1, c2, c3]);
    }

    /// A frame made no progress on any stream; a flood of them is an attack or a bug.
    #[inline]
    fn idle_frame(&mut self) -> Result<(), Error> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES { Err(Error::TooManyControlFrames) } else { Ok(()) }
    }

    /// The stream ended without a complete response. With `tell`, the server is informed, because
    /// it did not reset the stream itself.
    fn give_up(&mut self, id: u32, code: u32, tell: bool, sink: &mut impl FnMut(Event<'_>)) {
        if let Some(stream) = self.streams.close(id) {
            self.uploads.drop(id);
            if tell {
                self.outbox.reset(id, code);
            }
            sink(Event::Reset { tag: stream.tag, code });
        }
    }
}

#[cfg(test)]
mod tests;
