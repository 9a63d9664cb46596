//! A request and its response, for any protocol, and the queue of unanswered ones on a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::packets::statement::SentSql;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Prepare,
    Execute,
    Login,
    Other,
    Opaque,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Prepare => "prepare",
            Self::Execute => "execute",
            Self::Login => "login",
            Self::Other => "other",
            Self::Opaque => "opaque",
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Error,
    Closed,
    Unfinished,
}

/// What a response says about its request, beside how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseInfo {
    /// Rows that were sent.
    pub rows: u64,
    /// Rows that were changed, as the server counts them.
    pub affected: u64,
    pub warnings: u16,
    /// MySQL's status flags.
    pub status: u16,
}

/// Account and database, from the login and later changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientIdentity {
    pub user: Vec<u8>,
    pub database: Vec<u8>,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub kind: Kind,
    /// The server's name of a request that is not a statement.
    pub command: &'static str,
    /// Parameter values, as a list: `$1 = 'a', $2 = NULL`.
    pub parameters: Vec<u8>,
    pub info: ResponseInfo,
    pub identity: Arc<ClientIdentity>,
    pub sent: SentSql,
    pub session_id: Option<i64>,
    pub request_at: i64,
    pub request_end_at: i64,
    pub first_byte_at: Option<i64>,
    pub done_at: i64,
    pub outcome: Outcome,
    /// Some of its packets were not captured.
    pub is_lost: bool,
    pub error: Option<Arc<str>>,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub ahead: usize,
    pub retransmits: u32,
    /// Sequence number of the segment that began the request, if it is known.
    pub request_seq: Option<u32>,
}

/// Most unanswered requests of one connection.
const PENDING_MAX: usize = 4096;

/// The unanswered requests, each with the protocol's state.
#[derive(Debug)]
pub(crate) struct Pending<E> {
    turns: VecDeque<(Turn, E)>,
    /// The server's number of the connection.
    pub session_id: Option<i64>,
    /// The content of the present response so far.
    pub info: ResponseInfo,
    pub identity: Arc<ClientIdentity>,
}

impl<E> Default for Pending<E> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), session_id: None, info: ResponseInfo::default(), identity: Arc::default() }
    }
}

impl<E> Pending<E> {
    /// Adds a request, whose first byte came at `from` and whose last at `to`. False if there are
    /// too many.
    pub fn ask(&mut self, kind: Kind, sent: SentSql, (from, to): (i64, i64), bytes: u64, expected: E) -> bool {
        if self.turns.len() >= PENDING_MAX {
            return false;
        }
        let turn = Turn {
            kind,
            command: "",
            parameters: Vec::new(),
            info: ResponseInfo::default(),
            identity: Arc::default(),
            sent,
            session_id: None,
            request_at: from,
            request_end_at: to,
            first_byte_at: None,
            done_at: to,
            outcome: Outcome::Ok,
            is_lost: false,
            error: None,
            request_bytes: bytes,
            response_bytes: 0,
            ahead: self.turns.len(),
            retransmits: 0,
            request_seq: None,
        };
        self.turns.push_back((turn, expected));
        true
    }

    /// Adds a request that servers do not answer.
    pub fn unanswered(
        &mut self,
        command: &'static str,
        sent: SentSql,
        when: (i64, i64),
        bytes: u64,
        turns: &mut Vec<Turn>,
    ) {
        let mut one =
            Pending::<()> { session_id: self.session_id, identity: Arc::clone(&self.identity), ..Pending::default() };
        one.ask(Kind::Other, sent, when, bytes, ());
        if let Some((turn, ())) = one.last() {
            turn.command = command;
        }
        one.finish(Outcome::Ok, None, turns);
    }

    /// How many requests are ahead of the first one that is so.
    pub fn place(&self, is_so: impl Fn(&E) -> bool) -> Option<usize> {
        self.turns.iter().position(|(_, expected)| is_so(expected))
    }

    /// Drops the head without a row.
    pub fn forget(&mut self) {
        self.turns.pop_front();
    }

    /// The request that is being answered.
    pub fn head(&mut self) -> Option<&mut (Turn, E)> {
        self.turns.front_mut()
    }

    /// The request that was sent last.
    pub fn last(&mut self) -> Option<&mut (Turn, E)> {
        self.turns.back_mut()
    }

    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Adds bytes of the head's response, the first of which came at `from`, the last at `to`.
    pub fn answered(&mut self, from: i64, to: i64, bytes: u64) {
        if let Some((turn, _)) = self.turns.front_mut() {
            turn.first_byte_at.get_or_insert(from);
            turn.done_at = turn.done_at.max(to);
            turn.response_bytes += bytes;
        }
    }

    /// The head has ended.
    pub fn finish(&mut self, outcome: Outcome, error: Option<Arc<str>>, turns: &mut Vec<Turn>) -> Option<E> {
        let (mut turn, expected) = self.turns.pop_front()?;
        turn.outcome = outcome;
        turn.error = error;
        turn.session_id = self.session_id;
        turn.info = std::mem::take(&mut self.info);
        turn.identity = Arc::clone(&self.identity);
        turns.push(turn);
        Some(expected)
    }

    /// Ends everything pending: as `answered` if the response has begun, else as `unanswered`.
    /// Unless that is a success, the end is at `at`.
    pub fn finish_all(&mut self, answered: Outcome, unanswered: Outcome, at: Option<i64>, turns: &mut Vec<Turn>) {
        while let Some((turn, _)) = self.turns.front_mut() {
            let outcome = if turn.first_byte_at.is_some() { answered } else { unanswered };
            if let Some(at) = at.filter(|_| outcome != Outcome::Ok) {
                turn.done_at = turn.done_at.max(at);
            }
            self.finish(outcome, None, turns);
        }
    }

    /// Packets of pending requests were lost.
    pub fn lost(&mut self) {
        self.turns.iter_mut().for_each(|(turn, _)| turn.is_lost = true);
    }

    /// A segment of the head was retransmitted.
    pub fn sent_again(&mut self) {
        if let Some((turn, _)) = self.turns.front_mut() {
            turn.retransmits += 1;
        }
    }

    /// Numbers the requests that were added last by when their first byte was seen. Returns whether there
    /// were any.
    pub fn number(&mut self, seq_at: &dyn Fn(i64) -> Option<u32>) -> bool {
        let fresh = self.turns.iter_mut().rev().map(|(turn, _)| turn).take_while(|turn| turn.request_seq.is_none());
        let mut is_any = false;
        for turn in fresh {
            turn.request_seq = seq_at(turn.request_at);
            is_any = true;
            if turn.request_seq.is_none() {
                break;
            }
        }
        is_any
    }

    /// Whether the head has been answered, and nothing came since `at`.
    pub fn is_quiet_since(&self, at: i64) -> bool {
        self.turns.front().is_some_and(|(turn, _)| turn.first_byte_at.is_some() && turn.done_at < at)
    }

    pub fn memory(&self) -> usize {
        self.turns.capacity() * size_of::<(Turn, E)>()
    }
}
