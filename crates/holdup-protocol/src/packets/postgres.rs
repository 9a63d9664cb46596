//! One connection of PostgreSQL (protocol 3): messages of both sides -> requests and responses.
//!
//! A request is a simple query, or the messages up to one `Execute` with the `Sync` after it;
//! without an `Execute`, it is a preparation (`Parse`) or something else (`Bind`, `Close`, `Sync`
//! alone). Requests sent before the last was answered wait in the queue.

mod answer;
mod beginning;

use std::collections::HashMap;

use holdup_sql::Dialect;

use self::answer::{ExtendedRequest, error_code};
pub(crate) use self::beginning::is_startup;
use self::beginning::{CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, begins_request, client_identity, filled_in, text};
use crate::packets::conversation::{Conversation, Talk};
use crate::packets::framing::{Framing, Head, Message};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::statement::SentSql;
use crate::packets::turn::{Kind, Outcome};

const REQUEST_BYTES_KEPT: usize = 64 << 10;
const RESPONSE_BYTES_KEPT: usize = 512;
/// Most names of statements, and of portals, that are remembered per connection.
const NAMES_MAX: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's first message will come.
    Startup,
    /// The client has requested encryption; the answer is one byte.
    Encryption,
    Login,
    Commands,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Postgres {
    phase: Phase,
    talk: Talk<ExtendedRequest>,
    /// An error was sent: the server ignores everything before the next `Sync`.
    is_skipping: bool,
    statements: HashMap<Vec<u8>, SentSql>,
    portals: HashMap<Vec<u8>, SentSql>,
}

impl Postgres {
    /// A connection whose start was seen, or not.
    pub fn new(is_opened: bool) -> Self {
        let head = if is_opened { Head::Startup } else { Head::Postgres };
        let client = Framing::new(head, REQUEST_BYTES_KEPT);
        let server = Framing::new(Head::Postgres, RESPONSE_BYTES_KEPT);
        Self {
            phase: if is_opened { Phase::Startup } else { Phase::Commands },
            talk: Talk::new(client, server, is_opened),
            is_skipping: false,
            statements: HashMap::new(),
            portals: HashMap::new(),
        }
    }

    fn on_startup(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        let when = (message.begun_at, at);
        let code = message.content.first_chunk().map(|four| u32::from_be_bytes(*four));
        let kind = match code {
            Some(SSL_REQUEST | GSS_REQUEST) => {
                self.phase = Phase::Encryption;
                Kind::Other
            }
            Some(CANCEL_REQUEST) => {
                // It is answered by closing the connection, whatever its effect.
                self.talk.pending.ask(Kind::Other, SentSql::default(), when, message.size, ExtendedRequest::default());
                return;
            }
            Some(version) if version >> 16 == 3 => {
                self.phase = Phase::Login;
                if to.statements.in_full {
                    self.talk.pending.identity = client_identity(message.content.get(4..).unwrap_or_default()).into();
                }
                Kind::Login
            }
            _ => {
                (self.talk.is_client_blind, self.talk.is_server_blind) = (true, true);
                self.phase = Phase::Commands;
                return;
            }
        };
        let unit = ExtendedRequest { is_synced: true, is_executed: true };
        if !self.talk.pending.ask(kind, SentSql::default(), when, message.size, unit) {
            self.talk.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, to.turns);
        }
    }

    fn on_request(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        self.talk.takes_turns(to.turns);
        let content = message.content;
        match message.kind {
            b'Q' => {
                let sent = to.statements.digest(text(content).0, Dialect::PostgreSql);
                self.begin(Kind::Query, sent, message, at, to);
                self.mark(ExtendedRequest { is_synced: true, is_executed: true });
            }
            b'P' => {
                let (name, rest) = text(content);
                let sent = to.statements.digest(text(rest).0, Dialect::PostgreSql);
                keep(&mut self.statements, name, sent.clone());
                self.part(Kind::Prepare, Some(sent), message, at, to);
            }
            b'B' => {
                let (portal, rest) = text(content);
                let (name, values) = text(rest);
                let sent = self.statements.get_mut(name).map(SentSql::lend).unwrap_or_default();
                keep(&mut self.portals, portal, sent.clone());
                self.part(Kind::Other, Some(sent), message, at, to);
                if to.statements.in_full
                    && let Some((turn, _)) = self.talk.pending.last()
                {
                    turn.parameters = filled_in(values);
                }
            }
            b'E' => {
                let sent = self.portals.get(text(content).0).cloned().unwrap_or_default();
                self.part(Kind::Execute, Some(sent), message, at, to);
                self.mark(ExtendedRequest { is_synced: false, is_executed: true });
            }
            b'C' => {
                if let [b'S', name @ ..] = content {
                    self.statements.remove(text(name).0);
                }
                self.part(Kind::Other, None, message, at, to);
            }
            b'D' => self.part(Kind::Other, None, message, at, to),
            b'S' => {
                match self.talk.pending.last() {
                    Some((_, unit)) if !unit.is_synced => self.more(at, message.size),
                    _ => self.begin(Kind::Other, SentSql::default(), message, at, to),
                }
                self.mark(ExtendedRequest { is_synced: true, is_executed: false });
            }
            b'F' => {
                self.begin(Kind::Other, SentSql::default(), message, at, to);
                self.mark(ExtendedRequest { is_synced: true, is_executed: true });
            }
            // Data of a COPY continues while the server waits for it: the request's end stays
            // unchanged.
            b'd' | b'c' | b'f' | b'p' | b'H' => {
                if let Some((turn, _)) = self.talk.pending.last() {
                    turn.request_bytes += message.size;
                }
            }
            b'X' => {}
            _ => self.talk.is_client_blind = true,
        }
    }

    /// A separate request begins.
    fn begin(&mut self, kind: Kind, sent: SentSql, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        self.talk.ask(kind, sent, (message.begun_at, at), message.size, ExtendedRequest::default(), to.turns);
    }

    /// A message of the extended protocol: part of the present request, or the first of a new one.
    fn part(&mut self, kind: Kind, sent: Option<SentSql>, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        match self.talk.pending.last() {
            Some((turn, unit)) if !unit.is_synced && !unit.is_executed => {
                if kind != Kind::Other && turn.kind != Kind::Execute {
                    turn.kind = kind;
                }
                if let Some(sent) = sent {
                    turn.sent = sent;
                }
                self.more(at, message.size);
            }
            _ => self.begin(kind, sent.unwrap_or_default(), message, at, to),
        }
    }

    /// Further bytes of the request that began last.
    fn more(&mut self, at: i64, bytes: u64) {
        if let Some((turn, _)) = self.talk.pending.last() {
            turn.request_bytes += bytes;
            if turn.first_byte_at.is_none() {
                turn.request_end_at = at;
                turn.done_at = turn.done_at.max(at);
            }
        }
    }

    fn mark(&mut self, with: ExtendedRequest) {
        if let Some((_, unit)) = self.talk.pending.last() {
            unit.is_synced |= with.is_synced;
            unit.is_executed |= with.is_executed;
        }
    }

    fn on_error(&mut self, content: &[u8], to: &mut Sinks<'_>) {
        let code = error_code(content);
        // A closing server sends an error without a pending request, e.g. at shutdown.
        if let Some((turn, unit)) = self.talk.pending.head() {
            turn.error = code.clone();
            turn.outcome = Outcome::Error;
            if turn.kind == Kind::Login {
                self.talk.pending.finish(Outcome::Error, code, to.turns);
            } else if !unit.is_synced {
                self.is_skipping = true;
                self.talk.pending.finish(Outcome::Error, code, to.turns);
            }
        }
    }

    /// Ready for the next: everything up to the first `Sync` has ended.
    fn on_ready(&mut self, to: &mut Sinks<'_>) {
        if self.phase == Phase::Login {
            self.phase = Phase::Commands;
        }
        let was_skipping = std::mem::take(&mut self.is_skipping);
        while let Some((turn, unit)) = self.talk.pending.head() {
            let is_last = unit.is_synced;
            // After an error, everything before the Sync was ignored; a Sync alone is always
            // processed.
            let is_left_out = was_skipping && turn.kind != Kind::Other;
            let outcome = if is_left_out { Outcome::Error } else { turn.outcome };
            let error = turn.error.clone();
            self.talk.pending.finish(outcome, error, to.turns);
            if is_last {
                return;
            }
        }
    }
}

impl Conversation for Postgres {
    type Expected = ExtendedRequest;

    fn talk(&mut self) -> &mut Talk<ExtendedRequest> {
        &mut self.talk
    }

    fn client_head(&self) -> Head {
        if matches!(self.phase, Phase::Startup | Phase::Encryption) { Head::Startup } else { Head::Postgres }
    }

    fn hears_client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) -> bool {
        if self.talk.is_client_blind {
            if !begins_request(piece) {
                return false;
            }
            self.talk.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            self.talk.client.restart();
            (self.talk.is_client_blind, self.is_skipping) = (false, false);
        }
        true
    }

    /// A request for encryption is answered by one byte.
    fn hears_server<'p>(&mut self, piece: &Piece<'p>, to: &mut Sinks<'_>) -> Option<&'p [u8]> {
        let Some((answer, rest)) = piece.bytes.split_first().filter(|_| self.phase == Phase::Encryption) else {
            return Some(piece.bytes);
        };
        self.talk.pending.answered(piece.at, piece.at, 1);
        self.talk.pending.finish(Outcome::Ok, None, to.turns);
        if matches!(answer, b'S' | b'G') {
            self.talk.opaque = Some(Opaque::new(None));
            return None;
        }
        self.phase = Phase::Startup;
        Some(rest)
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        match self.phase {
            Phase::Startup | Phase::Encryption => self.on_startup(message, at, to),
            Phase::Login => self.more(at, message.size),
            Phase::Commands => self.on_request(message, at, to),
        }
    }

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        // Unasked messages: notifications, settings, notices.
        let is_unasked = matches!(message.kind, b'A' | b'S' | b'N');
        if is_unasked && self.talk.pending.head().is_none_or(|(turn, _)| turn.first_byte_at.is_none()) {
            return;
        }
        if !is_unasked {
            self.talk.pending.answered(message.begun_at, at, message.size);
        }
        if message.kind == b'C' {
            self.talk.pending.info.affected += affected(message.content);
        }
        match message.kind {
            b'K' => {
                let pid = message.content.first_chunk().map(|four| i64::from(u32::from_be_bytes(*four)));
                self.talk.pending.session_id = pid;
            }
            // An execution has ended; with a `Sync` it ends later, with the effect of that, which
            // may be a commit.
            b'C' | b'I' | b's'
                if self.talk.pending.head().is_some_and(|(_, unit)| unit.is_executed && !unit.is_synced) =>
            {
                self.talk.pending.finish(Outcome::Ok, None, to.turns);
            }
            b'E' => self.on_error(message.content, to),
            b'Z' => self.on_ready(to),
            kind if !kind.is_ascii_alphanumeric() => self.talk.is_server_blind = true,
            b'D' => self.talk.pending.info.rows += 1,
            _ => {}
        }
    }

    fn lost_request(&mut self) -> ExtendedRequest {
        self.talk.is_server_blind = true;
        self.phase = Phase::Commands;
        self.talk.client.head = Head::Postgres;
        ExtendedRequest::default()
    }

    fn kept_bytes(&self) -> usize {
        let names = self.statements.capacity() + self.portals.capacity();
        self.talk.memory() + names * size_of::<(Vec<u8>, SentSql)>()
    }
}

/// Rows that a command changed, from the server's tag: `UPDATE 3`, `INSERT 0 3`; not those of a
/// `SELECT`.
fn affected(tag: &[u8]) -> u64 {
    let tag = text(tag).0;
    let changes =
        [&b"INSERT "[..], b"UPDATE ", b"DELETE ", b"MERGE ", b"COPY "].iter().any(|verb| tag.starts_with(verb));
    let count = tag.rsplit(|byte| *byte == b' ').next().and_then(|count| std::str::from_utf8(count).ok());
    count.filter(|_| changes).and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn keep(names: &mut HashMap<Vec<u8>, SentSql>, name: &[u8], sent: SentSql) {
    if names.len() >= NAMES_MAX {
        names.clear();
    }
    match names.get_mut(name) {
        Some(known) => *known = sent,
        // Its length is bounded, and so is the kept memory.
        None if name.len() <= 64 => {
            names.insert(name.to_vec(), sent);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests;
