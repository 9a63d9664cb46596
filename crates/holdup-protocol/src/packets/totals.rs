//! What a capture saw in all, and what it missed.

use holdup_recording::metrics::{self, Metric};

/// Totals of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Bytes of them on the wire.
    pub bytes: u64,
    /// Packets of other protocols, or malformed.
    pub foreign: u64,
    /// Fragments of IP, which are not reassembled.
    pub fragments: u64,
    /// Packets that were stored too short.
    pub short: u64,
    /// Connections to the wanted servers.
    pub connections: u64,
    /// Exchanges.
    pub exchanges: u64,
    /// Exchanges with packets that were not captured.
    pub lost_exchanges: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Packets that were captured twice.
    pub copies: u64,
    /// Holes in streams: packets that were never captured.
    pub gaps: u64,
    /// Bytes in them.
    pub lost_bytes: u64,
    /// Bytes of payload that were not stored.
    pub cut_bytes: u64,
    /// Exchanges with which holdup itself watches the server. They are neither counted nor
    /// returned.
    pub own_exchanges: u64,
    /// Exchanges of MongoDB that were compressed: times without a text.
    pub compressed: u64,
    /// Connections that were given up for lack of memory.
    pub given_up: u64,
}

impl Totals {
    /// The recorded ones, as counters.
    pub fn counters(&self) -> [(Metric, u64); 9] {
        [
            (metrics::wire::PACKETS, self.packets),
            (metrics::wire::BYTES, self.bytes),
            (metrics::wire::CONNECTIONS, self.connections),
            (metrics::wire::EXCHANGES, self.exchanges),
            (metrics::wire::OWN_EXCHANGES, self.own_exchanges),
            (metrics::wire::EXCHANGES_LOST, self.lost_exchanges),
            (metrics::wire::RETRANSMITTED_SEGMENTS, self.retransmitted),
            (metrics::wire::GAPS, self.gaps),
            (metrics::wire::LOST_BYTES, self.lost_bytes),
        ]
    }
}
