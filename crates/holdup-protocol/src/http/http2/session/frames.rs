//! Handles each type of frame, once it is complete (RFC 9113, section 6).

use super::reading::OpenHead;
use super::{MAX_HEAD_BYTES, Session};
use crate::http::http2::frame::{FrameHeader, MAX_PAYLOAD, code, flag, kind, setting};
use crate::http::http2::uploads::MAX_WINDOW;
use crate::http::http2::{Error, Event};

/// Most frames of one head: more than a head of full size needs with frames a quarter full.
const MAX_HEAD_FRAMES: u32 = 4 * (MAX_HEAD_BYTES / MAX_PAYLOAD) as u32;

impl Session {
    #[inline]
    pub(super) fn frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        match header.kind {
            kind::HEADERS => self.on_headers(header, payload, sink),
            kind::CONTINUATION => self.on_continuation(header, payload, sink),
            kind::RST_STREAM => {
                let code = number(payload)?;
                self.check_stream(header.stream)?;
                if self.streams.get(header.stream).is_none() {
                    return self.idle_frame();
                }
                self.give_up(header.stream, code, false, sink);
                Ok(())
            }
            kind::SETTINGS => self.on_settings(header, payload),
            kind::PING => self.on_ping(header, payload),
            kind::GOAWAY => self.on_goaway(header, payload, sink),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload, sink),
            kind::PRIORITY if payload.len() != 5 => Err(Error::FrameTooLarge),
            kind::PUSH_PROMISE => Err(Error::Protocol("a push that was not allowed")),
            _ => self.idle_frame(),
        }
    }

    #[inline]
    fn on_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        self.check_stream(header.stream)?;
        let block = without_padding(header, payload)?;
        let last = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.on_head(header.stream, block, last, sink);
        }
        self.open_head = Some(OpenHead { stream: header.stream, last, block: block.to_vec(), frames: 1 });
        Ok(())
    }

    fn on_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let mut head = self.open_head.take().ok_or(Error::Protocol("a continuation of a head that never began"))?;
        head.frames += 1;
        if head.frames > MAX_HEAD_FRAMES {
            return Err(Error::TooManyControlFrames);
        }
        if head.block.len() + payload.len() > MAX_HEAD_BYTES {
            return Err(Error::HeadTooLarge);
        }
        head.block.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.on_head(head.stream, &head.block, head.last, sink);
        }
        self.open_head = Some(head);
        Ok(())
    }

    /// A complete head: an interim response's, the final one's, or trailers.
    #[inline]
    fn on_head(&mut self, id: u32, block: &[u8], last: bool, sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        let stream = self.streams.get(id);
        let tag = stream.as_ref().filter(|stream| !stream.answered).map(|stream| stream.tag);
        let facts = self.heads.read(block, tag, sink)?;
        // The stream may have been given up while its response was on its way.
        let Some(stream) = stream else { return self.idle_frame() };
        let trailers = stream.answered;
        let interim = !trailers && (100..200).contains(&facts.status);
        let right = match (trailers, facts.status) {
            (true, status) => status == 0 && last,
            // Switching protocols exists only in HTTP/1.
            (false, 101) => false,
            (false, status) => status >= 200 || (interim && !last),
        };
        if facts.malformed || !right {
            self.give_up(id, code::PROTOCOL_ERROR, true, sink);
            return Ok(());
        }
        if interim {
            return self.idle_frame();
        }
        if !trailers {
            let bodiless = stream.head_request || matches!(facts.status, 204 | 304);
            stream.answered = true;
            stream.expected = if bodiless { 0 } else { facts.content_length };
            self.idle_frames = 0;
        }
        if last {
            self.finish(id, sink);
        }
        Ok(())
    }

    fn on_settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Error> {
        if header.stream != 0 {
            return Err(Error::Protocol("settings of a stream"));
        }
        self.idle_frame()?;
        if header.has(flag::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(Error::FrameTooLarge) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Error::FrameTooLarge);
        }
        if !self.settled {
            self.settled = true;
            self.allowed_streams = u32::MAX;
        }
        for &[n0, n1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([n0, n1]) {
                setting::MAX_CONCURRENT_STREAMS => self.allowed_streams = value,
                setting::INITIAL_WINDOW_SIZE => self.uploads.set_initial_window(value)?,
                // Frames here always have a size that all servers accept, so a larger limit changes
                // nothing.
                setting::MAX_FRAME_SIZE if !(MAX_PAYLOAD as u32..1 << 24).contains(&value) => {
                    return Err(Error::Protocol("a frame size out of range"));
                }
                setting::ENABLE_PUSH if value != 0 => return Err(Error::Protocol("a server can't be pushed to")),
                _ => {}
            }
        }
        self.outbox.answer(kind::SETTINGS, &[])?;
        self.upload();
        Ok(())
    }

    fn on_ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Error> {
        if header.stream != 0 {
            return Err(Error::Protocol("a ping of a stream"));
        }
        if payload.len() != 8 {
            return Err(Error::FrameTooLarge);
        }
        self.idle_frame()?;
        if header.has(flag::ACK) { Ok(()) } else { self.outbox.answer(kind::PING, payload) }
    }

    fn on_goaway(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        if header.stream != 0 {
            return Err(Error::Protocol("goaway of a stream"));
        }
        let (last, rest) = payload.split_first_chunk().ok_or(Error::FrameTooLarge)?;
        let last_stream_id = u32::from_be_bytes(*last) & 0x7fff_ffff;
        let code = number(rest.get(..4).unwrap_or_default())?;
        self.idle_frame()?;
        self.going_away = true;
        sink(Event::GoAway { last_stream_id, code });
        while let Some(id) = self.streams.above(last_stream_id) {
            self.uploads.drop(id);
            if let Some(stream) = self.streams.close(id) {
                sink(Event::Refused { tag: stream.tag });
            }
        }
        Ok(())
    }

    fn on_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let bytes = number(payload)? & MAX_WINDOW as u32;
        self.idle_frame()?;
        if header.stream == 0 {
            if bytes == 0 {
                return Err(Error::Protocol("a window update of 0"));
            }
            self.uploads.widen_connection(bytes)?;
        } else {
            self.check_stream(header.stream)?;
            if bytes == 0 {
                self.give_up(header.stream, code::PROTOCOL_ERROR, true, sink);
            } else if !self.uploads.widen(header.stream, bytes) {
                self.give_up(header.stream, code::FLOW_CONTROL_ERROR, true, sink);
            }
        }
        self.upload();
        Ok(())
    }

    /// Sends more of waiting bodies.
    fn upload(&mut self) {
        if self.uploads.send(&mut self.outbox) {
            self.idle_frames = 0;
        }
    }
}

/// The single number that is the whole payload.
fn number(payload: &[u8]) -> Result<u32, Error> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Error::FrameTooLarge)
}

/// The block in a HEADERS frame, without padding and priority (section 6.2).
#[inline]
fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Error> {
    if !header.has(flag::PADDED | flag::PRIORITY) {
        return Ok(payload);
    }
    let (mut block, mut padding) = (payload, 0);
    if header.has(flag::PADDED) {
        let (&first, rest) = block.split_first().ok_or(Error::FrameTooLarge)?;
        (block, padding) = (rest, usize::from(first));
    }
    if header.has(flag::PRIORITY) {
        block = block.get(5..).ok_or(Error::FrameTooLarge)?;
    }
    let length = block.len().checked_sub(padding).ok_or(Error::Protocol("more padding than payload"))?;
    Ok(&block[..length])
}
