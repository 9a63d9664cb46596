//! Bytes that wait to be written to the server.

use super::Error;
use super::frame::{FrameHeader, flag, kind};

/// Most replies (to PING and SETTINGS) that may wait: a server that keeps asking and does not read
/// gets no more.
const MAX_ANSWERS: u32 = 1_000;

/// A larger buffer is freed once it is empty.
const KEPT_BYTES: usize = 256 * 1024;

/// The buffer: bytes before `at` are written already.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    at: usize,
    answers: u32,
}

impl Outbox {
    #[inline]
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub fn consumed(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
        if self.at == self.bytes.len() {
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
            self.at = 0;
            self.answers = 0;
        } else if self.at > self.bytes.len() / 2 {
            // Each byte is moved once on average.
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.put(&FrameHeader { length: payload.len(), kind, flags, stream }.bytes());
        self.put(payload);
    }

    /// Frames prepared for stream 0, sent on `stream`. `first` goes before the payload of the
    /// first. `mark` replaces the bytes at its place.
    #[inline]
    pub fn frames(&mut self, laid_out: &[u8], stream: u32, first: Option<u8>, mark: Option<(usize, &[u8])>) {
        let mut at = self.bytes.len();
        self.put(laid_out);
        if let Some((place, mark)) = mark
            && let Some(place) = self.bytes.get_mut(at + place..at + place + mark.len())
        {
            place.copy_from_slice(mark);
        }
        if let Some(byte) = first {
            self.bytes.insert(at + super::frame::HEADER_BYTES, byte);
            if let Some(header) = header_at(&mut self.bytes, at) {
                *header =
                    FrameHeader { length: FrameHeader::read(header).length + 1, ..FrameHeader::read(header) }.bytes();
            }
        }
        while let Some(header) = header_at(&mut self.bytes, at) {
            at += super::frame::HEADER_BYTES + FrameHeader::read(header).length;
            header[5..].copy_from_slice(&stream.to_be_bytes());
        }
    }

    /// A reply to something that the server may request as often as it likes.
    pub fn answer(&mut self, kind: u8, payload: &[u8]) -> Result<(), Error> {
        self.answers += 1;
        if self.answers > MAX_ANSWERS {
            return Err(Error::TooManyControlFrames);
        }
        self.frame(kind, flag::ACK, 0, payload);
        Ok(())
    }

    pub fn reset(&mut self, stream: u32, code: u32) {
        self.frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes());
    }

    pub fn window_update(&mut self, stream: u32, bytes: u32) {
        self.frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }
}

#[inline]
fn header_at(bytes: &mut [u8], at: usize) -> Option<&mut [u8; 9]> {
    bytes.get_mut(at..)?.first_chunk_mut()
}
