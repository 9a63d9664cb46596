//! Requests and connections that wait in the kernel for a server, per listening port, from the
//! socket lists.
//!
//! `tcp_accept_queue_length` counts connections that are established and not yet accepted.
//! `tcp_server_unread_connections` counts those with bytes that the server has not read: a request
//! that still waits there shows up in no metric of the server itself. A connection in the accept
//! queue whose request has arrived counts in both. The limit of an accept queue
//! (`tcp_accept_queue_limit`) is only in `sock_diag`, not in the files.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::{Coverage, Labels, metrics};

use super::{Reader, connections};
use crate::ReadError;
use crate::coverage::{Line as _, part};
use crate::proc::sock_diag::{self, Connection};
use crate::proc::socket::{CLOSE_WAIT, ESTABLISHED, LISTEN};
use crate::proc::sockets;
use crate::reading::Out;

#[derive(Default)]
struct Port {
    accept_queue: f64,
    /// None if the kernel does not report it.
    accept_queue_limit: Option<f64>,
    connections: f64,
    unread_connections: f64,
    unread_bytes: f64,
    close_wait: f64,
}

/// States of sockets that listen or are connected.
const STATES: [u8; 3] = [ESTABLISHED, CLOSE_WAIT, LISTEN];

/// Which facts about connections this kernel withholds, if any.
pub(super) fn lacking(reader: &mut Reader) -> Option<Coverage> {
    if !reader.proc.is_live() || sock_diag::each_connection(&[LISTEN], &mut reader.buffer, |_| ()).is_ok() {
        return None;
    }
    let why = "the kernel does not answer sock_diag queries: round trips, retransmitted segments and the \
               client's side of connections are not seen";
    let enable = "modprobe tcp_diag inet_diag, and let the sandbox pass netlink sockets";
    Some(part(super::SOURCE, "connections").absent(why).enable(enable))
}

pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let mut all = Vec::new();
    let has_more = reader.proc.is_live()
        && sock_diag::each_connection(&STATES, &mut reader.buffer, |connection| all.push(connection)).is_ok();
    if !has_more {
        all.clear();
        sockets::each(&reader.proc, &mut reader.buffer, |socket| {
            let peer = socket.address;
            all.push(Connection { socket, peer, peer_port: 0, send_queue: 0, info: None });
        })?;
    }
    let mut listening = BTreeMap::<u16, Port>::new();
    // A connection may precede its listening socket in the list: count first, choose after.
    let mut counted = BTreeMap::<u16, Port>::new();
    // A socket that moves in the list while it is read appears twice.
    let mut seen = BTreeSet::new();
    for Connection { socket, send_queue, .. } in &all {
        if socket.state == LISTEN {
            if seen.insert(socket.inode) {
                let port = listening.entry(socket.port).or_default();
                port.accept_queue += f64::from(socket.receive_queue);
                if has_more {
                    *port.accept_queue_limit.get_or_insert_default() += f64::from(*send_queue);
                }
            }
        } else if socket.state == ESTABLISHED || socket.state == CLOSE_WAIT {
            let port = counted.entry(socket.port).or_default();
            if socket.state == CLOSE_WAIT {
                port.close_wait += 1.0;
                continue;
            }
            port.connections += 1.0;
            if socket.receive_queue > 0 {
                port.unread_connections += 1.0;
                port.unread_bytes += f64::from(socket.receive_queue);
            }
        }
    }
    if has_more {
        connections::put(&all, &listening.keys().copied().collect(), out);
    }
    for (port, own) in listening {
        let of = counted.remove(&port).unwrap_or_default();
        let labels = Labels::new([("port", port.to_string())]);
        out.put(metrics::tcp::ACCEPT_QUEUE_LENGTH, labels.clone(), own.accept_queue);
        if let Some(limit) = own.accept_queue_limit {
            out.put(metrics::tcp::ACCEPT_QUEUE_LIMIT, labels.clone(), limit);
        }
        out.put(metrics::tcp::SERVER_CONNECTIONS, labels.clone(), of.connections);
        out.put(metrics::tcp::SERVER_UNREAD_CONNECTIONS, labels.clone(), of.unread_connections);
        out.put(metrics::tcp::SERVER_UNREAD_BYTES, labels.clone(), of.unread_bytes);
        out.put(metrics::tcp::SERVER_CLOSE_WAIT_CONNECTIONS, labels, of.close_wait);
    }
    Ok(())
}
