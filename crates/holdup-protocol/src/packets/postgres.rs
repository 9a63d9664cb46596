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
use crate::packets::framing::{Framing, Head, Message, Step};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::statement::SentSql;
use crate::packets::turn::{Kind, Outcome, Pending};

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
    client: Framing,
    server: Framing,
    is_client_blind: bool,
    is_server_blind: bool,
    is_request_lost: bool,
    /// An error was sent: the server ignores everything before the next `Sync`.
    is_skipping: bool,
    pending: Pending<ExtendedRequest>,
    statements: HashMap<Vec<u8>, SentSql>,
    portals: HashMap<Vec<u8>, SentSql>,
    opaque: Option<Opaque>,
}

impl Postgres {
    /// A connection whose start was seen, or not.
    pub fn new(is_opened: bool) -> Self {
        let head = if is_opened { Head::Startup } else { Head::Postgres };
        Self {
            phase: if is_opened { Phase::Startup } else { Phase::Commands },
            client: Framing::new(head, REQUEST_BYTES_KEPT),
            server: Framing::new(Head::Postgres, RESPONSE_BYTES_KEPT),
            is_client_blind: !is_opened,
            is_server_blind: !is_opened,
            is_request_lost: false,
            is_skipping: false,
            pending: Pending::default(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            opaque: None,
        }
    }

    /// Bytes of the client.
    pub fn client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) {
        if let Some(opaque) = &mut self.opaque {
            return opaque.client(piece.at, piece.length(), to.turns);
        }
        if self.is_client_blind {
            if !begins_request(piece) {
                return;
            }
            self.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            self.client.restart();
            (self.is_client_blind, self.is_skipping) = (false, false);
        }
        let mut framing = std::mem::take(&mut self.client);
        let mut input = piece.bytes;
        while !self.is_client_blind && self.opaque.is_none() {
            match framing.next(&mut input, piece.at) {
                Step::Message(message) => self.on_client(&message, piece.at, to),
                Step::More => break,
                Step::Broken => self.is_client_blind = true,
            }
            if self.phase != Phase::Startup && self.phase != Phase::Encryption {
                framing.head = Head::Postgres;
            }
        }
        if piece.cut > 0 && !self.is_client_blind {
            match framing.skip(piece.cut) {
                Step::Message(message) => self.on_client(&message, piece.at, to),
                Step::More => {}
                Step::Broken => self.is_client_blind = true,
            }
        }
        self.client = framing;
    }

    /// Bytes of the server.
    pub fn server(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) {
        if let Some(opaque) = &mut self.opaque {
            return opaque.server(piece.at, piece.length());
        }
        let mut input = piece.bytes;
        if self.phase == Phase::Encryption
            && let Some((answer, rest)) = input.split_first()
        {
            self.pending.answered(piece.at, piece.at, 1);
            self.pending.finish(Outcome::Ok, None, to.turns);
            if matches!(answer, b'S' | b'G') {
                self.opaque = Some(Opaque::new(None));
                return;
            }
            (self.phase, input) = (Phase::Startup, rest);
        }
        let mut framing = std::mem::take(&mut self.server);
        while !self.is_server_blind {
            match framing.next(&mut input, piece.at) {
                Step::Message(message) => self.on_server(&message, piece.at, to),
                Step::More => break,
                Step::Broken => self.is_server_blind = true,
            }
        }
        if framing.is_within() {
            self.pending.answered(piece.at, piece.at, 0);
        }
        if piece.cut > 0 && !self.is_server_blind {
            match framing.skip(piece.cut) {
                Step::Message(message) => self.on_server(&message, piece.at, to),
                Step::More => {}
                Step::Broken => self.is_server_blind = true,
            }
        }
        if self.is_server_blind {
            self.pending.answered(piece.at, piece.at, input.len() as u64 + u64::from(piece.cut));
        }
        self.server = framing;
    }

    /// `count` bytes of one side were not captured.
    pub fn lost(&mut self, is_client: bool, at: i64, count: u32, to: &mut Sinks<'_>) {
        if let Some(opaque) = &mut self.opaque {
            if is_client {
                opaque.client(at, u64::from(count), to.turns);
            } else {
                opaque.server(at, u64::from(count));
            }
            return opaque.pending.lost();
        }
        if is_client {
            let is_inside = !self.is_client_blind && matches!(self.client.skip(count), Step::More);
            self.is_request_lost = is_inside;
            if !is_inside {
                (self.is_client_blind, self.is_server_blind) = (true, true);
                self.phase = Phase::Commands;
                self.client.head = Head::Postgres;
                self.pending.ask(
                    Kind::Other,
                    SentSql::default(),
                    (at, at),
                    u64::from(count),
                    ExtendedRequest::default(),
                );
            }
        } else if self.is_server_blind || !matches!(self.server.skip(count), Step::More) {
            self.is_server_blind = true;
            self.pending.answered(at, at, u64::from(count));
        }
        self.pending.lost();
    }

    pub fn pending(&mut self) -> &mut Pending<ExtendedRequest> {
        &mut self.pending
    }

    pub fn opaque(&mut self) -> Option<&mut Opaque> {
        self.opaque.as_mut()
    }

    /// Whether the present response ends only where the next request begins.
    pub fn ends_by_turn(&self) -> bool {
        self.is_server_blind
    }

    pub fn memory(&self) -> usize {
        let names = (self.statements.capacity() + self.portals.capacity()) * size_of::<(Vec<u8>, SentSql)>();
        self.client.memory() + self.server.memory() + self.pending.memory() + names
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        match self.phase {
            Phase::Startup | Phase::Encryption => self.on_startup(message, at, to),
            Phase::Login => self.more(at, message.size),
            Phase::Commands => self.on_request(message, at, to),
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
                self.pending.ask(Kind::Other, SentSql::default(), when, message.size, ExtendedRequest::default());
                return;
            }
            Some(version) if version >> 16 == 3 => {
                self.phase = Phase::Login;
                if to.statements.in_full {
                    self.pending.identity = client_identity(message.content.get(4..).unwrap_or_default()).into();
                }
                Kind::Login
            }
            _ => {
                (self.is_client_blind, self.is_server_blind) = (true, true);
                self.phase = Phase::Commands;
                return;
            }
        };
        let unit = ExtendedRequest { is_synced: true, is_executed: true };
        if !self.pending.ask(kind, SentSql::default(), when, message.size, unit) {
            self.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, to.turns);
        }
    }

    fn on_request(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        if self.is_server_blind {
            // By turns: a new request ends the answered one before it.
            if self.pending.head().is_some_and(|(turn, _)| turn.first_byte_at.is_some()) {
                self.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            }
            if self.pending.len() == 0 {
                self.server.restart();
                self.is_server_blind = false;
            }
        }
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
                    && let Some((turn, _)) = self.pending.last()
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
                match self.pending.last() {
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
                if let Some((turn, _)) = self.pending.last() {
                    turn.request_bytes += message.size;
                }
            }
            b'X' => {}
            _ => self.is_client_blind = true,
        }
    }

    /// A separate request begins.
    fn begin(&mut self, kind: Kind, sent: SentSql, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        if !self.pending.ask(kind, sent, (message.begun_at, at), message.size, ExtendedRequest::default()) {
            self.is_server_blind = true;
            self.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, to.turns);
        } else if std::mem::take(&mut self.is_request_lost)
            && let Some((turn, _)) = self.pending.last()
        {
            turn.is_lost = true;
        }
    }

    /// A message of the extended protocol: part of the present request, or the first of a new one.
    fn part(&mut self, kind: Kind, sent: Option<SentSql>, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        match self.pending.last() {
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
        if let Some((turn, _)) = self.pending.last() {
            turn.request_bytes += bytes;
            if turn.first_byte_at.is_none() {
                turn.request_end_at = at;
                turn.done_at = turn.done_at.max(at);
            }
        }
    }

    fn mark(&mut self, with: ExtendedRequest) {
        if let Some((_, unit)) = self.pending.last() {
            unit.is_synced |= with.is_synced;
            unit.is_executed |= with.is_executed;
        }
    }

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        // Unasked messages: notifications, settings, notices.
        let is_unasked = matches!(message.kind, b'A' | b'S' | b'N');
        if is_unasked && self.pending.head().is_none_or(|(turn, _)| turn.first_byte_at.is_none()) {
            return;
        }
        if !is_unasked {
            self.pending.answered(message.begun_at, at, message.size);
        }
        if message.kind == b'C' {
            self.pending.info.affected += affected(message.content);
        }
        match message.kind {
            b'K' => {
                let pid = message.content.first_chunk().map(|four| i64::from(u32::from_be_bytes(*four)));
                self.pending.session_id = pid;
            }
            // An execution has ended; with a `Sync` it ends later, with the effect of that, which
            // may be a commit.
            b'C' | b'I' | b's' if self.pending.head().is_some_and(|(_, unit)| unit.is_executed && !unit.is_synced) => {
                self.pending.finish(Outcome::Ok, None, to.turns);
            }
            b'E' => self.on_error(message.content, to),
            b'Z' => self.on_ready(to),
            kind if !kind.is_ascii_alphanumeric() => self.is_server_blind = true,
            b'D' => self.pending.info.rows += 1,
            _ => {}
        }
    }

    fn on_error(&mut self, content: &[u8], to: &mut Sinks<'_>) {
        let code = error_code(content);
        // A closing server sends an error without a pending request, e.g. at shutdown.
        if let Some((turn, unit)) = self.pending.head() {
            turn.error = code.clone();
            turn.outcome = Outcome::Error;
            if turn.kind == Kind::Login {
                self.pending.finish(Outcome::Error, code, to.turns);
            } else if !unit.is_synced {
                self.is_skipping = true;
                self.pending.finish(Outcome::Error, code, to.turns);
            }
        }
    }

    /// Ready for the next: everything up to the first `Sync` has ended.
    fn on_ready(&mut self, to: &mut Sinks<'_>) {
        if self.phase == Phase::Login {
            self.phase = Phase::Commands;
        }
        let was_skipping = std::mem::take(&mut self.is_skipping);
        while let Some((turn, unit)) = self.pending.head() {
            let is_last = unit.is_synced;
            // After an error, everything before the Sync was ignored; a Sync alone is always
            // processed.
            let is_left_out = was_skipping && turn.kind != Kind::Other;
            let outcome = if is_left_out { Outcome::Error } else { turn.outcome };
            let error = turn.error.clone();
            self.pending.finish(outcome, error, to.turns);
            if is_last {
                return;
            }
        }
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
