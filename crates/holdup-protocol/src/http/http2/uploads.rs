//! Bodies of requests that could not be sent at once: they continue as the server's windows allow
//! (RFC 9113, section 5.2). Windows are tracked only for them; a stream whose body is sent needs
//! none.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Error;
use super::frame::{FrameHeader, MAX_PAYLOAD, flag, kind};
use super::outbox::Outbox;

/// Largest window (section 6.9.1).
pub(super) const MAX_WINDOW: i64 = (1 << 31) - 1;

/// Window of a stream and of the connection unless the server sets it (section 6.9.2).
const DEFAULT_WINDOW: i64 = 65_535;

/// Bodies stop filling the outbox when this much waits in it.
const OUTBOX_BYTES: usize = 256 * 1024;

#[derive(Debug)]
struct Upload {
    stream: u32,
    body: Arc<[u8]>,
    sent: usize,
    /// Below zero if the server has made windows smaller.
    window: i64,
}

#[derive(Debug)]
pub(super) struct Uploads {
    waiting: VecDeque<Upload>,
    connection_window: i64,
    initial_window: i64,
}

impl Uploads {
    pub fn new() -> Self {
        Self { waiting: VecDeque::new(), connection_window: DEFAULT_WINDOW, initial_window: DEFAULT_WINDOW }
    }

    /// Whether a body may be sent completely right after its head; if so the connection's window
    /// shrinks by it.
    #[inline]
    pub fn fits(&mut self, bytes: usize) -> bool {
        let bytes = bytes as i64;
        if bytes == 0 {
            return true;
        }
        let fits = self.waiting.is_empty() && bytes <= self.connection_window && bytes <= self.initial_window;
        if fits {
            self.connection_window -= bytes;
        }
        fits
    }

    pub fn add(&mut self, stream: u32, body: Arc<[u8]>) {
        self.waiting.push_back(Upload { stream, body, sent: 0, window: self.initial_window });
    }

    /// Stops sending it. Returns whether anything was left.
    #[inline]
    pub fn drop(&mut self, stream: u32) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let before = self.waiting.len();
        self.waiting.retain(|upload| upload.stream != stream);
        self.waiting.len() < before
    }

    /// Sends as much as the windows allow and the outbox takes. Returns whether that was anything.
    #[inline]
    pub fn send(&mut self, outbox: &mut Outbox) -> bool {
        !self.waiting.is_empty() && self.send_waiting(outbox)
    }

    fn send_waiting(&mut self, outbox: &mut Outbox) -> bool {
        let mut any = false;
        let connection_window = &mut self.connection_window;
        self.waiting.retain_mut(|upload| {
            while *connection_window > 0 && upload.window > 0 && outbox.waiting().len() < OUTBOX_BYTES {
                let rest = &upload.body[upload.sent..];
                let most = upload.window.min(*connection_window).min(MAX_PAYLOAD as i64);
                let piece = &rest[..rest.len().min(most as usize)];
                let last = piece.len() == rest.len();
                let flags = if last { flag::END_STREAM } else { 0 };
                outbox
                    .put(&FrameHeader { length: piece.len(), kind: kind::DATA, flags, stream: upload.stream }.bytes());
                outbox.put(piece);
                any = true;
                upload.sent += piece.len();
                upload.window -= piece.len() as i64;
                *connection_window -= piece.len() as i64;
                if last {
                    return false;
                }
            }
            true
        });
        any
    }

    /// The server set the initial window of streams: waiting ones are moved by the difference.
    pub fn set_initial_window(&mut self, bytes: u32) -> Result<(), Error> {
        let bytes = i64::from(bytes);
        let change = bytes - self.initial_window;
        self.initial_window = bytes;
        for upload in &mut self.waiting {
            upload.window += change;
        }
        let fine = bytes <= MAX_WINDOW && self.waiting.iter().all(|upload| upload.window <= MAX_WINDOW);
        if fine { Ok(()) } else { Err(Error::FlowControl) }
    }

    pub fn widen_connection(&mut self, bytes: u32) -> Result<(), Error> {
        self.connection_window += i64::from(bytes);
        if self.connection_window > MAX_WINDOW { Err(Error::FlowControl) } else { Ok(()) }
    }

    /// False if the window would exceed its limit.
    pub fn widen(&mut self, stream: u32, bytes: u32) -> bool {
        let upload = self.waiting.iter_mut().find(|upload| upload.stream == stream);
        upload.is_none_or(|upload| {
            upload.window += i64::from(bytes);
            upload.window <= MAX_WINDOW
        })
    }
}
