//! HTTP/2: as many requests at a time as there are streams, whose frames are collected and sent
//! together.

use holdup_protocol::http::WantedParts;
use holdup_protocol::http::http2::{Config, Error, Event, Session, Template};

use crate::engine::intake::{EndedRequest, Intake, Resend};
use crate::engine::link::Output;
use crate::engine::outcome::Outcome;
use crate::engine::slots::{NEVER, Slots};
use crate::engine::timing;
use crate::engine::trace::Mark;

/// The server refused the stream before it did anything for it (RFC 9113, section 8.7).
const REFUSED_STREAM: u32 = 7;

/// See the module.
pub struct Http2 {
    pub session: Session,
    /// A response has been received on this socket.
    pub has_answered: bool,
}

impl Default for Http2 {
    fn default() -> Self {
        let config = Config { max_streams: 1, wanted: WantedParts::default() };
        Self { session: Session::new(config), has_answered: false }
    }
}

impl Http2 {
    /// A socket is connected.
    pub fn connect(&mut self, streams: u32, wanted: WantedParts) {
        self.session = Session::new(Config { max_streams: streams, wanted });
    }

    /// Begins to send the request of `slot`.
    ///
    /// # Errors
    /// If the server takes no further stream.
    pub fn execute(&mut self, slot: u32, template: &Template, mark: Option<&Mark>) -> Result<(), Outcome> {
        let is_taken = self.session.send_marked(template, slot, mark.map(|mark| (mark.at, mark.text())));
        if is_taken { Ok(()) } else { Err(Outcome::StreamReset) }
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
        let Self { session, has_answered } = self;
        let mut too_large: Vec<u32> = Vec::new();
        let fed = session.feed(bytes, &mut |event| {
            let (Event::Status { tag, .. }
            | Event::Header { tag, .. }
            | Event::Data { tag, .. }
            | Event::End { tag }
            | Event::Reset { tag, .. }
            | Event::Refused { tag }) = event
            else {
                return;
            };
            if too_large.contains(&tag) {
                // The request has ended; the rest of its response is discarded.
                return;
            }
            let sent = slots.get(tag).map_or(NEVER, |r| r.sent);
            let at = intake.clock.moment(stamp, sent);
            let again = resend(&event, *has_answered);
            let request = if again == Resend::No { slots.answered(tag, at) } else { slots.get_mut(tag) };
            let Some(request) = request else { return };
            let mut end = |outcome| intake.ended.push(EndedRequest { slot: tag, outcome, at, again });
            if let Event::Header { name: b"server-timing", value, .. } = &event {
                timing::keep(&mut request.timing, value);
            }
            if let (Some(kept), Event::Header { name, value, .. }) = (&mut request.kept, &event) {
                kept.fields.push(((*name).into(), Some((*value).into())));
            }
            match event {
                Event::Status { status, .. } => request.status = status,
                Event::Header { name: b"location", value, .. } => request.location = Some(value.into()),
                Event::Header { name: b"set-cookie", value, .. } if intake.keeps_cookies => {
                    intake.set_cookies.push((tag, value.into()));
                }
                Event::Header { .. } | Event::GoAway { .. } => {}
                Event::Data { bytes, .. } => {
                    request.bytes += bytes.len() as u64;
                    if let Some(kept) = &mut request.kept {
                        kept.take(bytes);
                    }
                    if request.bytes > intake.most_bytes {
                        too_large.push(tag);
                        end(Outcome::ResponseTooLarge);
                    }
                }
                Event::End { .. } => {
                    *has_answered = true;
                    end(Outcome::from_status(request.status));
                }
                Event::Reset { .. } | Event::Refused { .. } => end(Outcome::StreamReset),
            }
        });
        for tag in too_large {
            session.cancel(tag);
        }
        match fed {
            Ok(()) => Ok(()),
            Err(Error::HeadTooLarge) => Err(Outcome::HeadTooLarge),
            Err(_) => Err(Outcome::BadResponse),
        }
    }
}

/// Whether the request of a stream that `event` ended is sent again.
fn resend(event: &Event<'_>, has_answered: bool) -> Resend {
    match event {
        Event::Refused { .. } if has_answered => Resend::Always,
        Event::Refused { .. } | Event::Reset { code: REFUSED_STREAM, .. } => Resend::Once,
        _ => Resend::No,
    }
}

impl Output for Session {
    fn waiting(&mut self) -> &[u8] {
        self.output()
    }

    fn sent(&mut self, count: usize) {
        // This may make room for more of a body.
        self.consumed(count);
    }
}
