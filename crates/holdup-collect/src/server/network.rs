//! The present TCP sockets in the server's network namespace, and which of them are the server's.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::IpAddr;

use super::address::Address;
use super::rounds::Rounds;
use super::turn::{self, LastData, Lead, Side};
use crate::proc::sock_diag::{Connection, DiagSocket};
use crate::proc::socket::{CLOSE_WAIT, ESTABLISHED, LISTEN};
use crate::wire::network::inside;

/// Opens the netlink socket in that namespace. For holdup's own namespace it does not call `setns`,
/// which needs a privilege even there.
pub(super) fn open(address: Address) -> io::Result<DiagSocket> {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).ok();
    let other = address.pid.filter(|pid| of(&pid.to_string()).is_none_or(|its| Some(its) != of("self")));
    inside(other, DiagSocket::open)
}

/// One read of all sockets.
#[derive(Default)]
pub(super) struct Sockets {
    /// The server's listening sockets.
    pub(super) listeners: Vec<Connection>,
    /// Connections on its port, including those not accepted yet.
    pub(super) incoming: Vec<Connection>,
    /// Connections made from here, by any process.
    pub(super) outgoing: Vec<Connection>,
    /// Number of connections on its port that the peer has closed and this side has not.
    pub(super) close_wait: usize,
    /// Inodes of all of them.
    pub(super) inodes: HashSet<u64>,
}

impl Sockets {
    pub(super) fn read(line: &DiagSocket, port: u16, buffer: &mut Vec<u8>) -> io::Result<Self> {
        let mut all = Vec::new();
        line.each_connection(&[ESTABLISHED, CLOSE_WAIT, LISTEN], buffer, |connection| all.push(connection))?;
        let mut seen = Self::sort(&all, port);
        if seen.listeners.is_empty() {
            // A list is not read at one instant; a server must not be reported as gone by mistake,
            // so listeners are read twice.
            line.each_connection(&[LISTEN], buffer, |connection| all.push(connection))?;
            seen = Self::sort(&all, port);
        }
        Ok(seen)
    }

    fn sort(all: &[Connection], port: u16) -> Self {
        let ports: BTreeSet<u16> = all.iter().filter(|c| c.socket.state == LISTEN).map(|c| c.socket.port).collect();
        let mut sockets = Self::default();
        // A socket that moves in the list while it is read appears twice.
        let mut seen = HashSet::new();
        for connection in all {
            let Connection { socket, peer, peer_port, .. } = connection;
            if !seen.insert((socket.state, socket.inode, socket.address, socket.port, *peer, *peer_port)) {
                continue;
            }
            sockets.inodes.insert(socket.inode);
            match socket.state {
                LISTEN if socket.port == port => sockets.listeners.push(*connection),
                CLOSE_WAIT if socket.port == port => sockets.close_wait += 1,
                ESTABLISHED if socket.port == port => sockets.incoming.push(*connection),
                ESTABLISHED if !ports.contains(&socket.port) => sockets.outgoing.push(*connection),
                _ => {}
            }
        }
        sockets
    }

    /// Inodes of listening sockets.
    pub(super) fn listening(&self) -> BTreeSet<u64> {
        self.listeners.iter().map(|c| c.socket.inode).collect()
    }

    /// Inodes of accepted connections on the port.
    pub(super) fn accepted(&self) -> HashSet<u64> {
        self.incoming.iter().map(|c| c.socket.inode).filter(|inode| *inode != 0).collect()
    }
}

/// Counts of connections, and of those on which something is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) connections: u32,
    /// An answer is awaited, from this side or from the peer.
    pub(super) open: u32,
    pub(super) undecided: u32,
}

impl Turns {
    /// Adds a connection; whether something is awaited on it.
    fn add(&mut self, connection: &Connection, side: Side, leads: &mut HashMap<u64, Lead>) -> bool {
        let lead = leads.entry(connection.socket.inode).or_default();
        let open = if side == Side::Asks { LastData::Sent } else { LastData::Received };
        self.connections += 1;
        let last = connection.info.map_or(LastData::Undecided, |info| turn::last(&info, side, lead));
        self.open += u32::from(last == open);
        self.undecided += u32::from(last == LastData::Undecided);
        last == open
    }
}

/// The connections on the server's port that its processes hold.
pub(super) fn accepted(
    incoming: &[Connection],
    is_held: impl Fn(u64) -> bool,
    leads: &mut HashMap<u64, Lead>,
    rounds: &mut Rounds,
) -> Turns {
    let mut turns = Turns::default();
    for connection in incoming.iter().filter(|c| is_held(c.socket.inode)) {
        let is_open = turns.add(connection, Side::Answers, leads);
        rounds.add(connection, is_open);
    }
    turns
}

/// Outgoing connections of the server's processes, by peer.
pub(super) fn outgoing(
    outgoing: &[Connection],
    is_held: impl Fn(u64) -> bool,
    leads: &mut HashMap<u64, Lead>,
    by_peer: &mut BTreeMap<(u16, IpAddr), Turns>,
) {
    for connection in outgoing.iter().filter(|c| is_held(c.socket.inode)) {
        by_peer.entry((connection.peer_port, connection.peer)).or_default().add(connection, Side::Asks, leads);
    }
}
