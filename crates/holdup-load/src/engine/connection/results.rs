//! What a connection and its loop exchange: the state of the connection, what the loop
//! reads with, and what came of that.

use holdup_protocol::http::http1::HeadMemo;

use crate::engine::clock::Clock;
use crate::engine::outcome::Outcome;
use crate::engine::refusals::Refusals;
use crate::engine::tls::Tls;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Without a socket.
    Closed,
    /// The kernel is connecting since this time.
    Connecting(i64),
    /// The TLS handshake is under way; connecting began at this time.
    Handshaking(i64),
    /// Requests can be sent.
    Open,
}

/// A request that ended.
pub struct EndedRequest {
    /// Its slot.
    pub slot: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When its last byte arrived.
    pub at: i64,
    /// Whether to send it again instead.
    pub again: Resend,
}

/// Whether a request that the server did not process may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// The server processed it, or does not say.
    No,
    /// The server refused it, and may refuse it again: resend once.
    Once,
    /// The server is closing a connection on which it has answered other requests: a new connection
    /// should work as well.
    Always,
}

/// The result of reading.
pub enum ReadResult {
    /// Everything that had arrived was read.
    All,
    /// There may be more: read again without waiting for an event.
    Some,
    /// The connection is broken; requests still on it ended with this outcome.
    Broken(Outcome),
}

/// What a loop reads with, and what came of it.
pub struct Intake<'a> {
    /// The buffer for reading.
    pub buffer: Vec<u8>,
    /// Requests that ended.
    pub ended: Vec<EndedRequest>,
    /// Whether `Set-Cookie` headers are kept, and (below) these, by slot.
    pub keeps_cookies: bool,
    /// See `keeps_cookies`.
    pub set_cookies: Vec<(u32, Box<[u8]>)>,
    /// Most bytes of a body.
    pub most_bytes: u64,
    /// Turns the kernel's time stamps into moments.
    pub clock: Clock,
    /// TLS, if the target speaks it.
    pub tls: Option<&'a Tls>,
    /// The last response head of each operation; the next is likely to be equal.
    pub memos: Vec<HeadMemo>,
    /// Texts of the database's refusals.
    pub refusals: Refusals,
}
