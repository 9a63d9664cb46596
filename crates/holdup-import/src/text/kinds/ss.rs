//! `ss`: the accept queue of each listening port (`-l`), and the open connections (`-t`, `-ti`),
//! summed by the server's port and by which side is local, as the collector does. Of several listeners
//! of a port (IPv4 and IPv6, or one for each worker) the fullest queue counts. For a listening socket
//! the column Recv-Q is its queue and Send-Q its limit. `netstat -tan` shows no limit.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::{Labels, metrics};

use super::connections::{self, Connection};
use super::{Context, HOST, Kind, Line, command, number, rows, text};

pub(super) const KIND: Kind = Kind::lines("ss", recognises, |lines, context| match is_header(lines) {
    true => read(lines, context),
    false => read_listed(lines, context),
});

/// States of TCP as `ss` writes them.
const STATES: [&str; 12] = [
    "ESTAB",
    "LISTEN",
    "CLOSE-WAIT",
    "TIME-WAIT",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "LAST-ACK",
    "CLOSING",
    "UNCONN",
    "CLOSED",
];

/// Services that `ss` without `-n` names, and their ports.
const SERVICES: [(&str, u16); 12] = [
    ("ssh", 22),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("https", 443),
    ("mysql", 3306),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("redis", 6379),
    ("http-alt", 8080),
    ("webcache", 8080),
    ("memcache", 11211),
];

/// The beginning of the line above the header of `netstat`.
const TITLE: &str = "Active Internet connections";

fn recognises(lines: &[Line]) -> bool {
    is_header(lines) || listed(text(lines, 0)).is_some()
}

/// The state of a socket in a list whose header was cut, or that Windows printed.
fn listed(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let (kind, rest) = words.split_first()?;
    let is_tcp = matches!(kind.to_ascii_lowercase().as_str(), "tcp" | "tcp4" | "tcp6");
    let place = rest.iter().position(|word| command::socket_state(word).is_some()).filter(|_| is_tcp)?;
    let ends = rest.get(..place)?.iter().filter(|word| word.contains([':', '.'])).count();
    (ends == 2).then(|| rest.get(place).and_then(|word| command::socket_state(word))).flatten()
}

/// Counts the sockets of a list without a header.
fn read_listed(lines: &[Line], context: &mut Context) -> usize {
    let states: Vec<&str> = lines.iter().map_while(|line| listed(&line.text)).collect();
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    states.iter().for_each(|state| *counts.entry(state).or_default() += 1.0);
    let at = context.instant_of("ss");
    for (state, count) in counts {
        context.out.host(at, metrics::tcp::SOCKETS, Labels::new([("state", state)]), count);
    }
    states.len()
}

fn is_header(lines: &[Line]) -> bool {
    let first = text(lines, usize::from(text(lines, 0).starts_with(TITLE)));
    first.contains("Recv-Q") && first.contains("Send-Q") && (first.contains("State") || first.contains("Address"))
}

fn port(address: &str) -> Option<u16> {
    let port = address.rsplit(':').next()?;
    port.parse().ok().or_else(|| SERVICES.iter().find(|(name, _)| *name == port).map(|(_, port)| *port))
}

/// A line of `netstat`: `tcp 0 0 10.0.0.5:3306 10.0.0.9:41234 ESTABLISHED`.
fn of_netstat(line: &str) -> Option<Socket<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, receive, send, local, peer, rest @ ..] = words.as_slice() else { return None };
    let state = match rest.first().copied() {
        Some("ESTABLISHED") => "ESTAB",
        Some("CLOSE_WAIT") => "CLOSE-WAIT",
        Some("LISTEN") => "LISTEN",
        _ => "OTHER",
    };
    let (receive, send) = (number(receive)?, number(send)?);
    Some(Socket { state, receive, send, local, peer, is_tcp: kind.starts_with("tcp"), rest: Vec::new() })
}

/// One socket.
struct Socket<'t> {
    state: &'t str,
    receive: f64,
    send: f64,
    local: &'t str,
    peer: &'t str,
    is_tcp: bool,
    /// What follows on the same line.
    rest: Vec<&'t str>,
}

/// Reads a socket's line; `known` is the state of a list without a column for it.
fn socket<'t>(line: &'t str, known: Option<&'t str>) -> Option<Socket<'t>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (state, place) = match known {
        Some(state) => (state, 0),
        None => {
            let place = words.iter().take(2).position(|word| STATES.contains(word))?;
            (*words.get(place)?, place + 1)
        }
    };
    Some(Socket {
        state,
        receive: number(words.get(place)?)?,
        send: number(words.get(place + 1)?)?,
        local: words.get(place + 2)?,
        peer: words.get(place + 3).copied().unwrap_or_default(),
        is_tcp: known.is_some() || place == 1 || words.first().is_some_and(|kind| *kind == "tcp"),
        rest: words.get(place + 4..).unwrap_or_default().to_vec(),
    })
}

/// The state of all rows of a list without a column for it, by its command.
fn only_state(header: &str, context: &Context) -> Option<&'static str> {
    let is = |state: &str| context.words().any(|word| word.trim_start_matches('-') == state);
    match () {
        () if header.contains("State") => None,
        () if is("listening") || is("listen") => Some("LISTEN"),
        () if is("close-wait") => Some("CLOSE-WAIT"),
        () if is("established") || !is("state") => Some("ESTAB"),
        () => Some("OTHER"),
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("ss");
    // `netstat` writes a title above its header.
    let above = usize::from(text(lines, 0).starts_with(TITLE));
    let head = text(lines, above);
    let is_netstat = head.trim_start().starts_with("Proto");
    let only = only_state(head, context);
    let mut listening: BTreeMap<u16, (f64, f64)> = BTreeMap::new();
    let mut open: Vec<Connection> = Vec::new();
    let mut closing: BTreeMap<u16, f64> = BTreeMap::new();
    let mut used = above + 1;
    // Whether facts on the next line belong to the last connection.
    let mut is_open = false;
    let own = lines.get(above..).unwrap_or_default();
    for (place, line) in (above + 1..).zip(rows(own, is_header)) {
        used = place + 1;
        if line.text.starts_with([' ', '\t']) && socket(&line.text, None).is_none() {
            if let Some(last) = open.last_mut().filter(|_| is_open) {
                last.learn(line.text.split_whitespace());
            }
            continue;
        }
        is_open = false;
        let socket = if is_netstat { of_netstat(&line.text) } else { socket(&line.text, only) };
        let Some(socket) = socket else {
            // Sockets of other kinds have other columns.
            if is_netstat || !line.text.contains('*') {
                context.unread.push(place);
            }
            continue;
        };
        let local = port(socket.local).filter(|_| socket.is_tcp);
        match (socket.state, local) {
            (_, None) if !socket.is_tcp => {}
            ("LISTEN", Some(port)) => {
                // Each listener has a queue of its own: one may be full beside an empty one.
                let of = listening.entry(port).or_insert((socket.receive, socket.send));
                let fill = |(queue, limit): (f64, f64)| queue / limit.max(1.0);
                if fill((socket.receive, socket.send)) > fill(*of) {
                    *of = (socket.receive, socket.send);
                }
            }
            ("CLOSE-WAIT", Some(port)) => *closing.entry(port).or_default() += 1.0,
            ("ESTAB", Some(port)) => {
                let Some(peer) = self::port(socket.peer) else {
                    context.unread.push(place);
                    continue;
                };
                let mut connection = Connection::new(port, peer, socket.receive);
                connection.learn(socket.rest.iter().copied());
                open.push(connection);
                is_open = true;
            }
            ("ESTAB" | "LISTEN" | "CLOSE-WAIT", None) => context.unread.push(place),
            _ => {}
        }
    }
    let mut ports: BTreeSet<u16> = listening.keys().copied().collect();
    ports.extend(&context.listening);
    context.listening.clone_from(&ports);
    for (port, (queue, limit)) in listening {
        let labels = Labels::new([("port", port.to_string())]);
        context.out.gauge(at, HOST, metrics::tcp::ACCEPT_QUEUE_LENGTH.name, labels.clone(), queue);
        if !is_netstat {
            context.out.gauge(at, HOST, metrics::tcp::ACCEPT_QUEUE_LIMIT.name, labels, limit);
        }
    }
    connections::put(&open, &closing, &ports, at, context);
    used
}
