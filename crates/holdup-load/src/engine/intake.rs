//! What a loop reads with, and what came of it: the buffer, the clock of the stamps, and the requests
//! that ended.

use holdup_protocol::http::http1::HeadMemo;

use super::clock::Clock;
use super::outcome::Outcome;
use super::refusals::Refusals;
use super::tls::Tls;

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
