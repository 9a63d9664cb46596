//! Whether a connection takes another request: the next one, one more at the same time, or again the
//! one that was on it when it broke.

use super::{Connection, ProtocolState};
use crate::engine::slots::InFlight;

impl Connection {
    /// Whether further requests can be sent on it.
    pub fn is_reusable(&self) -> bool {
        if self.is_used && !self.keeps_alive {
            return false;
        }
        match &self.speech {
            ProtocolState::Http1(_) | ProtocolState::Sql(_) => self.reusable,
            // A session without room although no stream is open accepts no more: the server has
            // announced that it closes.
            ProtocolState::Http2(session) => session.room() > 0 || session.open_streams() > 0,
        }
    }

    /// How many more requests can be sent now.
    pub fn room(&self) -> u32 {
        match &self.speech {
            ProtocolState::Http1(_) | ProtocolState::Sql(_) => 1,
            ProtocolState::Http2(session) => session.room(),
        }
    }

    /// Whether a request that was on the connection when it broke may be sent again on another. The
    /// connection must have answered a request before, so that the server most likely closed it as
    /// idle, and no byte of a response may have come. RFC 9110, section 9.2.2, allows it for
    /// requests that change nothing, and for those that were never sent.
    pub fn may_repeat(&self, request: &InFlight, method: &str) -> bool {
        let (is_untouched, is_unsent) = match &self.speech {
            ProtocolState::Http1(_) => (!self.is_answering, self.is_asked && self.written == 0),
            ProtocolState::Http2(_) => (request.status == 0, request.is_waiting),
            // The statement may have run before the connection broke.
            ProtocolState::Sql(_) => (false, false),
        };
        self.has_answered && is_untouched && (is_unsent || matches!(method, "GET" | "HEAD"))
    }
}
