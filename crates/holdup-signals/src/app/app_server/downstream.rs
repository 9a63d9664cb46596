//! The services that a server waits for, seen from outside: connections that its processes opened,
//! by the port at the other end, and how many of them await an answer. By Little's law that is how
//! long a request waits for each downstream service, and the app need not report anything.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};

use super::mean;
use crate::Evidence;
use crate::View;
use crate::database::ports::database_ports;

/// Connections on which an answer is awaited.
const PENDING: &str = metrics::server::OUTGOING_PENDING_CONNECTIONS.name;
/// All connections.
const CONNECTIONS: &str = metrics::server::OUTGOING_CONNECTIONS.name;

/// Ports of databases by their registered numbers: MySQL (and ProxySQL), PostgreSQL (and PgBouncer), Redis, MongoDB, SQL Server, Oracle, Cassandra.
/// IANA Service Name and Transport Protocol Port Number Registry.
const DATABASES: &[&str] = &["3306", "6033", "5432", "6432", "6379", "27017", "1433", "1521", "9042"];

/// A downstream service: something that the server calls.
#[derive(Clone, Debug)]
pub struct DownstreamService {
    /// Its port.
    pub port: String,
    /// Its address, with the port.
    pub name: String,
    /// Whether it is a database.
    pub is_database: bool,
    /// Connections on which an answer is awaited, on average.
    pub pending: f64,
    /// Connections to it at most; none if they were not counted.
    pub connections_max: Option<f64>,
    evidence: Evidence,
}

impl DownstreamService {
    /// Evidence that points at what is awaited.
    pub fn evidence(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let mut evidence = self.evidence.clone().saying(expected, text);
        evidence.observed = observed.into();
        evidence
    }
}

impl View<'_> {
    /// The services that the processes of the server at `source` wait for, longest wait first; none
    /// if this was not recorded.
    pub fn downstream_services(&self, source: &str) -> Option<Vec<DownstreamService>> {
        let databases = database_ports(self);
        let of_source = self.index.series(PENDING, &[]).filter(|((of, _), _)| of == source);
        let peers: BTreeSet<(String, String)> = of_source
            .filter_map(|((_, labels), _)| {
                Some((labels.get("peer_port")?.to_owned(), labels.get("peer").unwrap_or_default().to_owned()))
            })
            .collect();
        if peers.is_empty() && self.sources_of(CONNECTIONS).is_empty() {
            return None;
        }
        // An instant without an open connection has no sample: the server waited for nothing then.
        let instants = self.levels(source, metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[]).len();
        let mut all: Vec<DownstreamService> = peers
            .into_iter()
            .map(|(port, peer)| {
                let labels = [("peer_port", port.as_str()), ("peer", peer.as_str())];
                let labels = if peer.is_empty() { &labels[..1] } else { &labels[..] };
                let levels = self.levels(source, PENDING, labels);
                let seen = levels.len() as f64 / levels.len().max(instants).max(1) as f64;
                let connections = self.levels(source, CONNECTIONS, labels);
                let pointer = Labels::new(labels.iter().copied()).with("metric", PENDING);
                DownstreamService {
                    is_database: databases.contains(&port) || DATABASES.contains(&port.as_str()),
                    pending: mean(&levels) * seen,
                    connections_max: connections.into_values().reduce(f64::max),
                    evidence: Evidence::new("samples", "value", pointer, self.window, "", "", ""),
                    name: named(&peer, &port),
                    port,
                }
            })
            .collect();
        all.sort_by(|a, b| b.pending.total_cmp(&a.pending));
        Some(all)
    }
}

/// `10.0.0.5:9300`, or `port 9300` where the address is not known.
fn named(peer: &str, port: &str) -> String {
    match peer {
        "" => format!("port {port}"),
        _ if peer.ends_with(&format!(":{port}")) => peer.to_owned(),
        _ => format!("{peer}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn neighbours_are_told_by_their_ports() {
        let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
        let made = SyntheticRecording::new(10)
            .gauge("server:8080", PENDING, &peer("9300"), 6.0)
            .gauge("server:8080", PENDING, &peer("5432"), 2.0)
            .gauge("server:8080", PENDING, &peer("7777"), 1.0)
            .gauge("server:9300", PENDING, &peer("9400"), 50.0)
            .setting("mysql://db", "version", "11");
        made.seen(|view| {
            let all = view.downstream_services("server:8080").unwrap();
            let told: Vec<(&str, f64, bool)> =
                all.iter().map(|n| (n.name.as_str(), n.pending, n.is_database)).collect();
            assert_eq!(
                told,
                [("10.0.0.5:9300", 6.0, false), ("10.0.0.5:5432", 2.0, true), ("10.0.0.5:7777", 1.0, false)]
            );
            assert!(all[0].evidence("", "", "").resolves(view.recording));
        });
        assert!(SyntheticRecording::new(10).seen(|view| view.downstream_services("server:8080").is_none()));
    }
}
