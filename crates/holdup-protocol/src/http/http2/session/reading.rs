//! Cuts received bytes into frames, however they were split. A frame that is complete in the
//! caller's buffer is read there; bodies are counted and passed on as they come, and never kept.

use super::{Session, WINDOW};
use crate::http::http2::frame::{FrameHeader, HEADER_BYTES, MAX_PAYLOAD, code, flag, kind};
use crate::http::http2::streams::UNKNOWN;
use crate::http::http2::{Error, Event};

/// Up to this size, a head's buffer is kept.
const KEPT_BYTES: usize = MAX_PAYLOAD;

/// The part of a frame that the next byte belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// Its header.
    Header,
    /// The payload of a frame that is needed completely.
    Payload(FrameHeader),
    /// The number before the body bytes that gives the length of their padding.
    PadLength(FrameHeader),
    /// Body bytes, then padding.
    Body { stream: u32, left: usize, padding: usize, last: bool },
    /// Bytes to skip.
    Ignored(usize),
}

/// A head that continues in CONTINUATION frames; no other frame may come before its end.
#[derive(Debug)]
pub(super) struct OpenHead {
    pub stream: u32,
    pub last: bool,
    pub block: Vec<u8>,
    pub frames: u32,
}

impl Session {
    #[inline]
    pub(super) fn read(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.reading {
                Reading::Header => {
                    let header = match bytes.split_first_chunk() {
                        Some((header, rest)) if self.partial.is_empty() => {
                            bytes = rest;
                            FrameHeader::read(header)
                        }
                        _ => {
                            if !self.gather(&mut bytes, HEADER_BYTES) {
                                return Ok(());
                            }
                            let Some(header) = self.partial.first_chunk() else { return Ok(()) };
                            let header = FrameHeader::read(header);
                            self.partial.clear();
                            header
                        }
                    };
                    self.begin(header, &mut bytes, sink)?;
                }
                Reading::Payload(header) => {
                    if !self.gather(&mut bytes, header.length) {
                        return Ok(());
                    }
                    let mut payload = std::mem::take(&mut self.partial);
                    self.reading = Reading::Header;
                    self.frame(header, &payload, sink)?;
                    if payload.capacity() <= KEPT_BYTES {
                        payload.clear();
                        self.partial = payload;
                    }
                }
                Reading::PadLength(header) => {
                    let padding = usize::from(bytes[0]);
                    bytes = &bytes[1..];
                    let left = header.length - 1;
                    let left = left.checked_sub(padding).ok_or(Error::Protocol("more padding than payload"))?;
                    self.begin_body(header, left, padding, sink)?;
                }
                Reading::Body { stream, left, padding, last } => {
                    let (piece, rest) = bytes.split_at(left.min(bytes.len()));
                    bytes = rest;
                    let taken = piece.len();
                    self.on_body(stream, piece, sink);
                    self.reading = Reading::Body { stream, left: left - taken, padding, last };
                    if left == taken {
                        self.end_body(stream, padding, last, sink)?;
                    }
                }
                Reading::Ignored(left) => {
                    let taken = left.min(bytes.len());
                    bytes = &bytes[taken..];
                    self.reading = if left == taken { Reading::Header } else { Reading::Ignored(left - taken) };
                }
            }
        }
        Ok(())
    }

    /// Moves bytes until `partial` has `want` of them; returns whether it does.
    fn gather(&mut self, bytes: &mut &[u8], want: usize) -> bool {
        let missing = want - self.partial.len().min(want);
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        *bytes = rest;
        self.partial.len() == want
    }

    /// A frame begins. Small complete ones are read at once.
    #[inline]
    fn begin(&mut self, header: FrameHeader, bytes: &mut &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        if !self.settled && (header.kind != kind::SETTINGS || header.has(flag::ACK) || header.stream != 0) {
            return Err(Error::NotHttp2);
        }
        if header.length > MAX_PAYLOAD {
            return Err(if self.settled { Error::FrameTooLarge } else { Error::NotHttp2 });
        }
        if self.open_head.as_ref().is_some_and(|o| header.kind != kind::CONTINUATION || o.stream != header.stream) {
            return Err(Error::Protocol("an unfinished head"));
        }
        match header.kind {
            kind::DATA => self.begin_data(header, sink),
            // Unknown types are skipped (section 5.5).
            unknown if unknown > kind::CONTINUATION => {
                self.idle_frame()?;
                self.reading = if header.length == 0 { Reading::Header } else { Reading::Ignored(header.length) };
                Ok(())
            }
            _ => match bytes.split_at_checked(header.length) {
                Some((payload, rest)) => {
                    *bytes = rest;
                    self.reading = Reading::Header;
                    self.frame(header, payload, sink)
                }
                None => {
                    self.reading = Reading::Payload(header);
                    Ok(())
                }
            },
        }
    }

    /// Body bytes are announced. Padding counts towards the windows as well (section 6.9.1).
    #[inline]
    fn begin_data(&mut self, header: FrameHeader, sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        self.check_stream(header.stream)?;
        let length = header.length as u32;
        // Windows are reopened when half used. Whether a frame exceeds one is not checked: an update
        // may have been on its way.
        self.window -= length;
        if self.window < WINDOW / 2 {
            self.outbox.window_update(0, WINDOW - self.window);
            self.window = WINDOW;
        }
        if let Some(stream) = self.streams.get(header.stream) {
            if !stream.answered {
                self.give_up(header.stream, code::PROTOCOL_ERROR, true, sink);
            } else {
                stream.unacknowledged += length;
                if stream.unacknowledged > WINDOW / 2 && !header.has(flag::END_STREAM) {
                    self.outbox.window_update(header.stream, stream.unacknowledged);
                    stream.unacknowledged = 0;
                }
            }
        }
        if !header.has(flag::PADDED) {
            return self.begin_body(header, header.length, 0, sink);
        }
        if header.length == 0 {
            return Err(Error::FrameTooLarge);
        }
        self.reading = Reading::PadLength(header);
        Ok(())
    }

    #[inline]
    fn begin_body(
        &mut self,
        header: FrameHeader,
        left: usize,
        padding: usize,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let (stream, last) = (header.stream, header.has(flag::END_STREAM));
        if left > 0 {
            self.reading = Reading::Body { stream, left, padding, last };
            return Ok(());
        }
        self.idle_frame()?;
        self.end_body(stream, padding, last, sink)
    }

    #[inline]
    fn on_body(&mut self, id: u32, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) {
        if let Some(stream) = self.streams.get(id) {
            stream.received += bytes.len() as u64;
            self.idle_frames = 0;
            sink(Event::Data { tag: stream.tag, bytes });
        }
    }

    #[inline]
    fn end_body(
        &mut self,
        stream: u32,
        padding: usize,
        last: bool,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        self.reading = if padding == 0 { Reading::Header } else { Reading::Ignored(padding) };
        if last {
            self.finish(stream, sink);
        }
        Ok(())
    }

    /// The server has completed a stream.
    #[inline]
    pub(super) fn finish(&mut self, id: u32, sink: &mut impl FnMut(Event<'_>)) {
        let Some(stream) = self.streams.close(id) else { return };
        self.idle_frames = 0;
        // It answered before it had the whole body, and wants no more of it.
        if self.uploads.drop(id) {
            self.outbox.reset(id, code::CANCEL);
        }
        let tag = stream.tag;
        let right = stream.answered && (stream.expected == UNKNOWN || stream.expected == stream.received);
        sink(if right { Event::End { tag } } else { Event::Reset { tag, code: code::PROTOCOL_ERROR } });
    }

    /// Checks that a stream was ever opened. Frames for closed streams are still valid.
    #[inline]
    pub(super) fn check_stream(&self, id: u32) -> Result<(), Error> {
        if id & 1 == 0 || id >= self.next_stream {
            return Err(Error::Protocol("a frame on a stream that was never opened"));
        }
        Ok(())
    }
}
