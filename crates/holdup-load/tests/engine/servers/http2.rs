//! The server's side of HTTP/2, frame by frame: enough to be slow, wrong or hostile with. It reads no fields of
//! requests; what depends on them is tested against nginx.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Settings (RFC 9113, section 6.5.2).
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The block of a head that says 200 and nothing else: the static table's entry 8 (RFC 7541).
pub const STATUS_200: &[u8] = &[0x88];

/// A block that redirects to `location`: status 302 as a literal, and static entry 46.
pub fn redirect_to(location: &str) -> Vec<u8> {
    let mut block = vec![0x08, 3];
    block.extend(b"302");
    // Literal without indexing; its name's index takes more than the prefix's four bits.
    block.extend([0x0f, 46 - 15, location.len() as u8]);
    block.extend(location.as_bytes());
    block
}

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub struct Connection<S> {
    stream: S,
}

impl<S: Read + Write> Connection<S> {
    /// Reads the client's preface and sends `settings`; none if it has gone.
    pub fn accept(stream: S, settings: &[(u16, u32)]) -> Option<Self> {
        let mut connection = Self { stream };
        let mut preface = [0; 24];
        connection.stream.read_exact(&mut preface).ok()?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        connection.send(SETTINGS, 0, 0, &payload).then_some(connection)
    }

    /// The next frame but for settings; none if the client has gone.
    pub fn read(&mut self) -> Option<Frame> {
        loop {
            let frame = self.any_frame()?;
            if frame.kind != SETTINGS {
                return Some(frame);
            }
        }
    }

    /// The next frame, be it settings, which are acknowledged; none if the client has gone.
    pub fn any_frame(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).ok()?;
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, l0, l1, l2]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        let is_request = kind == SETTINGS && flags & 1 == 0;
        if is_request && !self.send(SETTINGS, 1, 0, &[]) {
            return None;
        }
        Some(Frame { kind, flags, stream: u32::from_be_bytes([s0, s1, s2, s3]), payload })
    }

    /// The number of the next stream whose request is whole; frames of no interest are passed over.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.read()?;
            if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    /// Whether the client still took it.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let mut bytes = frame(kind, flags, stream, payload.len());
        bytes.extend(payload);
        self.raw(&bytes)
    }

    /// Bytes that may be no frame.
    pub fn raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// A whole response with a body of two bytes.
    pub fn answer(&mut self, stream: u32) -> bool {
        self.send(HEADERS, END_HEADERS, stream, STATUS_200) && self.send(DATA, END_STREAM, stream, b"ok")
    }

    /// The client may send so many bytes more, on a stream or, on stream 0, in all.
    pub fn widen(&mut self, stream: u32, bytes: u32) -> bool {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// The stream is over without a response.
    pub fn reset(&mut self, stream: u32, code: u32) -> bool {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes())
    }
}

impl Connection<TcpStream> {
    /// Whether the client has sent something that was not read yet.
    pub fn has_more(&self) -> bool {
        self.stream.set_nonblocking(true).expect("it is open");
        let waits = self.stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        self.stream.set_nonblocking(false).expect("it is open");
        waits
    }

    /// Says nothing more, and reads on until the client closes, so that closing is no reset.
    pub fn end(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        while self.read().is_some() {}
    }
}

/// A frame's header.
pub fn frame(kind: u8, flags: u8, stream: u32, length: usize) -> Vec<u8> {
    let mut bytes = (length as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes
}
