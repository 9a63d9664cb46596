//! TCP's own figures of the open connections, summed by the server's port and by which side is
//! local: round trips, segments in flight and sent again, unread bytes. One row per connection
//! would be too many.
//!
//! For a connection within this host both sides are local, and each is counted. Unread bytes on the
//! server's side are a request that the server has not read; on the client's side they are a
//! response.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use crate::proc::sock_diag::Connection;
use crate::proc::socket::ESTABLISHED;
use crate::reading::Out;

/// Largest number of ports for each side: those with the most connections.
const PORTS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

#[derive(Default)]
struct Sum {
    connections: u64,
    unread_connections: u64,
    unread_bytes: u64,
    unacked: u64,
    retransmits: u64,
    /// Connections that have had a round trip, and the sum, minimum and maximum of their round
    /// trips, microseconds.
    timed: u64,
    round_trips_us: u64,
    least_us: u32,
    most_us: u32,
}

/// Writes the sums over `connections`; `listening` holds the ports of local servers.
pub(super) fn put(connections: &[Connection], listening: &BTreeSet<u16>, out: &mut Out) {
    for ((port, side), sum) in sums(connections, listening) {
        let labels = || vec![("port", port.to_string()), ("side", side.name().to_owned())];
        let mut put = |metric: Metric, value: f64| out.put(metric, Labels::new(labels()), value);
        put(metrics::tcp::CONNECTIONS, sum.connections as f64);
        put(metrics::tcp::CONNECTIONS_UNREAD, sum.unread_connections as f64);
        put(metrics::tcp::UNREAD_BYTES, sum.unread_bytes as f64);
        put(metrics::tcp::UNACKED_SEGMENTS, sum.unacked as f64);
        put(metrics::tcp::CONNECTIONS_RETRANSMITS, sum.retransmits as f64);
        if sum.timed == 0 {
            continue;
        }
        let mean = sum.round_trips_us as f64 / sum.timed as f64;
        for (stat, us) in [("min", f64::from(sum.least_us)), ("mean", mean), ("max", f64::from(sum.most_us))] {
            let labels = labels().into_iter().chain([("stat", stat.to_owned())]);
            out.put(metrics::tcp::ROUND_TRIP, Labels::new(labels.collect::<Vec<_>>()), us / 1e6);
        }
    }
}

fn sums(connections: &[Connection], listening: &BTreeSet<u16>) -> Vec<((u16, Side), Sum)> {
    let mut sums = BTreeMap::<(u16, Side), Sum>::new();
    // A socket that moves in the list while it is read appears twice.
    let mut seen = BTreeSet::new();
    for Connection { socket, peer_port, info, .. } in connections {
        if socket.state != ESTABLISHED || !seen.insert((socket.address, socket.port, *peer_port, socket.inode)) {
            continue;
        }
        let of =
            if listening.contains(&socket.port) { (socket.port, Side::Server) } else { (*peer_port, Side::Client) };
        let sum = sums.entry(of).or_default();
        sum.connections += 1;
        sum.unread_connections += u64::from(socket.receive_queue > 0);
        sum.unread_bytes += u64::from(socket.receive_queue);
        let Some(info) = info else { continue };
        sum.unacked += u64::from(info.unacked);
        sum.retransmits += u64::from(info.retransmits);
        if info.round_trip_us > 0 {
            let us = info.round_trip_us;
            sum.least_us = if sum.timed == 0 { us } else { sum.least_us.min(us) };
            sum.most_us = sum.most_us.max(us);
            sum.round_trips_us += u64::from(us);
            sum.timed += 1;
        }
    }
    let mut most: Vec<_> = sums.into_iter().collect();
    most.sort_by_key(|((port, side), sum)| (Reverse(sum.connections), *port, *side));
    most.truncate(PORTS_MAX);
    most
}

#[cfg(test)]
mod tests {
    use holdup_recording::Batch;

    use super::*;
    use crate::proc::sock_diag::Info;
    use crate::proc::socket::{CLOSE_WAIT, Socket};

    fn connection(port: u16, peer_port: u16, receive_queue: u32, round_trip_us: u32) -> Connection {
        let inode = u64::from(port) << 16 | u64::from(peer_port);
        let address = "127.0.0.1".parse().unwrap();
        Connection {
            socket: Socket { address, port, state: ESTABLISHED, receive_queue, inode },
            peer: address,
            peer_port,
            send_queue: 0,
            info: Some(Info { unacked: 2, round_trip_us, retransmits: 3, ..Info::default() }),
        }
    }

    fn values(connections: &[Connection]) -> BTreeMap<String, f64> {
        let mut batch = Batch::default();
        put(connections, &BTreeSet::from([3306]), &mut Out::new(&mut batch, "host"));
        batch.samples.into_iter().map(|s| (format!("{} {}", s.metric, s.labels), s.value)).collect()
    }

    #[test]
    fn both_sides_are_summed_up() {
        let mut closing = connection(3306, 5, 9, 9);
        closing.socket.state = CLOSE_WAIT;
        let twice = connection(3306, 1, 43, 100);
        let all =
            [twice, twice, connection(3306, 2, 0, 300), connection(3306, 3, 7, 0), connection(1, 3306, 0, 50), closing];
        let values = values(&all);
        let of = |metric: &str, labels: &[(&str, &str)]| values[&format!("{metric} {}", Labels::new(labels.to_vec()))];
        let server = [("port", "3306"), ("side", "server")];
        for (metric, expected) in [
            ("tcp_connections", 3.0),
            ("tcp_connections_unread", 2.0),
            ("tcp_unread_bytes", 50.0),
            ("tcp_unacked_segments", 6.0),
            ("tcp_connections_retransmits", 9.0),
        ] {
            assert_eq!(of(metric, &server), expected, "{metric}");
        }
        for (stat, expected) in [("min", 100e-6), ("mean", 200e-6), ("max", 300e-6)] {
            let labels = [server[0], server[1], ("stat", stat)];
            assert!((of("tcp_round_trip_seconds", &labels) - expected).abs() < 1e-12, "{stat}");
        }
        assert_eq!(of("tcp_connections", &[("port", "3306"), ("side", "client")]), 1.0);
        assert_eq!(values.len(), 2 * 8);
    }

    #[test]
    fn the_ports_with_the_most_are_kept() {
        let all: Vec<Connection> =
            (1..60).flat_map(|port| (0..port).map(move |c| connection(10_000 + c, port, 0, 0))).collect();
        let kept = sums(&all, &BTreeSet::new());
        assert_eq!(kept.len(), PORTS_MAX);
        assert!(
            kept.iter()
                .all(|((port, side), sum)| *port >= 40 && *side == Side::Client && sum.connections == u64::from(*port))
        );
    }
}
