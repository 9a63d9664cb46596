//! An app server as the kernel sees it: connections that wait to be accepted, connections that its
//! processes hold, and connections on which an answer is due. The server itself need not report
//! anything.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};

use super::{Levels, around, mean};
use crate::Evidence;
use crate::database::ports::database_ports;
use crate::view::Index;
use crate::{Counter, Gauge, Missing, View, Window};

/// Connections set up and not accepted.
const WAITING: &str = metrics::tcp::ACCEPT_QUEUE_LENGTH.name;
/// The length limit of the accept queue.
const LIMIT: &str = metrics::tcp::ACCEPT_QUEUE_LIMIT.name;
/// Connections on which an answer is due.
const ANSWERING: &str = metrics::server::ANSWERING_CONNECTIONS.name;
/// Connections that the server has accepted.
const ACCEPTED: &str = metrics::server::ACCEPTED_CONNECTIONS.name;

/// The queue counts as full from this share (0-1) of its limit: it moves between two samples.
const FULL: f64 = 0.9;

/// While others wait in front, the accepted requests are as many as the server takes at once, if
/// that was seen at this many instants …
const INSTANTS: usize = 3;
/// … and was within [`NEAR`] of the median at this share (0-1) of them, which a restart or the
/// drain at the end is not.
const STEADY: f64 = 0.6;
const NEAR: f64 = 0.2;

/// Workers are all busy if this share (0-1) of them has a request: one of ten may have just
/// answered.
const ALL_BUSY: f64 = 0.9;

/// A listening server.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The source: `server:PORT`, or `host` where only the host was watched.
    pub source: String,
    /// The port it listens on.
    pub port: String,
    /// Connections waiting to be accepted.
    pub waiting: Gauge,
    /// The queue's limit; none if it was not read.
    pub limit: Option<f64>,
    /// When the queue was at its limit.
    pub at_limit: Vec<Window>,
    /// When a connection waited in it.
    pub standing: Vec<Window>,
    /// Connections on which an answer is due, on average; none if holdup does not know which
    /// processes hold them.
    pub answering: Option<f64>,
    answering_at: Levels,
    /// Requests that it works on at once while others wait in front of it; none where none wait or
    /// the number is not steady.
    pub takes_at_once: Option<f64>,
    /// Connections that the kernel dropped because the queue was full, in the server's network
    /// namespace.
    pub overflows: Option<Counter>,
    window: Window,
}

impl Outside {
    /// Evidence that points at the accept queue.
    pub fn queue_evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        let of = self.limit.map_or_else(String::new, |limit| format!(" of {limit:.0}"));
        let observed = format!("{:.1} on average, {:.0}{of} at most", self.waiting.mean, self.waiting.max);
        self.waiting.evidence(observed, expected, text)
    }

    /// Share (0-1) of instants at which it had accepted about `most` requests or more; none if
    /// holdup does not know which processes hold them.
    pub fn full_ratio(&self, most: f64) -> Option<f64> {
        let full = self.answering_at.values().filter(|n| **n >= ALL_BUSY * most).count();
        (!self.answering_at.is_empty()).then(|| full as f64 / self.answering_at.len() as f64)
    }

    /// Evidence that points at the accepted requests.
    pub fn hand_evidence(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = Labels::new([("metric", ANSWERING)]);
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }

    /// Whether its processes are known, and not only its port.
    pub fn has_processes(&self) -> bool {
        self.source.starts_with("server:")
    }
}

impl View<'_> {
    /// The server that faces the load: the target of the load, else of those that no other calls the one with
    /// the longest accept queue. Candidates are servers watched by their port; without any, the ports that the host
    /// counts.
    ///
    /// # Errors
    /// If no accept queue was recorded.
    pub fn outside(&self) -> Result<Outside, Missing> {
        let target = self.target_port();
        let series = |of: &dyn Fn(&str) -> bool| -> BTreeSet<(String, String)> {
            let all = self.index.series(WAITING, &[]).filter(|((source, _), _)| of(source));
            all.filter_map(|((source, labels), _)| Some((source.clone(), labels.get("port")?.to_owned()))).collect()
        };
        let mut ports = series(&|source| source.starts_with("server:"));
        if ports.is_empty() {
            ports = series(&|source| source == "host");
        }
        let behind = &called(self.index) | &database_ports(self);
        let is_in_front = |port: &str| !behind.contains(port);
        match target.filter(|target| ports.iter().any(|(_, port)| port == target)) {
            Some(target) => ports.retain(|(_, port)| *port == target),
            None if ports.iter().any(|(_, port)| is_in_front(port)) => ports.retain(|(_, port)| is_in_front(port)),
            None => {}
        }
        let all = ports.into_iter().filter_map(|(source, port)| self.outside_of(source, port));
        all.max_by(|a, b| a.waiting.mean.total_cmp(&b.waiting.mean))
            .ok_or_else(|| Missing::new(format!("samples of {WAITING}"), super::ENABLE))
    }

    fn outside_of(&self, source: String, port: String) -> Option<Outside> {
        let at_port = [("port", port.as_str())];
        let waiting = self.gauge_where(|s| s == source, WAITING, &at_port, super::ENABLE).ok()?;
        let lengths = self.levels(&source, WAITING, &at_port);
        let limits = self.levels(&source, LIMIT, &at_port);
        let full = lengths.iter().filter(|(at, length)| limits.get(at).is_some_and(|limit| **length >= FULL * limit));
        let accepted = self.levels(&source, ACCEPTED, &[]);
        let answering = self.levels(&source, ANSWERING, &[]);
        let counts = |s: &str| s == source;
        let overflows = self.counter_where(counts, metrics::tcp::LISTEN_OVERFLOWS.name, &[], super::ENABLE);
        let overflows =
            overflows.or_else(|_| self.counter_where(|s| s == "host", metrics::tcp::LISTEN_OVERFLOWS.name, &[], ""));
        Some(Outside {
            at_limit: around(full.map(|(at, _)| *at).filter(|at| lengths[at] > 0.0)),
            standing: around(lengths.iter().filter(|(_, length)| **length > 0.0).map(|(at, _)| *at)),
            limit: limits.into_values().reduce(f64::max).filter(|limit| *limit > 0.0),
            answering: (!answering.is_empty()).then(|| mean(&answering)),
            takes_at_once: takes_at_once(&lengths, if answering.is_empty() { &accepted } else { &answering }),
            answering_at: answering,
            overflows: overflows.ok(),
            window: self.window,
            waiting,
            source,
            port,
        })
    }

    /// Whether `port` is the target of the load.
    pub fn is_target_port(&self, port: &str) -> bool {
        self.target_port().is_some_and(|target| target == port)
    }

    /// The port that is the target of the load.
    fn target_port(&self) -> Option<String> {
        let target = &self.recording.manifest.load.as_ref()?.target;
        let (scheme, rest) = target.split_once("://").unwrap_or(("http", target));
        let address = rest.split(['/', '?']).next()?;
        let port = address.rsplit_once(':').map(|(_, port)| port).filter(|p| p.parse::<u16>().is_ok());
        Some(port.unwrap_or(if scheme.ends_with('s') { "443" } else { "80" }).to_owned())
    }
}

/// Ports to which a watched server connects: what listens there is behind it.
pub(crate) fn called(index: &Index) -> BTreeSet<String> {
    let peers = index.series(metrics::server::OUTGOING_CONNECTIONS.name, &[]);
    peers.filter_map(|((_, labels), _)| labels.get("peer_port").map(str::to_owned)).collect()
}

/// A server that leaves connections in the accept queue has accepted all that it takes. If it ever
/// had more, something else kept it from accepting.
fn takes_at_once(waiting: &Levels, in_hand: &Levels) -> Option<f64> {
    let held = waiting.iter().filter(|(_, n)| **n > 0.0).filter_map(|(at, _)| in_hand.get(at).copied());
    let mut held: Vec<f64> = held.collect();
    held.sort_by(f64::total_cmp);
    let middle = held.get(held.len() / 2).copied().filter(|middle| *middle > 0.0)?;
    let most = in_hand.values().copied().fold(0.0, f64::max);
    let near = held.iter().filter(|n| (**n - middle).abs() <= NEAR * middle).count();
    let is_steady = held.len() >= INSTANTS && near as f64 >= STEADY * held.len() as f64;
    (is_steady && most - middle <= NEAR.max(1.0 / middle) * middle).then_some(middle)
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    const SERVER: &str = "server:8080";
    const PORT: [(&str, &str); 1] = [("port", "8080")];

    fn made(waiting: f64) -> SyntheticRecording {
        SyntheticRecording::new(10)
            .gauge(SERVER, "tcp_accept_queue_length", &PORT, waiting)
            .gauge(SERVER, "tcp_accept_queue_limit", &PORT, 64.0)
            .gauge(SERVER, "server_accepted_connections", &[("pid", "7"), ("role", "worker")], 6.0)
            .gauge(SERVER, "server_accepted_connections", &[("pid", "8"), ("role", "worker")], 5.0)
            .gauge(SERVER, "server_answering_connections", &[("pid", "7"), ("role", "worker")], 5.0)
            .gauge(SERVER, "server_answering_connections", &[("pid", "8"), ("role", "worker")], 5.0)
            // The same listener, counted by the host as well, and another one that faces nobody.
            .gauge("host", "tcp_accept_queue_length", &PORT, waiting)
            .gauge("host", "tcp_accept_queue_length", &[("port", "5432")], 400.0)
    }

    #[test]
    fn the_number_of_slots_shows_when_requests_queue() {
        let see = |waiting| {
            made(waiting).seen(|view| {
                let outside = view.outside().unwrap();
                (outside.waiting.mean, outside.takes_at_once, outside.at_limit.len(), outside.answering)
            })
        };
        assert_eq!(see(20.0), (20.0, Some(10.0), 0, Some(10.0)));
        assert_eq!(see(60.0), (60.0, Some(10.0), 10, Some(10.0)));
        assert_eq!(see(0.0), (0.0, None, 0, Some(10.0)), "it may take more");
        // Once it had 40 in hand: ten are not all that it takes.
        let more =
            SyntheticRecording::new(10)
                .counted(SERVER, "tcp_accept_queue_length", &PORT, |second| if second == 5 { 0.0 } else { 20.0 })
                .gauge(SERVER, "server_accepted_connections", &[("pid", "7")], 10.0)
                .counted(SERVER, "server_answering_connections", &[("pid", "7")], |second| {
                    if second == 5 { 40.0 } else { 10.0 }
                });
        assert_eq!(more.seen(|view| view.outside().unwrap().takes_at_once), None);
    }

    #[test]
    fn the_server_that_the_load_is_put_on_is_looked_at() {
        let both = made(3.0)
            .requests(10, 20)
            .gauge("server:9300", "tcp_accept_queue_length", &[("port", "9300")], 50.0)
            .gauge("server:9300", "tcp_accept_queue_limit", &[("port", "9300")], 64.0);
        let port = |made: &SyntheticRecording| made.seen(|view| view.outside().map(|o| o.port).ok());
        assert_eq!(port(&both).as_deref(), Some("9300"), "the longest");
        let behind = both.clone().gauge(SERVER, "server_outgoing_connections", &[("peer_port", "9300")], 1.0);
        assert_eq!(port(&behind).as_deref(), Some("8080"), "what it calls is behind it");
        assert_eq!(port(&both.target("http://127.0.0.1:8080/orders")).as_deref(), Some("8080"));
        assert_eq!(port(&SyntheticRecording::new(10)), None);
    }
}
