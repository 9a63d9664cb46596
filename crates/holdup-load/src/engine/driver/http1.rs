//! HTTP/1.1: one request at a time, whose bytes are sent from where they lie.

use holdup_protocol::http::WantedParts;
use holdup_protocol::http::http1::{Malformed, Parser, Progress};

use crate::engine::intake::{EndedRequest, Intake, Resend};
use crate::engine::link::{Link, Output};
use crate::engine::outcome::Outcome;
use crate::engine::slots::{NEVER, Slots};
use crate::engine::trace::Mark;
use crate::sys;

/// See the module.
pub struct Http1 {
    /// Holds the kept parts of the last response.
    pub parser: Parser,
    slot: u32,
    /// How much of the request has been written, and (below) whether that is all.
    written: usize,
    pub is_written: bool,
    pub is_reusable: bool,
    /// A request is out.
    is_asked: bool,
    /// A byte of its response has arrived.
    pub is_answering: bool,
    /// A response has been received on this socket.
    pub has_answered: bool,
}

impl Http1 {
    /// For the connection of this slot.
    pub fn new(slot: u32) -> Self {
        Self {
            parser: Parser::new(),
            slot,
            written: 0,
            is_written: true,
            is_reusable: true,
            is_asked: false,
            is_answering: false,
            has_answered: false,
        }
    }

    /// The socket is gone.
    pub fn close(&mut self) {
        self.written = 0;
        self.is_asked = false;
        self.has_answered = false;
    }

    /// A request is going to be sent.
    pub fn begin(&mut self, is_head: bool, wanted: WantedParts) {
        self.parser.begin(is_head, wanted);
        self.written = 0;
        self.is_written = false;
        self.is_asked = true;
        self.is_answering = false;
    }

    /// Whether nothing of the request has been sent.
    pub fn is_unsent(&self) -> bool {
        self.is_asked && self.written == 0
    }

    /// Sends as much of a request as the socket takes, with `mark` in its place.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn send(
        &mut self,
        link: &mut Link,
        bytes: &[u8],
        mark: Option<&Mark>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Outcome> {
        self.is_written = link.send(&mut Rest { bytes, mark, written: &mut self.written, scratch })?;
        Ok(())
    }

    /// Takes bytes of the server.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn take(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<(), Outcome> {
        if !self.is_asked {
            // The server sent data without a request.
            return Err(Outcome::BadResponse);
        }
        self.is_answering = true;
        let sent = slots.get(self.slot).map_or(NEVER, |r| r.sent);
        let at = intake.clock.moment(stamp, sent);
        let Some(request) = slots.answered(self.slot, at) else { return Ok(()) };
        request.bytes += bytes.len() as u64;
        let progress = self.parser.feed_with(bytes, &mut intake.memos[request.operation as usize]);
        request.status = self.parser.status();
        if self.parser.expected_body().unwrap_or(0).max(self.parser.body_bytes()) > intake.most_bytes {
            return Err(Outcome::ResponseTooLarge);
        }
        match progress {
            Ok(Progress::More) => Ok(()),
            Ok(Progress::Done { used }) => {
                // Extra bytes after a response, or a response before its request was sent
                // in full, leave the connection out of step: it can't be used again.
                self.is_reusable = self.parser.keep_alive() && used == bytes.len() && self.is_written;
                self.has_answered = true;
                self.finish(at, slots, intake);
                Ok(())
            }
            Err(Malformed::HeadTooLarge) => Err(Outcome::HeadTooLarge),
            Err(_) => Err(Outcome::BadResponse),
        }
    }

    /// The server closed the connection. Whether that is the regular end of a response, one without
    /// a length.
    pub fn peer_closed(&mut self, slots: &mut Slots, intake: &mut Intake<'_>) -> bool {
        if !(self.parser.closed() && self.is_asked && self.is_answering) || slots.get(self.slot).is_none() {
            return false;
        }
        self.is_reusable = false;
        self.finish(sys::monotonic_ns(), slots, intake);
        true
    }

    fn finish(&mut self, at: i64, slots: &mut Slots, intake: &mut Intake<'_>) {
        self.is_asked = false;
        let Some(request) = slots.get_mut(self.slot) else { return };
        request.status = self.parser.status();
        let head = self.parser.head();
        if head.location.is_some() {
            request.location.clone_from(&head.location);
        }
        if !head.server_timing.is_empty() {
            request.timing = Some(head.server_timing.as_slice().into());
        }
        if intake.keeps_cookies {
            intake.set_cookies.extend(head.set_cookie.iter().map(|c| (self.slot, c.clone())));
        }
        let outcome = Outcome::from_status(request.status);
        intake.ended.push(EndedRequest { slot: self.slot, outcome, at, again: Resend::No });
    }
}

/// What is left of a request.
struct Rest<'a> {
    bytes: &'a [u8],
    mark: Option<&'a Mark>,
    written: &'a mut usize,
    scratch: &'a mut Vec<u8>,
}

impl Output for Rest<'_> {
    fn waiting(&mut self) -> &[u8] {
        if *self.written >= self.bytes.len() {
            return &[];
        }
        Mark::piece(self.mark, self.bytes, *self.written, self.scratch)
    }

    fn sent(&mut self, count: usize) {
        *self.written += count;
    }
}
