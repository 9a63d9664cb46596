//! All connections of a capture: packets in, rows of `exchanges` out. It finds a packet's connection, names what comes of it,
//! and keeps the memory of all of them bounded: those that were silent longest are given up first, and counted.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use holdup_recording::metrics::{self, Metric};
use holdup_recording::rows::Exchange;

use crate::packets::connection::{Connection, Counts};
use crate::packets::detail::Detail;
use crate::packets::mysql::is_greeting;
use crate::packets::packet::{Other, Packet, Segment, segment};
use crate::packets::speech::{Protocol, Yield};
use crate::packets::statement::Statements;
use crate::packets::turn::{Kind, Outcome, Turn};

/// From where packets are seen.
#[derive(Clone, Debug, Default)]
pub enum Vantage {
    /// From the machine with these addresses. Where neither end is one of them, by the handshakes.
    Host(Vec<IpAddr>),
    /// Not known: told from the handshakes.
    #[default]
    Unknown,
}

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who saw it, as it stands in the rows; empty for `wire:PORT` of each server.
    pub source: String,
    /// Ports of servers, and what they speak.
    pub ports: Vec<(u16, Protocol)>,
    /// Whether connections to other ports are recognised by how they begin.
    pub guess: bool,
    /// From where.
    pub vantage: Vantage,
    /// Most connections at once; 0 for [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// Exchanges are kept as they were said, statements with their literals, for [`Capture::details`], and no rows are given.
    pub in_full: bool,
}

/// Most connections that are followed at once.
pub const CONNECTIONS_MAX: usize = 65_536;
/// Most bytes that all of them may hold back.
const MEMORY_MAX: usize = 64 << 20;
/// A response whose end can't be read has ended when nothing came for so long, nanoseconds.
const QUIET_NS: i64 = 1_000_000_000;
/// A handshake that was over so soon, nanoseconds: whichever side we look from, what the network takes is nothing.
const NEAR_NS: i64 = 100_000;
/// A connection that was closed is remembered so long, so that stragglers open no other one, nanoseconds.
const CLOSED_KEPT_NS: i64 = 10_000_000_000;

/// What was seen in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Bytes of them on the wire.
    pub bytes: u64,
    /// Packets of other protocols, or malformed.
    pub foreign: u64,
    /// Fragments of IP, which are not put together.
    pub fragments: u64,
    /// Packets of which too little was stored.
    pub short: u64,
    /// Connections to servers that are looked for.
    pub connections: u64,
    /// Exchanges.
    pub exchanges: u64,
    /// Of them, with packets that were not captured.
    pub lost_exchanges: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Packets that were captured twice.
    pub copies: u64,
    /// Holes in streams: packets that were never captured.
    pub gaps: u64,
    /// Bytes in them.
    pub lost_bytes: u64,
    /// Bytes of payload that were not stored.
    pub cut_bytes: u64,
    /// Exchanges by which holdup itself looks at the server. They are neither counted nor given.
    pub own_exchanges: u64,
    /// Connections that were given up for want of memory.
    pub given_up: u64,
}

impl Totals {
    /// What of it is recorded, as counters.
    pub fn counters(&self) -> [(Metric, u64); 9] {
        [
            (metrics::wire::PACKETS, self.packets),
            (metrics::wire::BYTES, self.bytes),
            (metrics::wire::CONNECTIONS, self.connections),
            (metrics::wire::EXCHANGES, self.exchanges),
            (metrics::wire::OWN_EXCHANGES, self.own_exchanges),
            (metrics::wire::EXCHANGES_LOST, self.lost_exchanges),
            (metrics::wire::RETRANSMITTED_SEGMENTS, self.retransmitted),
            (metrics::wire::GAPS, self.gaps),
            (metrics::wire::LOST_BYTES, self.lost_bytes),
        ]
    }
}

/// The least round trip between two hosts since it was last asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Address of the client.
    pub client: IpAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// How long, nanoseconds.
    pub least_ns: i64,
}

/// Connections are found by both ends, the lesser first.
type Ends = (SocketAddr, SocketAddr);

/// Packets in, exchanges out.
#[derive(Debug)]
pub struct Capture {
    options: Options,
    connections: HashMap<Ends, Connection>,
    details: Vec<Detail>,
    statements: Statements,
    turns: Vec<Turn>,
    counts: Counts,
    totals: Totals,
    memory: usize,
    /// Handshakes that said we look from the server's side, less those that said we don't.
    server_side: i64,
    last_at: i64,
}

impl Capture {
    /// Nothing seen yet.
    pub fn new(options: Options) -> Self {
        let statements = Statements { in_full: options.in_full, ..Statements::default() };
        Self {
            options,
            connections: HashMap::new(),
            details: Vec::new(),
            statements,
            turns: Vec::new(),
            counts: Counts::default(),
            totals: Totals::default(),
            memory: 0,
            server_side: 0,
            last_at: i64::MIN,
        }
    }

    /// Takes a packet, and gives the exchanges that end with it.
    pub fn packet(&mut self, packet: &Packet<'_>, out: &mut dyn FnMut(Exchange)) {
        self.totals.packets += 1;
        self.totals.bytes += packet.length as u64;
        self.last_at = self.last_at.max(packet.at);
        match segment(packet) {
            Ok(segment) => self.segment(&segment, packet.at, out),
            Err(Other::Foreign) => self.totals.foreign += 1,
            Err(Other::Fragment) => self.totals.fragments += 1,
            Err(Other::Short) => self.totals.short += 1,
        }
    }

    /// Ends, at the time `now`, responses whose end can't be read and that are silent, and forgets closed connections.
    pub fn quiet(&mut self, now: i64, out: &mut dyn FnMut(Exchange)) {
        let Self { connections, statements, turns, .. } = self;
        let mut ended = Vec::new();
        for connection in connections.values_mut() {
            connection.speech.quiet(now.saturating_sub(QUIET_NS), &mut Yield { statements, turns });
            if !turns.is_empty() {
                ended.push((Names::of(connection), std::mem::take(turns)));
            }
        }
        for (names, turns) in ended {
            self.turns = turns;
            self.give(&names, out);
        }
        self.forget(|connection| connection.is_closed && connection.last_at < now.saturating_sub(CLOSED_KEPT_NS));
    }

    /// Ends all that is unanswered, at the time `now`: there are no more packets.
    pub fn finish(&mut self, now: i64, out: &mut dyn FnMut(Exchange)) {
        for (_, mut connection) in std::mem::take(&mut self.connections) {
            let Self { statements, turns, counts, .. } = self;
            connection.finish(now, counts, &mut Yield { statements, turns });
            self.give(&Names::of(&connection), out);
        }
        self.memory = 0;
    }

    /// What was exchanged since this was last asked for, where [`Options::in_full`] is.
    pub fn details(&mut self) -> std::vec::Drain<'_, Detail> {
        self.details.drain(..)
    }

    /// What was seen so far.
    pub fn totals(&self) -> Totals {
        let Counts { retransmitted, copies, gaps, lost_bytes, cut_bytes } = self.counts;
        Totals { retransmitted, copies, gaps, lost_bytes, cut_bytes, ..self.totals }
    }

    /// When the last packet was seen, nanoseconds since the Unix epoch; none if there was none.
    pub fn last_at(&self) -> Option<i64> {
        (self.last_at > i64::MIN).then_some(self.last_at)
    }

    /// Round trips that were measured since this was last asked, one a client's address and server.
    pub fn round_trips(&mut self) -> Vec<RoundTrip> {
        let mut least: HashMap<(IpAddr, SocketAddr), i64> = HashMap::new();
        for connection in self.connections.values_mut() {
            if let Some(trip) = connection.round_trip_ns.take() {
                let known = least.entry((connection.client.ip(), connection.server)).or_insert(trip);
                *known = trip.min(*known);
            }
        }
        let trip = |((client, server), least_ns)| RoundTrip { client, server, least_ns };
        let mut trips: Vec<RoundTrip> = least.into_iter().map(trip).collect();
        trips.sort_by_key(|trip| (trip.server, trip.client));
        trips
    }

    fn segment(&mut self, segment: &Segment<'_>, at: i64, out: &mut dyn FnMut(Exchange)) {
        let ends = (segment.from.min(segment.to), segment.from.max(segment.to));
        if segment.syn
            && segment.ack.is_none()
            && self.connections.get(&ends).is_some_and(|known| known.is_other(segment))
            && let Some(mut old) = self.connections.remove(&ends)
        {
            self.memory = self.memory.saturating_sub(old.memory());
            let Self { statements, turns, .. } = self;
            old.speech.end(Outcome::Closed, at, &mut Yield { statements, turns });
            self.give(&Names::of(&old), out);
        }
        if !self.connections.contains_key(&ends) {
            let Some(connection) = self.begin(segment, at) else { return };
            self.make_room(out);
            self.connections.insert(ends, connection);
        }
        let Self { connections, statements, turns, counts, .. } = self;
        let Some(connection) = connections.get_mut(&ends) else { return };
        let (before, was_side, was_spoken) =
            (connection.memory(), connection.is_server_side, connection.speech.protocol());
        connection.take(segment, at, counts, &mut Yield { statements, turns });
        self.memory = (self.memory + connection.memory()).saturating_sub(before);
        if was_spoken.is_none() && connection.speech.protocol().is_some() {
            self.totals.connections += 1;
        }
        if was_side.is_none()
            && let Some(is_server) = &mut connection.is_server_side
        {
            let (client, server) = (connection.client.ip(), connection.server.ip());
            let is_telling = match &self.options.vantage {
                Vantage::Host(own) => {
                    *is_server |= connection.round_trip_ns.is_some_and(|trip| trip < NEAR_NS);
                    !own.contains(&client) && !own.contains(&server)
                }
                Vantage::Unknown => true,
            };
            self.server_side += match *is_server {
                _ if !is_telling => 0,
                true => 1,
                false => -1,
            };
        }
        if !turns.is_empty() {
            let names = Names::of(connection);
            self.give(&names, out);
        }
    }

    /// The connection that `segment` is of, if it is looked for.
    fn begin(&mut self, segment: &Segment<'_>, at: i64) -> Option<Connection> {
        let spoken = |end: SocketAddr| {
            self.options.ports.iter().find(|(port, _)| *port == end.port()).map(|(_, protocol)| *protocol)
        };
        let is_opening = segment.syn && segment.ack.is_none();
        let is_accepting = segment.syn && segment.ack.is_some();
        let (to, from) = (spoken(segment.to), spoken(segment.from));
        let is_client = if is_opening || is_accepting { is_opening } else { to.is_some() };
        let (client, server, protocol) =
            if is_client { (segment.from, segment.to, to) } else { (segment.to, segment.from, from) };
        // What only acknowledges, or ends, says nothing of a connection whose beginning was not seen.
        let greets = protocol == Some(Protocol::Mysql) && !is_client && is_greeting(segment.payload);
        let says_something = is_opening || is_accepting || !segment.payload.is_empty();
        if !says_something || (protocol.is_none() && !(self.options.guess && (is_opening || is_accepting))) {
            return None;
        }
        self.totals.connections += u64::from(protocol.is_some());
        Some(Connection::new(client, server, protocol, at, is_opening || is_accepting || greets))
    }

    /// Gives up what was silent longest, if there are too many connections or too much is held back.
    fn make_room(&mut self, out: &mut dyn FnMut(Exchange)) {
        let most = if self.options.connections_max == 0 { CONNECTIONS_MAX } else { self.options.connections_max };
        if self.connections.len() < most && self.memory < MEMORY_MAX {
            return;
        }
        let mut ages: Vec<i64> = self.connections.values().map(|connection| connection.last_at).collect();
        let middle = ages.len() / 8;
        if middle >= ages.len() {
            return;
        }
        let (_, &mut oldest, _) = ages.select_nth_unstable(middle);
        let old: Vec<Ends> =
            self.connections.iter().filter(|(_, known)| known.last_at <= oldest).map(|(ends, _)| *ends).collect();
        for ends in old {
            let Some(mut connection) = self.connections.remove(&ends) else { continue };
            self.memory = self.memory.saturating_sub(connection.memory());
            self.totals.given_up += u64::from(!connection.is_closed && connection.speech.protocol().is_some());
            let Self { statements, turns, counts, last_at, .. } = self;
            connection.finish(*last_at, counts, &mut Yield { statements, turns });
            self.give(&Names::of(&connection), out);
        }
    }

    fn forget(&mut self, is_over: impl Fn(&Connection) -> bool) {
        let memory = &mut self.memory;
        self.connections.retain(|_, connection| {
            let is_over = is_over(connection);
            if is_over {
                *memory = memory.saturating_sub(connection.memory());
            }
            !is_over
        });
    }

    fn give(&mut self, names: &Names, out: &mut dyn FnMut(Exchange)) {
        let mut turns = std::mem::take(&mut self.turns);
        let count = turns.len();
        // One by one: behind a proxy a connection may be everybody's.
        turns.retain(|turn| !turn.said.is_own);
        self.totals.own_exchanges += (count - turns.len()) as u64;
        for turn in turns.drain(..) {
            if self.options.in_full {
                self.totals.exchanges += 1;
                self.totals.lost_exchanges += u64::from(turn.is_lost);
                self.details.push(Detail::of(names.client, names.server, names.protocol, outcome(&turn), turn));
            } else {
                out(self.row(names, turn));
            }
        }
        self.turns = turns;
    }

    fn row(&mut self, names: &Names, turn: Turn) -> Exchange {
        self.totals.exchanges += 1;
        self.totals.lost_exchanges += u64::from(turn.is_lost);
        let source = &self.options.source;
        let statement = turn.said.statement.as_deref();
        let count = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Exchange {
            source: if source.is_empty() { format!("wire:{}", names.server.port()) } else { source.clone() },
            side: self.side(names).to_owned(),
            protocol: names.protocol.map_or("", Protocol::name).to_owned(),
            client: names.client.to_string(),
            server: names.server.to_string(),
            session_id: turn.session_id,
            kind: turn.kind.name().to_owned(),
            digest: statement.map(|statement| statement.digest.clone()),
            digest_text: statement.map(|statement| statement.digest_text.clone()),
            trace_id: turn.said.trace_id.as_deref().map(str::to_owned),
            request_at: turn.request_at,
            request_end_at: turn.request_end_at,
            first_byte_at: turn.first_byte_at,
            done_at: turn.done_at,
            outcome: outcome(&turn).to_owned(),
            error: turn.error.as_deref().map(str::to_owned),
            request_bytes: count(turn.request_bytes),
            response_bytes: count(turn.response_bytes),
            ahead: turn.ahead as i64,
            retransmits: i64::from(turn.retransmits),
        }
    }

    fn side(&self, names: &Names) -> &'static str {
        let (client, server) = (names.client.ip(), names.server.ip());
        if client == server || (client.is_loopback() && server.is_loopback()) {
            return "loopback";
        }
        match &self.options.vantage {
            Vantage::Host(own) => match (own.contains(&client), own.contains(&server)) {
                (true, true) => "loopback",
                (true, false) => "client",
                (false, true) => "server",
                (false, false) => {
                    match names.is_server_side.map_or(self.server_side.signum(), |is| if is { 1 } else { -1 }) {
                        1 => "server",
                        -1 => "client",
                        _ => "unknown",
                    }
                }
            },
            Vantage::Unknown => match names.is_server_side.unwrap_or(self.server_side >= 0) {
                true => "server",
                false => "client",
            },
        }
    }
}

fn outcome(turn: &Turn) -> &'static str {
    match turn.outcome {
        _ if turn.is_lost => "lost",
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        // Who leaves without a response to `COM_QUIT` or in the midst of an opaque one is no failure of it.
        Outcome::Closed if turn.kind == Kind::Opaque && turn.first_byte_at.is_some() => "ok",
        Outcome::Closed => "closed",
        Outcome::Unfinished => "unfinished",
    }
}

/// What a row says of its connection.
struct Names {
    client: SocketAddr,
    server: SocketAddr,
    protocol: Option<Protocol>,
    is_server_side: Option<bool>,
}

impl Names {
    fn of(connection: &Connection) -> Self {
        let Connection { client, server, is_server_side, .. } = *connection;
        Self { client, server, protocol: connection.protocol(), is_server_side }
    }
}

#[cfg(test)]
mod mangled_tests;
#[cfg(test)]
mod tests;
