//! Counts the requests of a server that counts none itself. A request and its answer take at least one
//! segment with data each, so a connection had at most as many rounds as segments in the direction
//! with fewer. Where requests or answers fit into one segment it had exactly as many.
//!
//! The kernel shows nothing of a connection that comes and goes between two samples, so an interval
//! in which connections came and went has no count. A protocol with several answers in flight on one
//! connection (HTTP/2) has requests that this does not tell apart.

use std::collections::HashMap;

use crate::proc::sock_diag::Connection;

/// Connections that came with a request, and those that ended, may be one of so many: fewer hide no
/// others that came and went unseen.
const ONE_OF: usize = 10;

/// Rounds of each connection, by inode.
#[derive(Default)]
pub(super) struct Rounds {
    /// At the last sample; none before the first.
    before: Option<HashMap<u64, u32>>,
    now: HashMap<u64, u32>,
    /// Since the last sample, of all connections together; none if the kernel does not count segments.
    since: Option<u32>,
    /// Connections on which an answer is awaited, and those of them that are new.
    open: (usize, usize),
}

impl Rounds {
    /// Begins a sample.
    pub(super) fn begin(&mut self) {
        (self.since, self.open) = (Some(0), (0, 0));
    }

    /// Adds a connection of the server, which `is_open` if an answer is awaited.
    pub(super) fn add(&mut self, connection: &Connection, is_open: bool) {
        let Some(segments) = connection.info.and_then(|info| info.segments) else {
            self.since = None;
            return;
        };
        let (inode, all) = (connection.socket.inode, segments.data_received.min(segments.data_sent));
        // Two processes may hold it.
        if self.now.contains_key(&inode) {
            return;
        }
        let last = self.before.as_ref().and_then(|before| before.get(&inode)).copied();
        self.since = self.since.map(|sum| sum.saturating_add(all.wrapping_sub(last.unwrap_or(0))));
        self.open.0 += usize::from(is_open);
        self.open.1 += usize::from(is_open && last.is_none());
        self.now.insert(inode, all);
    }

    /// Ends the sample: requests since the last one, at most. None at first, and if connections came
    /// and went.
    pub(super) fn end(&mut self) -> Option<u32> {
        let now = std::mem::take(&mut self.now);
        let ended = |before: &HashMap<u64, u32>| before.keys().filter(|inode| !now.contains_key(inode)).count();
        let is_steady = self.before.as_ref().is_some_and(|before| ended(before) * ONE_OF <= before.len());
        let (open, new) = self.open;
        self.before = Some(now);
        self.since.filter(|_| is_steady && new * ONE_OF <= open)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::proc::sock_diag::{Info, Segments};
    use crate::proc::socket::{ESTABLISHED, Socket};

    /// A connection with so many segments received and sent.
    fn connection(inode: u64, data_received: u32, data_sent: u32) -> Connection {
        let info = Info { segments: Some(Segments { received: 0, data_received, data_sent }), ..Info::default() };
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let socket = Socket { state: ESTABLISHED, address, port: 80, receive_queue: 0, inode };
        Connection { socket, peer: address, peer_port: 0, send_queue: 0, info: Some(info) }
    }

    /// A request is open if more was received than sent.
    fn since(rounds: &mut Rounds, all: &[Connection]) -> Option<u32> {
        rounds.begin();
        for connection in all {
            let segments = connection.info.and_then(|info| info.segments);
            rounds.add(connection, segments.is_some_and(|of| of.data_received > of.data_sent));
        }
        rounds.end()
    }

    #[test]
    fn requests_are_counted_on_connections_that_stay() {
        let mut rounds = Rounds::default();
        assert_eq!(since(&mut rounds, &[connection(1, 5, 5), connection(2, 8, 7)]), None, "at first");
        // Answers of several segments each, and requests of several.
        assert_eq!(since(&mut rounds, &[connection(1, 9, 45), connection(2, 60, 17)]), Some(14));
        // One that came since and has had its answer counts whole.
        assert_eq!(since(&mut rounds, &[connection(1, 9, 45), connection(2, 60, 17), connection(3, 2, 2)]), Some(2));
    }

    #[test]
    fn connections_that_come_and_go_have_requests_that_are_not_seen() {
        let mut rounds = Rounds::default();
        since(&mut rounds, &[connection(1, 5, 5)]);
        assert_eq!(since(&mut rounds, &[connection(1, 6, 6), connection(2, 1, 0)]), None, "it came with its request");
        assert_eq!(since(&mut rounds, &[connection(1, 7, 7)]), None, "one ended");
        assert_eq!(since(&mut rounds, &[connection(1, 9, 9)]), Some(2), "they stay again");
        let unknown = Connection { info: Some(Info::default()), ..connection(1, 0, 0) };
        assert_eq!(since(&mut rounds, &[unknown]), None, "the kernel counts none");
    }
}
