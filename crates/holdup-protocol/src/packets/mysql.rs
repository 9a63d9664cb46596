//! One connection of MySQL or MariaDB: messages of both sides -> requests and responses.
//!
//! If the start of a connection was not seen, or bytes are missing, reading resumes with the next
//! request that is alone in a segment; until then a response ends where the next request begins.

mod command;
mod expectation;
mod login;
mod parameters;
mod response;

pub(crate) use self::parameters::quoted;

use std::collections::HashMap;

use self::command::Command;
use self::login::{Capabilities, LoginReply, client_identity, greeting, login_reply, u32_at};
use self::parameters::Parameters;
use self::response::{Expected, Meaning, Place, ResponseState};
use crate::packets::conversation::{Conversation, Talk};
use crate::packets::framing::{Framing, Head, Message};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::statement::SentSql;
use crate::packets::turn::{ClientIdentity, Kind, Outcome};

/// Bytes of a request that are kept: its statement.
const REQUEST_BYTES_KEPT: usize = 64 << 10;
/// Bytes of a message of the server that are kept.
const RESPONSE_BYTES_KEPT: usize = 256;
/// Most prepared statements that are remembered per connection.
const PREPARED_MAX: usize = 16_384;
/// Bytes of a segment that is full in any network.
const LONG_BEGIN: u64 = 500;
/// MariaDB: "the statement that was prepared last".
const LAST_PREPARED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    Login,
    Commands,
}

#[derive(Debug)]
pub(crate) struct Mysql {
    phase: Phase,
    talk: Talk<Expected>,
    prepared: HashMap<u32, (SentSql, Parameters)>,
    last_prepared: SentSql,
    of_server: Capabilities,
    has_attributes: Option<bool>,
    is_compressed: bool,
    response: ResponseState,
    opened_at: i64,
}

impl Mysql {
    /// A connection that was opened at `opened_at`, or whose start was not seen.
    pub fn new(opened_at: Option<i64>) -> Self {
        let client = Framing::new(Head::Mysql, REQUEST_BYTES_KEPT);
        let server = Framing::new(Head::Mysql, RESPONSE_BYTES_KEPT);
        Self {
            phase: if opened_at.is_none() { Phase::Commands } else { Phase::Greeting },
            talk: Talk::new(client, server, opened_at.is_some()),
            prepared: HashMap::new(),
            last_prepared: SentSql::default(),
            of_server: Capabilities::default(),
            has_attributes: None,
            is_compressed: false,
            response: ResponseState::default(),
            opened_at: opened_at.unwrap_or_default(),
        }
    }

    /// Whether a message in the command phase may begin like this.
    fn begins_well(&mut self, piece: &Piece<'_>) -> bool {
        let is_upload = matches!(self.talk.pending.head(), Some((_, Expected::Results(Place::Upload))));
        let is_login = matches!(self.talk.pending.last(), Some((_, Expected::Login)));
        is_upload || is_login || !matches!(piece.bytes, [_, _, _, number, ..] if *number != 0)
    }

    /// Further bytes of the client that are not a new request.
    fn more(&mut self, bytes: u64) {
        if let Some((turn, _)) = self.talk.pending.last() {
            turn.request_bytes += bytes;
        }
    }

    fn on_command(&mut self, message: &Message<'_>, when: (i64, i64), to: &mut Sinks<'_>) {
        match self.talk.pending.head() {
            Some((_, Expected::Results(Place::Upload) | Expected::Login)) => return self.more(message.size),
            Some((turn, expected))
                if self.talk.is_server_blind
                    || turn.first_byte_at.is_some() && expected.may_be_over(&self.response) =>
            {
                self.talk.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            }
            _ => {}
        }
        let Some((&number, content)) = message.content.split_first() else {
            self.talk.is_client_blind = true;
            return;
        };
        let Some(command) = Command::from_number(number).filter(|_| message.kind == 0) else {
            self.talk.is_client_blind = true;
            self.talk.is_server_blind = true;
            return;
        };
        if self.talk.is_server_blind && self.talk.pending.len() == 0 {
            // The server's next bytes are the start of its response.
            self.talk.server.restart();
            self.talk.is_server_blind = false;
        }
        let Some((sent, expected)) = self.expectation(command, content, to) else {
            let sent = match (command, u32_at(content, 0)) {
                (Command::Close, Some(id)) => self.prepared.remove(&id).map(|(sent, _)| sent).unwrap_or_default(),
                _ => SentSql::default(),
            };
            if to.statements.in_full {
                self.talk.pending.unanswered(Command::name(number), sent, when, message.size, to.turns);
            }
            return;
        };
        self.talk.ask(command.kind(), sent, when, message.size, expected, to.turns);
        self.name(Command::name(number));
        if to.statements.in_full {
            self.fill_in(command, u32_at(content, 0), content);
        }
    }

    /// A login lasts from the first packet of the connection.
    fn counts_from_the_door(&mut self) {
        if let Some((turn, _)) = self.talk.pending.last().filter(|_| self.opened_at != 0) {
            (turn.request_at, turn.request_end_at) = (self.opened_at, self.opened_at);
        }
    }

    /// Sets the server's name of the last command.
    fn name(&mut self, name: &'static str) {
        if let Some((turn, _)) = self.talk.pending.last() {
            turn.command = name;
        }
    }

    /// Adds the request's details beside its statement, if they are wanted.
    fn fill_in(&mut self, command: Command, id: Option<u32>, content: &[u8]) {
        match (command, self.prepared.get_mut(&id.unwrap_or(LAST_PREPARED))) {
            (Command::Execute, Some((_, parameters))) => {
                let filled = parameters.read(content, self.has_attributes == Some(true));
                if let Some((turn, _)) = self.talk.pending.last() {
                    turn.parameters = filled;
                }
            }
            (Command::ChangeUser, _) => {
                let user = content.split(|byte| *byte == 0).next().unwrap_or_default();
                self.talk.pending.identity = ClientIdentity { user: user.to_vec(), database: Vec::new() }.into();
            }
            (Command::Simple, _) if self.talk.pending.last().is_some_and(|(turn, _)| turn.command == "Init DB") => {
                let user = self.talk.pending.identity.user.clone();
                self.talk.pending.identity = ClientIdentity { user, database: content.to_vec() }.into();
            }
            _ => {}
        }
    }

    fn on_greeting(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        if let Some((id, capabilities)) = greeting(message.content) {
            self.talk.pending.session_id = Some(i64::from(id));
            self.of_server = capabilities;
        } else if let [0xff, a, b, ..] = message.content {
            // Refused right away, e.g. because of too many connections: the only request was the
            // login.
            let opened = (self.opened_at, self.opened_at);
            self.talk.pending.ask(Kind::Login, SentSql::default(), opened, 0, Expected::Login);
            self.talk.pending.answered(message.begun_at, at, message.size);
            let code = u16::from_le_bytes([*a, *b]).to_string();
            self.talk.pending.finish(Outcome::Error, Some(code.into()), to.turns);
        }
    }
}

impl Conversation for Mysql {
    type Expected = Expected;

    fn talk(&mut self) -> &mut Talk<Expected> {
        &mut self.talk
    }

    fn client_head(&self) -> Head {
        Head::Mysql
    }

    fn hears_client(&mut self, piece: &Piece<'_>, to: &mut Sinks<'_>) -> bool {
        let is_between = self.phase == Phase::Commands && !self.talk.client.is_within();
        if self.talk.is_client_blind || is_between && !self.begins_well(piece) {
            if !stands_alone(piece) {
                (self.talk.is_client_blind, self.talk.is_server_blind) = (true, true);
                return false;
            }
            self.talk.pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            self.talk.client.restart();
            self.talk.is_client_blind = false;
        }
        true
    }

    fn on_client(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        let when = (message.begun_at, at);
        match self.phase {
            // The greeting was not captured.
            Phase::Greeting | Phase::Login if self.talk.pending.len() == 0 => {
                self.phase = Phase::Login;
                match login_reply(message.content, message.length) {
                    Some(LoginReply::Tls) => {
                        let mut opaque = Opaque::new(self.talk.pending.session_id);
                        opaque.client(at, message.size, to.turns);
                        self.talk.opaque = Some(opaque);
                    }
                    Some(LoginReply::Login(own)) => {
                        let both = own.both(self.of_server);
                        self.is_compressed = both.is_compressed();
                        self.has_attributes = Some(both.has_query_attributes());
                        self.response.deprecates_eof = Some(both.deprecates_eof());
                        self.response.has_optional_metadata = both.has_optional_metadata();
                        self.talk.pending.ask(Kind::Login, SentSql::default(), when, message.size, Expected::Login);
                        self.name("Connect");
                        if to.statements.in_full {
                            self.counts_from_the_door();
                            let (user, database) = client_identity(message.content, both);
                            self.talk.pending.identity = ClientIdentity { user, database }.into();
                        }
                    }
                    None => self.talk.is_client_blind = true,
                }
            }
            Phase::Greeting | Phase::Login => self.more(message.size),
            Phase::Commands => self.on_command(message, when, to),
        }
    }

    fn on_server(&mut self, message: &Message<'_>, at: i64, to: &mut Sinks<'_>) {
        if self.phase == Phase::Greeting {
            self.phase = Phase::Login;
            return self.on_greeting(message, at, to);
        }
        self.talk.pending.answered(message.begun_at, at, message.size);
        let Some((_, expected)) = self.talk.pending.head() else { return };
        let is_login = matches!(expected, Expected::Login);
        let prepared = &mut self.prepared;
        let meaning = expected.take(message, &mut self.response, &mut |id, sent, count| {
            if prepared.len() >= PREPARED_MAX {
                prepared.clear();
            }
            prepared.insert(id, (sent, Parameters::new(count)));
        });
        if meaning != Meaning::GoesOn {
            self.talk.pending.info = std::mem::take(&mut self.response.info);
        }
        match meaning {
            Meaning::GoesOn => {}
            Meaning::Done => {
                self.talk.pending.finish(Outcome::Ok, None, to.turns);
            }
            Meaning::Failed(code) => {
                self.talk.pending.finish(Outcome::Error, Some(code), to.turns);
            }
            Meaning::Senseless => self.talk.is_server_blind = true,
        }
        if is_login && self.talk.pending.len() == 0 {
            self.phase = Phase::Commands;
            if self.is_compressed {
                self.talk.opaque = Some(Opaque::new(self.talk.pending.session_id));
            }
        }
    }

    fn lost_request(&mut self) -> Expected {
        self.talk.is_server_blind = true;
        Expected::Anything
    }

    /// A client that was greeted and sent nothing still counts as a login.
    fn ends(&mut self, to: &mut Sinks<'_>) {
        let is_greeted = self.phase == Phase::Login && self.talk.pending.session_id.is_some();
        if to.statements.in_full && is_greeted && self.talk.pending.len() == 0 && self.talk.opaque.is_none() {
            self.talk.pending.ask(
                Kind::Login,
                SentSql::default(),
                (self.opened_at, self.opened_at),
                0,
                Expected::Login,
            );
            self.name("Connect");
        }
    }

    fn ends_by_turn(&mut self) -> bool {
        let response = self.response;
        self.talk.is_server_blind
            || self.talk.pending.head().is_some_and(|(_, expected)| expected.may_be_over(&response))
    }

    fn kept_bytes(&self) -> usize {
        self.talk.memory() + self.prepared.capacity() * size_of::<(u32, (SentSql, Parameters))>()
    }
}

/// Whether `piece` is one complete command: its length is that of the segment, its number 0, its
/// first byte a command's.
fn stands_alone(piece: &Piece<'_>) -> bool {
    let [a, b, c, 0, command, ..] = piece.bytes else { return false };
    let length = u64::from(u32::from_le_bytes([*a, *b, *c, 0]));
    // A long statement continues in the next segment; its start fills a segment with text.
    let is_text = |byte: &u8| *byte >= b' ' || byte.is_ascii_whitespace();
    let begins_long = || {
        matches!(*command, 0x03 | 0x16)
            && piece.length() >= LONG_BEGIN
            && length + 4 > piece.length()
            && piece.bytes.get(5..69).is_some_and(|begin| begin.iter().all(is_text))
    };
    Command::from_number(*command).is_some() && length + 4 == piece.length() || begins_long()
}

/// Whether a server's first bytes are MySQL's greeting.
pub(crate) fn is_greeting(bytes: &[u8]) -> bool {
    let [_, _, _, 0, 10, rest @ ..] = bytes else { return false };
    rest.first().is_some_and(u8::is_ascii_digit) && rest.iter().take(64).any(|byte| *byte == 0)
}

#[cfg(test)]
mod tests;
