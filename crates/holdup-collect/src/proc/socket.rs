//! A TCP socket, and its states.

use std::net::IpAddr;

/// State `TCP_ESTABLISHED` (include/net/tcp_states.h).
pub const ESTABLISHED: u8 = 0x01;
/// State `TCP_CLOSE_WAIT`: the peer has closed, this side has not.
pub const CLOSE_WAIT: u8 = 0x08;
/// State `TCP_LISTEN`.
pub const LISTEN: u8 = 0x0A;

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local address.
    pub address: IpAddr,
    /// Local port.
    pub port: u16,
    /// State: one of these constants, or another.
    pub state: u8,
    /// Bytes received that the process has not read; for a listening socket the connections that it
    /// has not accepted.
    pub receive_queue: u32,
    /// Inode, for finding the process that holds it; 0 for a connection that is not accepted yet.
    pub inode: u64,
}
