//! Applies the bytes of a response to the request it answers, for each protocol.

use holdup_protocol::database::{Error, Event};
use holdup_protocol::http::{http1, http2};

use super::{Connection, EndedRequest, ProtocolState, ReadContext, Resend, SetCookies};
use crate::engine::outcome::Outcome;
use crate::engine::slots::{InFlight, NEVER};
use crate::engine::{refusals, timing};

impl Connection {
    /// Hands bytes of the protocol to its parser.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        context: &mut ReadContext<'_>,
    ) -> Result<(), Outcome> {
        match &mut self.speech {
            ProtocolState::Http1(_) => self.take_http1(bytes, stamp, context),
            ProtocolState::Sql(_) => self.take_sql(bytes, stamp, context),
            ProtocolState::Http2(session) => take_http2(session, bytes, stamp, context, &mut self.has_answered),
        }
    }

    fn take_http1(&mut self, bytes: &[u8], stamp: Option<i64>, context: &mut ReadContext<'_>) -> Result<(), Outcome> {
        let ProtocolState::Http1(parser) = &mut self.speech else { return Ok(()) };
        if !self.is_asked {
            // The server sent data without a request.
            return Err(Outcome::BadResponse);
        }
        self.is_answering = true;
        let sent = context.slots.get(self.slot).map_or(NEVER, |r| r.sent);
        let at = context.clock.moment(stamp, sent);
        let Some(request) = context.slots.answered(self.slot, at) else { return Ok(()) };
        request.bytes += bytes.len() as u64;
        let progress = parser.feed_with(bytes, &mut context.memos[request.operation as usize]);
        request.status = parser.status();
        if parser.expected_body().unwrap_or(0).max(parser.body_bytes()) > context.max_response_bytes {
            return Err(Outcome::ResponseTooLarge);
        }
        match progress {
            Ok(http1::Progress::More) => Ok(()),
            Ok(http1::Progress::Done { used }) => {
                // Extra bytes after a response, or a response before its request was sent
                // in full, leave the connection out of step: it can't be used again.
                self.reusable = parser.keep_alive() && used == bytes.len() && self.is_written;
                self.is_asked = false;
                self.has_answered = true;
                finish_http1(parser, self.slot, request, at, &mut context.set_cookies, context.ended);
                Ok(())
            }
            Err(http1::Malformed::HeadTooLarge) => Err(Outcome::HeadTooLarge),
            Err(_) => Err(Outcome::BadResponse),
        }
    }

    fn take_sql(&mut self, bytes: &[u8], stamp: Option<i64>, context: &mut ReadContext<'_>) -> Result<(), Outcome> {
        let ProtocolState::Sql(database) = &mut self.speech else { return Ok(()) };
        let slot = self.slot;
        let sent = context.slots.get(slot).map_or(NEVER, |r| r.sent);
        let at = context.clock.moment(stamp, sent);
        if self.is_asked
            && let Some(request) = context.slots.answered(slot, at)
        {
            request.bytes += bytes.len() as u64;
            if request.bytes > context.max_response_bytes {
                return Err(Outcome::ResponseTooLarge);
            }
        }
        let (mut read, slots) = (SqlRead::default(), &mut *context.slots);
        let fed = database.session.feed(bytes, &mut |event| read.event(event, slots.get_mut(slot)));
        self.begins_tls |= read.begins_tls;
        let opened = if database.is_opening { read.is_over.take() } else { None };
        database.is_opening &= opened.is_none();
        if opened == Some(Outcome::Ok) || read.let_in && database.let_in() {
            self.stage = super::Stage::Open;
        }
        let is_shut_out = opened.is_some_and(|opened| opened != Outcome::Ok);
        let outcome = fed.as_ref().err().map(|error| sql_outcome(error, database.is_logged_in)).or(read.is_over);
        let outcome = if is_shut_out { Some(Outcome::LoginFailed) } else { outcome };
        if let Err(Error::LoginRefused { code, message } | Error::ClosedByServer { code, message }) = &fed {
            read.refused = Some((0, code.clone(), message.clone()));
        }
        if let (Some((statement, code, message)), Some(outcome)) = (read.refused, outcome)
            && let Some(request) = context.slots.get(slot)
        {
            refusals::note(context.refusals, (request.operation, outcome), statement, &code, &message);
        }
        if let Some(outcome) = read.is_over {
            self.is_asked = false;
            self.has_answered = true;
            context.ended.push(EndedRequest { slot, outcome, at, again: Resend::No });
        }
        fed.map_err(|error| sql_outcome(&error, database.is_logged_in))?;
        if is_shut_out { Err(Outcome::LoginFailed) } else { Ok(()) }
    }
}

/// What the events of one read from a database mean for its connection.
#[derive(Default)]
struct SqlRead {
    let_in: bool,
    begins_tls: bool,
    /// The outcome of the request, if it has ended.
    is_over: Option<Outcome>,
    /// The database's refusal: the statement's number, the code, and the message.
    refused: Option<(usize, String, String)>,
}

impl SqlRead {
    /// Takes an event; `request` is the one that the connection has.
    fn event(&mut self, event: Event<'_>, request: Option<&mut InFlight>) {
        match event {
            Event::LoggedIn => self.let_in = true,
            Event::StartTls => self.begins_tls = true,
            Event::Row { columns, values, .. } => {
                // For a transaction, the row of the last statement is kept.
                if let Some(kept) = request.and_then(|r| r.kept.as_mut()) {
                    let pairs = columns.iter().zip(values);
                    kept.fields = pairs.map(|(c, v)| (c.as_bytes().into(), v.map(Into::into))).collect();
                }
            }
            Event::Done { rows, affected, warnings, hash, .. } => {
                if let Some(request) = request {
                    if let Some(execution) = &mut request.execution {
                        (execution.rows, execution.affected, execution.warnings) = (rows, affected, warnings);
                        execution.hash = execution.hash.map(|_| hash);
                    }
                    if let Some(kept) = &mut request.kept {
                        kept.rows = rows;
                    }
                }
                self.is_over = Some(Outcome::Ok);
            }
            Event::Failed { statement, code, message } => {
                if let Some(execution) = request.and_then(|r| r.execution.as_mut()) {
                    execution.error = Some(code.into());
                }
                self.refused = Some((statement, code.to_owned(), message.to_owned()));
                self.is_over = Some(Outcome::StatementFailed);
            }
        }
    }
}

/// The outcome for an error that ends a database session.
fn sql_outcome(error: &Error, is_logged_in: bool) -> Outcome {
    match error {
        Error::TlsNotOffered => Outcome::TlsFailed,
        Error::Protocol(_) | Error::TooLarge(_) | Error::Refused(_) => Outcome::BadResponse,
        _ if is_logged_in => Outcome::ConnectionClosed,
        _ => Outcome::LoginFailed,
    }
}

pub(super) fn finish_http1(
    parser: &http1::Parser,
    slot: u32,
    request: &mut InFlight,
    at: i64,
    set_cookies: &mut Option<&mut SetCookies>,
    ended: &mut Vec<EndedRequest>,
) {
    request.status = parser.status();
    let head = parser.head();
    if head.location.is_some() {
        request.location.clone_from(&head.location);
    }
    if !head.server_timing.is_empty() {
        request.timing = Some(head.server_timing.as_slice().into());
    }
    if let Some(cookies) = set_cookies {
        cookies.extend(head.set_cookie.iter().map(|c| (slot, c.clone())));
    }
    ended.push(EndedRequest { slot, outcome: Outcome::from_status(request.status), at, again: Resend::No });
}

/// The server refused the stream before it did anything for it (RFC 9113, section 8.7).
const REFUSED_STREAM: u32 = 7;

/// Whether the request of a stream that `event` ended is sent again.
fn resend(event: &http2::Event<'_>, has_answered: bool) -> Resend {
    match event {
        http2::Event::Refused { .. } if has_answered => Resend::Always,
        http2::Event::Refused { .. } | http2::Event::Reset { code: REFUSED_STREAM, .. } => Resend::Once,
        _ => Resend::No,
    }
}

fn take_http2(
    session: &mut http2::Session,
    bytes: &[u8],
    stamp: Option<i64>,
    context: &mut ReadContext<'_>,
    has_answered: &mut bool,
) -> Result<(), Outcome> {
    let ReadContext { slots, ended, set_cookies, max_response_bytes, clock, .. } = context;
    let mut too_large: Vec<u32> = Vec::new();
    let fed = session.feed(bytes, &mut |event| {
        let (http2::Event::Status { tag, .. }
        | http2::Event::Header { tag, .. }
        | http2::Event::Data { tag, .. }
        | http2::Event::End { tag }
        | http2::Event::Reset { tag, .. }
        | http2::Event::Refused { tag }) = event
        else {
            return;
        };
        if too_large.contains(&tag) {
            // The request has ended; the rest of its response is discarded.
            return;
        }
        let sent = slots.get(tag).map_or(NEVER, |r| r.sent);
        let at = clock.moment(stamp, sent);
        let again = resend(&event, *has_answered);
        let request = if again == Resend::No { slots.answered(tag, at) } else { slots.get_mut(tag) };
        let Some(request) = request else { return };
        let mut end = |outcome| ended.push(EndedRequest { slot: tag, outcome, at, again });
        if let http2::Event::Header { name: b"server-timing", value, .. } = &event {
            timing::keep(&mut request.timing, value);
        }
        if let (Some(kept), http2::Event::Header { name, value, .. }) = (&mut request.kept, &event) {
            kept.fields.push(((*name).into(), Some((*value).into())));
        }
        match event {
            http2::Event::Status { status, .. } => request.status = status,
            http2::Event::Header { name: b"location", value, .. } => request.location = Some(value.into()),
            http2::Event::Header { name: b"set-cookie", value, .. } => {
                if let Some(cookies) = set_cookies {
                    cookies.push((tag, value.into()));
                }
            }
            http2::Event::Header { .. } | http2::Event::GoAway { .. } => {}
            http2::Event::Data { bytes, .. } => {
                request.bytes += bytes.len() as u64;
                if let Some(kept) = &mut request.kept {
                    kept.take(bytes);
                }
                if request.bytes > *max_response_bytes {
                    too_large.push(tag);
                    end(Outcome::ResponseTooLarge);
                }
            }
            http2::Event::End { .. } => {
                *has_answered = true;
                end(Outcome::from_status(request.status));
            }
            http2::Event::Reset { .. } | http2::Event::Refused { .. } => end(Outcome::StreamReset),
        }
    });
    for tag in too_large {
        session.cancel(tag);
    }
    match fed {
        Ok(()) => Ok(()),
        Err(http2::Error::HeadTooLarge) => Err(Outcome::HeadTooLarge),
        Err(_) => Err(Outcome::BadResponse),
    }
}
