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
use crate::packets::conversation::{Conversation, Talk};
use crate::packets::framing::{Framing, Head as FrameHead, Message};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::turn::{ClientIdentity, Kind, Outcome};

pub(crate) use self::message::begins_mongodb;

const REQUEST_BYTES_KEPT: usize = 64 << 10;
const RESPONSE_BYTES_KEPT: usize = 4096;
/// At the end of an answer: a cursor's number and name, the time of the cluster with its signature.
const RESPONSE_TAIL_BYTES: usize = 768;
/// A record of TLS that begins a handshake, of any version.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// What is expected for a request.
#[derive(Debug, Default)]
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
    talk: Talk<Expected>,
    /// Nothing of the client was seen since the connection was opened.
    is_opening: bool,
    /// holdup itself uses it to watch the server.
    is_own: bool,
}

impl Mongodb {
    /// A connection whose start was seen, or not.
    pub fn new(is_opened: bool) -> Self {
        let client = Framing::new(FrameHead::Mongodb, REQUEST_BYTES_KEPT);
        let server = Framing::new(FrameHead::Mongodb, RESPONSE_BYTES_KEPT).with_tail(RESPONSE_TAIL_BYTES);
        Self { talk: Talk::new(client, server, is_opened), is_opening: is_opened, is_own: false }
    }
}

impl Conversation for Mongodb {
    type Expected = Expected;

    const NAMES_REQUESTS: bool = true;

    fn talk(&mut self) -> &mut Talk<Expected> {
        &mut self.talk
    }

    fn client_head(&self) -> FrameHead {
        FrameHead::Mongodb
    }

    fn hears_client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) -> bool {
        if std::mem::take(&mut self.is_opening) && piece.bytes.starts_with(&TLS_HANDSHAKE) {
            self.talk.opaque.insert(Opaque::new(None)).client(piece.at, piece.length(), to.turns);
            return false;
        }
        if self.talk.is_client_blind {
            if !begins_mongodb(piece.bytes, true) {
                return false;
            }
            self.talk.client.restart();
            self.talk.is_client_blind = false;
        }
        true
    }

    fn hears_server<'p>(&mut self, piece: &Piece<'p>, _to: &mut Sinks<'_>) -> Option<&'p [u8]> {
        if self.talk.is_server_blind && begins_mongodb(piece.bytes, false) {
            self.talk.server.restart();
            self.talk.is_server_blind = false;
        }
        Some(piece.bytes)
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        self.talk.takes_turns(to.turns);
        let Some(request) = request(message, to.statements) else {
            self.talk.is_client_blind = true;
            return;
        };
        if !request.wants_answer {
            self.talk.is_request_lost = false;
            return;
        }
        self.is_own |= request.is_own;
        if to.statements.in_full && request.database != self.talk.pending.identity.database {
            let identity = ClientIdentity { user: Vec::new(), database: request.database.clone() };
            self.talk.pending.identity = Arc::new(identity);
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
        self.talk.ask(kind, sent, (message.begun_at, at), message.size, expected, to.turns);
        self.talk.is_request_lost = false;
        if let Some((turn, _)) = self.talk.pending.last() {
            turn.command = command;
        }
    }

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        let Some((head, rest)) = Head::read(message.content) else {
            self.talk.is_server_blind = true;
            return;
        };
        let named = self.talk.pending.place(|expected| expected.number == Some(head.answers));
        // An answer to nothing that was seen: perhaps to what was lost.
        let Some(place) = named.or_else(|| self.talk.pending.place(|expected| expected.number.is_none())) else {
            return;
        };
        for _ in 0..place {
            match self.talk.pending.head() {
                Some((_, expected)) if expected.may_be_unanswered => self.talk.pending.forget(),
                Some((turn, _)) => {
                    turn.is_lost = true;
                    self.talk.pending.finish(Outcome::Unfinished, None, to.turns);
                }
                None => break,
            }
        }
        let answer = Answer::read(head.kind, rest, message, to.statements.in_full);
        self.talk.pending.answered(message.begun_at, at, message.size);
        let Some((turn, expected)) = self.talk.pending.head() else { return };
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
        self.talk.pending.info.rows += answer.rows;
        self.talk.pending.info.affected += if is_write { answer.affected } else { 0 };
        self.talk.pending.session_id = answer.session_id.or(self.talk.pending.session_id);
        if is_over {
            self.talk.pending.finish(outcome, error, to.turns);
        }
    }

    fn is_interrupted(&mut self) {
        self.is_opening = false;
    }

    fn lost_request(&mut self) -> Expected {
        Expected::default()
    }

    fn kept_bytes(&self) -> usize {
        self.talk.memory()
    }
}

#[cfg(test)]
mod tests;
