//! The TCP sockets of the network that the server is in, as they are now, and which of them are its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::IpAddr;

use super::address::Address;
use super::turn::{self, Last, Lead, Side};
use crate::proc::sock_diag::{Connection, Line};
use crate::proc::sockets::{CLOSE_WAIT, ESTABLISHED, LISTEN};
use crate::wire::network::inside;

/// Opens the place where the network's sockets are asked for. Going into our own network takes a right too: it is not gone into.
pub(super) fn open(address: Address) -> io::Result<Line> {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).ok();
    let other = address.pid.filter(|pid| of(&pid.to_string()).is_none_or(|its| Some(its) != of("self")));
    inside(other, Line::open)
}

/// One look at all sockets.
#[derive(Default)]
pub(super) struct Sockets {
    /// The server's own that listen.
    pub(super) listeners: Vec<Connection>,
    /// Connections on its port, those that nobody has accepted yet too.
    pub(super) incoming: Vec<Connection>,
    /// Connections that were made from here, by whomever.
    pub(super) outgoing: Vec<Connection>,
    /// Of connections on its port, those that the other side has closed and this one has not.
    pub(super) close_wait: usize,
    /// Inodes of all of them.
    pub(super) inodes: HashSet<u64>,
}

impl Sockets {
    pub(super) fn read(line: &Line, port: u16, buffer: &mut Vec<u8>) -> io::Result<Self> {
        let mut all = Vec::new();
        line.each_connection(&[ESTABLISHED, CLOSE_WAIT, LISTEN], buffer, |connection| all.push(connection))?;
        let mut seen = Self::sort(&all, port);
        if seen.listeners.is_empty() {
            // A list isn't taken at one instant; that a server is gone is a grave thing to say.
            line.each_connection(&[LISTEN], buffer, |connection| all.push(connection))?;
            seen = Self::sort(&all, port);
        }
        Ok(seen)
    }

    fn sort(all: &[Connection], port: u16) -> Self {
        let ports: BTreeSet<u16> = all.iter().filter(|c| c.socket.state == LISTEN).map(|c| c.socket.port).collect();
        let mut sockets = Self::default();
        // A socket that moves in the list while it is read shows twice.
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

    /// Inodes of what listens.
    pub(super) fn listening(&self) -> BTreeSet<u64> {
        self.listeners.iter().map(|c| c.socket.inode).collect()
    }

    /// Inodes of connections on the port that somebody has accepted.
    pub(super) fn accepted(&self) -> HashSet<u64> {
        self.incoming.iter().map(|c| c.socket.inode).filter(|inode| *inode != 0).collect()
    }
}

/// Connections, and on how many of them something is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) connections: u32,
    /// An answer is awaited: of this side, or of the other.
    pub(super) open: u32,
    pub(super) undecided: u32,
}

impl Turns {
    fn add(&mut self, connection: &Connection, side: Side, leads: &mut HashMap<u64, Lead>) {
        let lead = leads.entry(connection.socket.inode).or_default();
        let open = if side == Side::Asks { Last::Sent } else { Last::Received };
        self.connections += 1;
        match connection.info.map_or(Last::Undecided, |info| turn::last(&info, side, lead)) {
            last if last == open => self.open += 1,
            Last::Undecided => self.undecided += 1,
            _ => {}
        }
    }
}

/// Of connections on the server's port, those that a process holds.
pub(super) fn accepted(
    incoming: &[Connection],
    is_held: impl Fn(u64) -> bool,
    leads: &mut HashMap<u64, Lead>,
) -> Turns {
    let mut turns = Turns::default();
    incoming.iter().filter(|c| is_held(c.socket.inode)).for_each(|c| turns.add(c, Side::Answers, leads));
    turns
}

/// Of connections that were made from here, those that the server's processes hold, by the other side.
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
