//! One connection of MongoDB: messages of both sides -> requests and responses.
//!
//! Each message has a number, and an answer names the number of its request: what was lost between
//! them costs only the exchange that it belonged to. An answer that announces more messages
//! (`moreToCome`) goes on until one that does not. Compressed messages are matched in the same way,
//! without their text.

mod answer;
mod message;

use std::sync::Arc;

use self::answer::Answer;
use self::message::{Head, Request, request};
use crate::packets::framing::{Framing, Head as FrameHead, Message, Step};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::statement::SentSql;
use crate::packets::turn::{ClientIdentity, Kind, Outcome, Pending};

pub(crate) use self::message::begins_mongodb;

const REQUEST_BYTES_KEPT: usize = 64 << 10;
const RESPONSE_BYTES_KEPT: usize = 4096;
/// At the end of an answer: a cursor's number and name, the time of the cluster with its signature.
const RESPONSE_TAIL_BYTES: usize = 768;
/// A record of TLS that begins a handshake, of any version.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// What is expected for a request.
#[derive(Debug)]
pub(crate) struct Expected {
    /// The number that the next answer names; none if the request was not captured.
    number: Option<i32>,
    /// The first answer ends it, whatever that announces: the others are news, not answers.
    ends_at_first: bool,
    /// Whether it wants an answer is not known: the flags are compressed.
    may_be_unanswered: bool,
    is_write: bool,
    /// The cursor that it reads on.
    cursor: Option<i64>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Mongodb {
    client: Framing,
    server: Framing,
    /// Nothing of the client was seen since the connection was opened.
    is_opening: bool,
    is_client_blind: bool,
    is_server_blind: bool,
    is_request_lost: bool,
    /// holdup itself uses it to watch the server.
    is_own: bool,
    pending: Pending<Expected>,
    opaque: Option<Opaque>,
}

impl Mongodb {
    /// A connection whose start was seen, or not.
    pub fn new(is_opened: bool) -> Self {
        Self {
            client: Framing::new(FrameHead::Mongodb, REQUEST_BYTES_KEPT),
            server: Framing::new(FrameHead::Mongodb, RESPONSE_BYTES_KEPT).with_tail(RESPONSE_TAIL_BYTES),
            is_opening: is_opened,
            is_client_blind: !is_opened,
            is_server_blind: !is_opened,
            is_request_lost: false,
            is_own: false,
            pending: Pending::default(),
            opaque: None,
        }
    }

    /// Bytes of the client.
    pub fn client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) {
        if std::mem::take(&mut self.is_opening) && piece.bytes.starts_with(&TLS_HANDSHAKE) {
            self.opaque = Some(Opaque::new(None));
        }
        if let Some(opaque) = &mut self.opaque {
            return opaque.client(piece.at, piece.length(), to.turns);
        }
        if self.is_client_blind {
            if !begins_mongodb(piece.bytes, true) {
                return;
            }
            self.client.restart();
            self.is_client_blind = false;
        }
        let mut framing = std::mem::take(&mut self.client);
        let mut input = piece.bytes;
        while !self.is_client_blind {
            match framing.next(&mut input, piece.at) {
                Step::Message(message) => self.on_client(&message, piece.at, to),
                Step::More => break,
                Step::Broken => self.is_client_blind = true,
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
        if self.is_server_blind && begins_mongodb(piece.bytes, false) {
            self.server.restart();
            self.is_server_blind = false;
        }
        let mut framing = std::mem::take(&mut self.server);
        let mut input = piece.bytes;
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
        self.is_opening = false;
        if let Some(opaque) = &mut self.opaque {
            if is_client {
                opaque.client(at, u64::from(count), to.turns);
            } else {
                opaque.server(at, u64::from(count));
            }
            return opaque.pending.lost();
        }
        if is_client {
            // Requests before it were whole, and their answers will name them.
            self.is_request_lost = !self.is_client_blind && matches!(self.client.skip(count), Step::More);
            if !self.is_request_lost {
                self.is_client_blind = true;
                let expected = Expected {
                    number: None,
                    ends_at_first: false,
                    may_be_unanswered: false,
                    is_write: false,
                    cursor: None,
                };
                self.pending.ask(Kind::Other, SentSql::default(), (at, at), u64::from(count), expected);
                if let Some((turn, _)) = self.pending.last() {
                    turn.is_lost = true;
                }
            }
            return;
        }
        if self.is_server_blind || !matches!(self.server.skip(count), Step::More) {
            self.is_server_blind = true;
            self.pending.answered(at, at, u64::from(count));
        }
        self.pending.lost();
    }

    pub fn pending(&mut self) -> &mut Pending<Expected> {
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
        self.client.memory() + self.server.memory() + self.pending.memory()
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
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
        let Some(request) = request(message, to.statements) else {
            self.is_client_blind = true;
            return;
        };
        let is_lost = std::mem::take(&mut self.is_request_lost);
        if !request.wants_answer {
            return;
        }
        self.is_own |= request.is_own;
        if to.statements.in_full && request.database != self.pending.identity.database {
            let identity = ClientIdentity { user: Vec::new(), database: request.database.clone() };
            self.pending.identity = Arc::new(identity);
        }
        let Request { number, kind, command, mut sent, cursor, .. } = request;
        sent.is_own = self.is_own;
        let expected = Expected {
            number: Some(number),
            ends_at_first: request.is_greeting,
            may_be_unanswered: request.is_compressed,
            is_write: request.is_write,
            cursor,
        };
        if !self.pending.ask(kind, sent, (message.begun_at, at), message.size, expected) {
            self.is_server_blind = true;
            return self.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, to.turns);
        }
        if let Some((turn, _)) = self.pending.last() {
            turn.command = command;
            turn.is_lost = is_lost;
        }
    }

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        let Some((head, rest)) = Head::read(message.content) else {
            self.is_server_blind = true;
            return;
        };
        let named = self.pending.place(|expected| expected.number == Some(head.answers));
        // An answer to nothing that was seen: perhaps to what was lost.
        let Some(place) = named.or_else(|| self.pending.place(|expected| expected.number.is_none())) else { return };
        for _ in 0..place {
            match self.pending.head() {
                Some((_, expected)) if expected.may_be_unanswered => self.pending.forget(),
                Some((turn, _)) => {
                    turn.is_lost = true;
                    self.pending.finish(Outcome::Unfinished, None, to.turns);
                }
                None => break,
            }
        }
        let answer = Answer::read(head.kind, rest, message, to.statements.in_full);
        self.pending.answered(message.begun_at, at, message.size);
        let Some((turn, expected)) = self.pending.head() else { return };
        if answer.error.is_some() {
            turn.error.clone_from(&answer.error);
        }
        if answer.is_failed {
            turn.outcome = Outcome::Error;
        }
        let (outcome, error) = (turn.outcome, turn.error.clone());
        let is_over = !answer.goes_on || expected.ends_at_first;
        // The next of several answers names the one before it.
        expected.number = Some(head.number);
        let is_write = expected.is_write;
        match (answer.cursor, expected.cursor) {
            (Some(0), Some(read)) => to.statements.closed(read),
            (Some(0) | None, _) => {}
            // Only statements have a query: what waits for news opens none.
            (Some(open), _) if turn.kind == Kind::Query => to.statements.opened(open, &turn.sent),
            _ => {}
        }
        self.pending.info.rows += answer.rows;
        self.pending.info.affected += if is_write { answer.affected } else { 0 };
        self.pending.session_id = answer.session_id.or(self.pending.session_id);
        if is_over {
            self.pending.finish(outcome, error, to.turns);
        }
    }
}

#[cfg(test)]
mod tests;
