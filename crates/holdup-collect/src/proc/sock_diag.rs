//! TCP sockets from `sock_diag(7)`: the data of `/proc/net/tcp`, filtered by the kernel and in
//! binary. A list of 2,500 sockets takes 2 ms of CPU instead of 10, most of which went into
//! printing numbers. It needs no privilege; where a sandbox forbids it, the files remain.

use std::io::Result;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::proc::netlink::{Netlink, Take, array, attributes};
use crate::proc::socket::Socket;

/// `TCPDIAG_GETSOCK` (linux/inet_diag.h): the original request, and the only one that covers both
/// IP versions at once.
const GET_SOCKETS: u16 = 18;

/// Bytes of the request, and of one socket in the answer (linux/inet_diag.h).
const REQUEST_BYTES: usize = 60;
const SOCKET_BYTES: usize = 72;

/// Offset of the wanted states in the request, and of the wanted extensions.
const STATES_AT: usize = 52;
const EXTENSIONS_AT: usize = 3;

/// `INET_DIAG_INFO` (linux/inet_diag.h): the kernel's `struct tcp_info` of a socket.
const INFO: u16 = 2;

/// Offsets in `struct tcp_info` (linux/tcp.h); newer kernels only append fields.
const UNACKED_AT: usize = 24;
const SENT_AGE_AT: usize = 44;
const RECEIVED_AGE_AT: usize = 52;
const ACK_AGE_AT: usize = 56;
const ROUND_TRIP_AT: usize = 68;
const RETRANSMITS_AT: usize = 100;
const SEGMENTS_IN_AT: usize = 140;
const DATA_SEGMENTS_IN_AT: usize = 152;
const DATA_SEGMENTS_OUT_AT: usize = 156;

/// Calls `each` with every socket of these states.
///
/// # Errors
/// If the kernel does not answer. Then `each` was not called, unless the answer broke off midway.
pub(crate) fn each(states: &[u8], buffer: &mut Vec<u8>, mut each: impl FnMut(Socket)) -> Result<()> {
    DiagSocket::open()?.ask(states, false, buffer, &mut |_, message| socket(message).map(&mut each))
}

/// A socket with TCP's facts about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    /// Address of the peer.
    pub(crate) peer: IpAddr,
    /// Port of the peer.
    pub(crate) peer_port: u16,
    /// Bytes not yet acknowledged by the peer; for a listening socket the limit of its accept
    /// queue.
    pub(crate) send_queue: u32,
    /// None for a socket without a connection, or if the kernel reports nothing.
    pub(crate) info: Option<Info>,
}

/// TCP's facts about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    /// Segments sent and not yet acknowledged.
    pub(crate) unacked: u32,
    /// Smoothed round-trip time, microseconds; 0 before the first one.
    pub(crate) round_trip_us: u32,
    /// Segments retransmitted over the life of the connection.
    pub(crate) retransmits: u32,
    /// Time since data was last sent, since data was last received, and since the last
    /// acknowledgement, alone or with data; at most the connection's age. Milliseconds, with the
    /// resolution of the kernel's tick.
    pub(crate) sent_age_ms: u32,
    pub(crate) received_age_ms: u32,
    pub(crate) ack_age_ms: u32,
    /// None before Linux 4.6.
    pub(crate) segments: Option<Segments>,
}

/// Numbers of segments over the life of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Received, with or without data.
    pub(crate) received: u32,
    /// Received with data.
    pub(crate) data_received: u32,
    /// Sent with data.
    pub(crate) data_sent: u32,
}

/// Calls `each` with every socket of these states and TCP's facts about it, which takes about twice
/// as long.
///
/// # Errors
/// Those of [`each`].
pub(crate) fn each_connection(states: &[u8], buffer: &mut Vec<u8>, each: impl FnMut(Connection)) -> Result<()> {
    DiagSocket::open()?.each_connection(states, buffer, each)
}

/// A netlink socket for queries. It answers for the network namespace in which it was opened,
/// wherever the querying thread is by then.
pub(crate) struct DiagSocket(Netlink);

impl DiagSocket {
    /// Opens one in the calling thread's network namespace.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn open() -> Result<Self> {
        Netlink::open(libc::NETLINK_SOCK_DIAG).map(Self)
    }

    /// [`each_connection`] for this network namespace.
    ///
    /// # Errors
    /// Those of [`each`].
    pub(crate) fn each_connection(
        &self,
        states: &[u8],
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(Connection),
    ) -> Result<()> {
        self.ask(states, true, buffer, &mut |_, message| connection(message).map(&mut each))
    }

    fn ask(&self, states: &[u8], with_info: bool, buffer: &mut Vec<u8>, take: Take<'_>) -> Result<()> {
        let mut request = [0; REQUEST_BYTES];
        if with_info {
            request[EXTENSIONS_AT] = 1 << (INFO - 1);
        }
        let wanted = states.iter().fold(0_u32, |set, state| set | 1 << state);
        request[STATES_AT..][..4].copy_from_slice(&wanted.to_ne_bytes());
        self.0.dump(GET_SOCKETS, &request, buffer, take)
    }
}

/// `struct inet_diag_msg`: family, state, two others; ports, two addresses, interface, cookie; expiry, two queues, user, inode.
fn socket(message: &[u8]) -> Option<Socket> {
    if message.len() < SOCKET_BYTES {
        return None;
    }
    Some(Socket {
        address: address(message, 8)?,
        port: u16::from_be_bytes(array(message, 4)?),
        state: message[1],
        receive_queue: u32::from_ne_bytes(array(message, 56)?),
        inode: u64::from(u32::from_ne_bytes(array(message, 68)?)),
    })
}

/// The address at `at`: local at 8, the peer's at 24.
fn address(message: &[u8], at: usize) -> Option<IpAddr> {
    if i32::from(message[0]) == libc::AF_INET6 {
        return Some(IpAddr::V6(Ipv6Addr::from(array::<16>(message, at)?)).to_canonical());
    }
    Some(IpAddr::V4(Ipv4Addr::from(array::<4>(message, at)?)))
}

fn connection(message: &[u8]) -> Option<Connection> {
    Some(Connection {
        socket: socket(message)?,
        peer: address(message, 24)?,
        peer_port: u16::from_be_bytes(array(message, 6)?),
        send_queue: u32::from_ne_bytes(array(message, 60)?),
        info: info(message.get(SOCKET_BYTES..)?),
    })
}

/// The `INFO` attribute among those of a socket, with the fields that this kernel has.
fn info(bytes: &[u8]) -> Option<Info> {
    let (_, payload) = attributes(bytes).find(|(name, _)| *name == INFO)?;
    let field = |at| array(payload, at).map(u32::from_ne_bytes);
    Some(Info {
        unacked: field(UNACKED_AT)?,
        round_trip_us: field(ROUND_TRIP_AT)?,
        retransmits: field(RETRANSMITS_AT)?,
        sent_age_ms: field(SENT_AGE_AT)?,
        received_age_ms: field(RECEIVED_AGE_AT)?,
        ack_age_ms: field(ACK_AGE_AT)?,
        segments: field(DATA_SEGMENTS_OUT_AT).and_then(|data_sent| {
            let data_received = field(DATA_SEGMENTS_IN_AT)?;
            Some(Segments { received: field(SEGMENTS_IN_AT)?, data_received, data_sent })
        }),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::proc::Proc;
    use crate::proc::netlink::{HEADER_BYTES, part};
    use crate::proc::socket::{ESTABLISHED, LISTEN};
    use crate::proc::sockets;

    type Each<'a> = &'a mut dyn FnMut(Socket);

    /// One listener with a connection in its queue and one taken out of it, with bytes unread: as both lists tell.
    #[test]
    fn the_same_as_in_the_file() {
        for host in ["127.0.0.1", "[::1]"] {
            let Ok(listener) = TcpListener::bind(format!("{host}:0")) else { continue };
            let address = listener.local_addr().unwrap();
            let mut first = TcpStream::connect(address).unwrap();
            let (mut accepted, _) = listener.accept().unwrap();
            let _second = TcpStream::connect(address).unwrap();
            first.write_all(b"12345678").unwrap();
            accepted.read_exact(&mut [0]).unwrap();
            // The file also lists what another test left behind on the same port, in TIME_WAIT.
            let ours = |socket: &Socket| {
                (socket.address, socket.port) == (address.ip(), address.port())
                    && [LISTEN, ESTABLISHED].contains(&socket.state)
            };
            let find = |all: &mut dyn FnMut(Each)| {
                let mut found = BTreeMap::new();
                all(&mut |socket| {
                    if ours(&socket) {
                        found.insert((socket.state, socket.inode), socket);
                    }
                });
                found
            };
            let proc = Proc::system();
            let by_file = find(&mut |each| sockets::each_listed(&proc, &mut Vec::new(), each).unwrap());
            let by_diag = find(&mut |each| super::each(&[LISTEN, ESTABLISHED], &mut Vec::new(), each).unwrap());
            assert_eq!(by_diag, by_file);
            let queue = |state| -> u32 { by_diag.values().filter(|s| s.state == state).map(|s| s.receive_queue).sum() };
            assert_eq!((by_diag.len(), queue(LISTEN), queue(ESTABLISHED)), (3, 1, 7), "{by_diag:?}");
        }
    }

    #[test]
    fn every_cut_is_an_error_and_an_error_of_the_kernel_is_its_own() {
        let mut message = vec![0; HEADER_BYTES + SOCKET_BYTES];
        message[..4].copy_from_slice(&((HEADER_BYTES + SOCKET_BYTES) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&20_u16.to_ne_bytes());
        message[HEADER_BYTES] = libc::AF_INET as u8;
        let mut found = 0;
        let mut take = |_, message: &[u8]| socket(message).map(|_| found += 1);
        assert!(!part(&message, &mut take).unwrap());
        for end in 1..message.len() {
            assert!(part(&message[..end], &mut take).is_err(), "{end}");
        }
        assert_eq!(found, 1);
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[HEADER_BYTES..][..4].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(part(&message, &mut |_, _| Some(())).unwrap_err().raw_os_error(), Some(libc::EPERM));
        // A length of none would go on for ever.
        message[..4].fill(0);
        assert!(part(&message, &mut |_, _| Some(())).is_err());
    }

    /// Both ends of one connection, with what TCP knows of them.
    #[test]
    fn the_kernel_reports_figures_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let own = client.local_addr().unwrap().port();
        let (_server, _) = listener.accept().unwrap();
        client.write_all(b"12345").unwrap();
        let mut ends = BTreeMap::new();
        each_connection(&[ESTABLISHED], &mut Vec::new(), |c| {
            if [(port, own), (own, port)].contains(&(c.socket.port, c.peer_port)) {
                ends.insert(c.socket.port, c);
            }
        })
        .unwrap();
        assert_eq!((ends.len(), ends[&port].socket.receive_queue, ends[&own].socket.receive_queue), (2, 5, 0));
        let info = ends[&own].info.expect("the kernel says it");
        assert!((1..5_000_000).contains(&info.round_trip_us) && info.retransmits < 100, "{info:?}");
        let (sent, received) = (info.segments.unwrap(), ends[&port].info.unwrap().segments.unwrap());
        assert_eq!((sent.data_sent, sent.data_received), (1, 0));
        assert_eq!((received.data_sent, received.data_received), (0, 1));
        assert!(info.sent_age_ms <= info.received_age_ms, "{info:?}");
        assert_eq!(ends[&own].peer, listener.local_addr().unwrap().ip());
    }

    #[test]
    fn an_attribute_that_is_cut_is_none() {
        let mut attributes = vec![8, 0, 15, 0, 1, 2, 3, 4];
        attributes.extend([108, 0, 2, 0]);
        attributes.extend((0..104_u8).map(|i| if i == 100 { 7 } else { 0 }));
        if cfg!(target_endian = "little") {
            assert_eq!(info(&attributes).map(|i| i.retransmits), Some(7));
        }
        for end in 0..attributes.len() {
            assert_eq!(info(&attributes[..end]), None, "{end}");
        }
        assert_eq!(info(&[0; 64]), None, "a length of none would go on for ever");
    }
}
