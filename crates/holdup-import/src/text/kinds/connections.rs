//! Open TCP connections as `ss` lists them, summed by the server's port and by which side is local:
//! the metrics that the collector of the host writes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use super::{Context, HOST, number};

/// Most ports for each side: those with the most connections.
const PORTS_MAX: usize = 20;

/// The first port that Linux gives to clients by default.
const FIRST_OF_CLIENTS: u16 = 32_768;

/// One established connection.
pub(super) struct Connection {
    local: u16,
    peer: u16,
    unread_bytes: f64,
    unacked: f64,
    retransmits: f64,
    round_trip_ms: Option<f64>,
    window_segments: Option<f64>,
    is_known: bool,
}

impl Connection {
    pub(super) fn new(local: u16, peer: u16, unread_bytes: f64) -> Self {
        Self {
            local,
            peer,
            unread_bytes,
            unacked: 0.0,
            retransmits: 0.0,
            round_trip_ms: None,
            window_segments: None,
            is_known: false,
        }
    }

    /// Takes the facts of `-i`: `rtt:0.34/0.1` in milliseconds, `retrans:0/3` now and in total.
    pub(super) fn learn<'t>(&mut self, words: impl Iterator<Item = &'t str>) {
        for (name, value) in words.filter_map(|word| word.split_once(':')) {
            match name {
                "rtt" => self.round_trip_ms = value.split('/').next().and_then(number).filter(|ms| *ms > 0.0),
                "cwnd" => self.window_segments = number(value),
                "unacked" => self.unacked = number(value).unwrap_or(0.0),
                "retrans" => self.retransmits = value.rsplit('/').next().and_then(number).unwrap_or(0.0),
                _ => continue,
            }
            self.is_known = true;
        }
    }
}

/// Smallest, mean and largest of some values.
fn spread(values: &[f64]) -> Option<[(&'static str, f64); 3]> {
    let most = values.iter().copied().reduce(f64::max)?;
    let least = values.iter().copied().reduce(f64::min)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some([("min", least), ("mean", mean), ("max", most)])
}

/// The server's port of a connection, and the local side. Without a list of listening sockets port
/// numbers decide.
fn side(connection: &Connection, listening: &BTreeSet<u16>, is_guess: &mut bool) -> (u16, &'static str) {
    let Connection { local, peer, .. } = *connection;
    if listening.contains(&local) {
        return (local, "server");
    }
    if !listening.is_empty() {
        return (peer, "client");
    }
    *is_guess = true;
    let is_server = match (local >= FIRST_OF_CLIENTS, peer >= FIRST_OF_CLIENTS) {
        (false, true) => true,
        (true, false) => false,
        _ => local < peer,
    };
    if is_server { (local, "server") } else { (peer, "client") }
}

/// Adds the sums over `open`, and the connections of each port that only the client has closed.
pub(super) fn put(
    open: &[Connection],
    closing: &BTreeMap<u16, f64>,
    listening: &BTreeSet<u16>,
    at: i64,
    context: &mut Context,
) {
    let mut is_guess = false;
    let mut sides: BTreeMap<(u16, &str), Vec<&Connection>> = BTreeMap::new();
    for connection in open {
        sides.entry(side(connection, listening, &mut is_guess)).or_default().push(connection);
    }
    if is_guess {
        context
            .out
            .note("ss: no list of listening ports, so port numbers decided which side is the server: add ss -ltn");
    }
    let mut most: Vec<((u16, &str), Vec<&Connection>)> = sides.into_iter().collect();
    most.sort_by_key(|((port, side), of)| (Reverse(of.len()), *port, *side));
    most.truncate(PORTS_MAX);
    for ((port, side), of) in &most {
        put_side(*port, side, of, at, context);
    }
    let server = |port: u16| most.iter().find(|((of, side), _)| *of == port && *side == "server");
    for port in listening.iter().copied().chain(closing.keys().copied()).collect::<BTreeSet<u16>>() {
        let of: &[&Connection] = server(port).map_or(&[], |(_, of)| of);
        let unread = of.iter().map(|it| it.unread_bytes);
        // A list of one state alone says nothing of the others.
        if open.is_empty() && closing.is_empty() {
            continue;
        }
        for (metric, value) in [
            (metrics::tcp::SERVER_CONNECTIONS, of.len() as f64),
            (metrics::tcp::SERVER_UNREAD_CONNECTIONS, unread.clone().filter(|bytes| *bytes > 0.0).count() as f64),
            (metrics::tcp::SERVER_UNREAD_BYTES, unread.sum()),
            (metrics::tcp::SERVER_CLOSE_WAIT_CONNECTIONS, closing.get(&port).copied().unwrap_or(0.0)),
        ] {
            let is_listed = metric.name == metrics::tcp::SERVER_CLOSE_WAIT_CONNECTIONS.name || !open.is_empty();
            if is_listed {
                let labels = Labels::new([("port", port.to_string())]);
                context.out.gauge(at, HOST, metric.name, labels, value);
            }
        }
    }
}

fn put_side(port: u16, side: &str, of: &[&Connection], at: i64, context: &mut Context) {
    let labels = Labels::new([("port", port.to_string()), ("side", side.to_owned())]);
    let sum = |value: fn(&Connection) -> f64| of.iter().map(|it| value(it)).sum::<f64>();
    let mut put = |metric: Metric, labels: Labels, value: f64| context.out.gauge(at, HOST, metric.name, labels, value);
    put(metrics::tcp::CONNECTIONS, labels.clone(), of.len() as f64);
    put(metrics::tcp::CONNECTIONS_UNREAD, labels.clone(), sum(|it| f64::from(u8::from(it.unread_bytes > 0.0))));
    put(metrics::tcp::UNREAD_BYTES, labels.clone(), sum(|it| it.unread_bytes));
    if of.iter().any(|it| it.is_known) {
        put(metrics::tcp::UNACKED_SEGMENTS, labels.clone(), sum(|it| it.unacked));
        put(metrics::tcp::CONNECTIONS_RETRANSMITS, labels.clone(), sum(|it| it.retransmits));
    }
    let round_trips: Vec<f64> = of.iter().filter_map(|it| it.round_trip_ms).collect();
    for (stat, ms) in spread(&round_trips).into_iter().flatten() {
        put(metrics::tcp::ROUND_TRIP, labels.clone().with("stat", stat), ms / 1e3);
    }
    let windows: Vec<f64> = of.iter().filter_map(|it| it.window_segments).collect();
    for (stat, segments) in spread(&windows).into_iter().flatten() {
        put(metrics::tcp::CONGESTION_WINDOW_SEGMENTS, labels.clone().with("stat", stat), segments);
    }
}
