//! What the readers of all protocols do alike: the messages of both sides as they are cut off the bytes, what is done where the
//! start of the next is unknown, bytes that were never captured, and a connection that becomes unreadable. A protocol says what
//! messages mean and where reading may resume.

use crate::packets::framing::{Framing, Head, Message, Step};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::statement::SentSql;
use crate::packets::turn::{Kind, Outcome, Pending, Turn};

/// The state of a connection, of any protocol.
#[derive(Debug)]
pub(crate) struct Talk<E> {
    pub client: Framing,
    pub server: Framing,
    /// The start of the next message is unknown, of the client or (below) of the server.
    pub is_client_blind: bool,
    pub is_server_blind: bool,
    /// Packets of the present request were not captured.
    pub is_request_lost: bool,
    pub pending: Pending<E>,
    pub opaque: Option<Opaque>,
}

impl<E> Talk<E> {
    /// A connection whose start was seen, or not.
    pub fn new(client: Framing, server: Framing, is_opened: bool) -> Self {
        Self {
            client,
            server,
            is_client_blind: !is_opened,
            is_server_blind: !is_opened,
            is_request_lost: false,
            pending: Pending::default(),
            opaque: None,
        }
    }

    /// Adds a request. False if there are too many: from then on it is read by turns.
    pub fn ask(
        &mut self,
        kind: Kind,
        sent: SentSql,
        when: (i64, i64),
        bytes: u64,
        expected: E,
        turns: &mut Vec<Turn>,
    ) -> bool {
        if !self.pending.ask(kind, sent, when, bytes, expected) {
            self.is_server_blind = true;
            self.pending.finish_all(Outcome::Ok, Outcome::Unfinished, None, turns);
            return false;
        }
        if let Some((turn, _)) = self.pending.last() {
            turn.is_lost = std::mem::take(&mut self.is_request_lost);
        }
        true
    }

    pub fn memory(&self) -> usize {
        self.client.memory() + self.server.memory() + self.pending.memory()
    }

    /// By turns: a new request ends the answered one before it, and if there is none the server's next bytes are the start of
    /// its response.
    pub fn takes_turns(&mut self, turns: &mut Vec<Turn>) {
        if !self.is_server_blind {
            return;
        }
        if self.pending.head().is_some_and(|(turn, _)| turn.first_byte_at.is_some()) {
            self.pending.finish_all(Outcome::Ok, Outcome::Ok, None, turns);
        }
        if self.pending.len() == 0 {
            self.server.restart();
            self.is_server_blind = false;
        }
    }
}

/// One connection of a protocol.
pub(crate) trait Conversation {
    /// What is expected for a request.
    type Expected;
    /// An answer names its request: bytes that were lost cost only the exchange that they belonged to.
    const NAMES_REQUESTS: bool = false;

    fn talk(&mut self) -> &mut Talk<Self::Expected>;

    /// Before bytes of the client are read: whether they can be.
    fn hears_client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) -> bool;

    /// Before bytes of the server are read: what is left of them, if they can be.
    fn hears_server<'p>(&mut self, piece: &Piece<'p>, _to: &mut Sinks<'_>) -> Option<&'p [u8]> {
        Some(piece.bytes)
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>);

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>);

    /// The head of the client's next message.
    fn client_head(&self) -> Head;

    /// A request was lost, and with it the start of the next: what its answer may be.
    fn lost_request(&mut self) -> Self::Expected;

    /// Bytes were not captured, of either side.
    fn is_interrupted(&mut self) {}

    /// The connection ends.
    fn ends(&mut self, _to: &mut Sinks<'_>) {}

    /// Whether the present response ends only where the next request begins.
    fn ends_by_turn(&mut self) -> bool {
        self.talk().is_server_blind
    }

    /// Bytes that it keeps.
    fn kept_bytes(&self) -> usize;
}

/// A [`Conversation`] of any protocol, from the outside.
pub(crate) trait Reader: std::fmt::Debug + Send {
    /// Bytes of the client or the server.
    fn take(&mut self, is_client: bool, piece: &Piece<'_>, to: &mut Sinks<'_>);

    /// `count` bytes of one side were not captured.
    fn lost(&mut self, is_client: bool, at: i64, count: u32, to: &mut Sinks<'_>);

    /// A segment was retransmitted.
    fn sent_again(&mut self);

    /// Numbers the requests that were added last. Returns whether there were any.
    fn number(&mut self, seq_at: &dyn Fn(i64) -> Option<u32>) -> bool;

    /// The connection, or the capture, has ended: unanswered requests end with `unanswered` at `at`.
    fn end(&mut self, unanswered: Outcome, at: i64, to: &mut Sinks<'_>);

    /// Ends responses that end by turns, if nothing came since `since`.
    fn quiet(&mut self, since: i64, to: &mut Sinks<'_>);

    fn memory(&self) -> usize;
}

impl<C: Conversation + std::fmt::Debug + Send> Reader for C {
    fn take(&mut self, is_client: bool, piece: &Piece<'_>, to: &mut Sinks<'_>) {
        match &mut self.talk().opaque {
            Some(opaque) if is_client => opaque.client(piece.at, piece.length(), to.turns),
            Some(opaque) => opaque.server(piece.at, piece.length()),
            None if is_client => read_client(self, piece, to),
            None => read_server(self, piece, to),
        }
    }

    fn lost(&mut self, is_client: bool, at: i64, count: u32, to: &mut Sinks<'_>) {
        self.is_interrupted();
        let bytes = u64::from(count);
        let talk = self.talk();
        if let Some(opaque) = &mut talk.opaque {
            if is_client {
                opaque.client(at, bytes, to.turns);
            } else {
                opaque.server(at, bytes);
            }
            return opaque.pending.lost();
        }
        if is_client {
            talk.is_request_lost = !talk.is_client_blind && matches!(talk.client.skip(count), Step::More);
            if !talk.is_request_lost {
                talk.is_client_blind = true;
                let expected = self.lost_request();
                self.talk().pending.ask(Kind::Other, SentSql::default(), (at, at), bytes, expected);
                if let Some((turn, _)) = self.talk().pending.last() {
                    turn.is_lost = true;
                }
            }
            if C::NAMES_REQUESTS {
                return;
            }
        } else if talk.is_server_blind || !matches!(talk.server.skip(count), Step::More) {
            talk.is_server_blind = true;
            talk.pending.answered(at, at, bytes);
        }
        self.talk().pending.lost();
    }

    fn sent_again(&mut self) {
        let talk = self.talk();
        match &mut talk.opaque {
            Some(opaque) => opaque.pending.sent_again(),
            None => talk.pending.sent_again(),
        }
    }

    fn number(&mut self, seq_at: &dyn Fn(i64) -> Option<u32>) -> bool {
        let talk = self.talk();
        match &mut talk.opaque {
            Some(opaque) => opaque.pending.number(seq_at),
            None => talk.pending.number(seq_at),
        }
    }

    fn end(&mut self, unanswered: Outcome, at: i64, to: &mut Sinks<'_>) {
        self.ends(to);
        // If responses are timed by turns, an answered request ended with its last byte;
        // otherwise it is cut off.
        let answered = if self.ends_by_turn() { Outcome::Ok } else { unanswered };
        let talk = self.talk();
        talk.pending.finish_all(answered, unanswered, Some(at), to.turns);
        if let Some(opaque) = &mut talk.opaque {
            opaque.pending.finish_all(Outcome::Ok, unanswered, Some(at), to.turns);
        }
    }

    fn quiet(&mut self, since: i64, to: &mut Sinks<'_>) {
        let by_turn = self.ends_by_turn();
        let talk = self.talk();
        match &mut talk.opaque {
            Some(Opaque { pending }) if pending.is_quiet_since(since) => {
                pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            }
            None if by_turn && talk.pending.is_quiet_since(since) => {
                talk.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            }
            _ => {}
        }
    }

    fn memory(&self) -> usize {
        self.kept_bytes()
    }
}

fn read_client<C: Conversation>(of: &mut C, piece: &Piece<'_>, to: &mut Sinks<'_>) {
    if !of.hears_client(piece, to) {
        return;
    }
    let mut framing = std::mem::take(&mut of.talk().client);
    let mut input = piece.bytes;
    while !of.talk().is_client_blind {
        match framing.next(&mut input, piece.at) {
            Step::Message(message) => of.on_client(&message, piece.at, to),
            Step::More => break,
            Step::Broken => of.talk().is_client_blind = true,
        }
        if let Some(opaque) = &mut of.talk().opaque {
            return opaque.client(piece.at, input.len() as u64 + u64::from(piece.cut), to.turns);
        }
        framing.head = of.client_head();
    }
    if piece.cut > 0 && !of.talk().is_client_blind {
        match framing.skip(piece.cut) {
            Step::Message(message) => of.on_client(&message, piece.at, to),
            Step::More => {}
            Step::Broken => of.talk().is_client_blind = true,
        }
    }
    of.talk().client = framing;
}

fn read_server<C: Conversation>(of: &mut C, piece: &Piece<'_>, to: &mut Sinks<'_>) {
    let Some(mut input) = of.hears_server(piece, to) else { return };
    let mut framing = std::mem::take(&mut of.talk().server);
    while !of.talk().is_server_blind {
        match framing.next(&mut input, piece.at) {
            Step::Message(message) => of.on_server(&message, piece.at, to),
            Step::More => break,
            Step::Broken => of.talk().is_server_blind = true,
        }
        if of.talk().opaque.is_some() {
            return;
        }
    }
    if framing.is_within() {
        // A response has begun, though its first message is incomplete.
        of.talk().pending.answered(piece.at, piece.at, 0);
    }
    if piece.cut > 0 && !of.talk().is_server_blind {
        match framing.skip(piece.cut) {
            Step::Message(message) => of.on_server(&message, piece.at, to),
            Step::More => {}
            Step::Broken => of.talk().is_server_blind = true,
        }
    }
    let talk = of.talk();
    if talk.is_server_blind {
        talk.pending.answered(piece.at, piece.at, input.len() as u64 + u64::from(piece.cut));
    }
    talk.server = framing;
}
