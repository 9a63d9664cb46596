//! All connections of a capture: packets in, rows of `exchanges` out. It finds the connection of
//! each packet, labels the exchanges, and bounds the total memory: the connections silent for
//! longest are given up first, and counted.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use holdup_recording::rows::Exchange;

use crate::packets::connection::Connection;
use crate::packets::detail::Detail;
use crate::packets::mysql::is_greeting;
use crate::packets::packet::{NotSegment, Packet, Segment, segment};
use crate::packets::piece::Sinks;
use crate::packets::protocol::Protocol;
use crate::packets::statement::Statements;
use crate::packets::totals::Totals;
use crate::packets::turn::{Kind, Outcome, Turn};

/// Where packets are captured.
#[derive(Clone, Debug, Default)]
pub enum Vantage {
    /// On the machine with these addresses. If neither end is one of them, the handshakes decide.
    Host(Vec<IpAddr>),
    /// Unknown: the handshakes decide.
    #[default]
    Unknown,
}

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of this source in the rows; empty for `wire:PORT` of each server.
    pub source: String,
    /// Ports of servers, and their protocols.
    pub ports: Vec<(u16, Protocol)>,
    /// Whether connections to other ports are recognised by their first bytes.
    pub guess: bool,
    /// Where packets are captured.
    pub vantage: Vantage,
    /// Most connections at once; 0 for [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// Keep exchanges as they were sent, statements with their literals, for [`Capture::details`],
    /// and return no rows.
    pub in_full: bool,
}

/// Most connections that are followed at once.
pub const CONNECTIONS_MAX: usize = 65_536;
/// Most bytes that all of them together may hold back.
const MEMORY_MAX: usize = 64 << 20;
/// A response whose end cannot be read has ended after this much silence, nanoseconds.
const QUIET_NS: i64 = 1_000_000_000;
/// After a handshake shorter than this, nanoseconds, the network's part is negligible, whichever
/// side captured it.
const NEAR_NS: i64 = 100_000;
/// A closed connection is remembered for this long, so that late packets do not open another one,
/// nanoseconds.
const CLOSED_KEPT_NS: i64 = 10_000_000_000;

/// The shortest round trip between two hosts since the last call.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Address of the client.
    pub client: IpAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// How long it took, nanoseconds.
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
    totals: Totals,
    memory: usize,
    /// Handshakes that indicate the server's side, minus those that indicate the client's.
    server_side: i64,
    last_at: i64,
}

impl Capture {
    /// Before any packet.
    pub fn new(options: Options) -> Self {
        let statements = Statements { in_full: options.in_full, ..Statements::default() };
        Self {
            options,
            connections: HashMap::new(),
            details: Vec::new(),
            statements,
            turns: Vec::new(),
            totals: Totals::default(),
            memory: 0,
            server_side: 0,
            last_at: i64::MIN,
        }
    }

    /// Takes a packet, and returns the exchanges that end with it.
    pub fn packet(&mut self, packet: &Packet<'_>, out: &mut dyn FnMut(Exchange)) {
        self.totals.packets += 1;
        self.totals.bytes += packet.length as u64;
        self.last_at = self.last_at.max(packet.at);
        match segment(packet) {
            Ok(segment) => self.segment(&segment, packet.at, out),
            Err(NotSegment::Foreign) => self.totals.foreign += 1,
            Err(NotSegment::Fragment) => self.totals.fragments += 1,
            Err(NotSegment::Short) => self.totals.short += 1,
        }
    }

    /// Ends, at the time `now`, silent responses whose end cannot be read, and forgets closed
    /// connections.
    pub fn quiet(&mut self, now: i64, out: &mut dyn FnMut(Exchange)) {
        let Self { connections, statements, turns, .. } = self;
        let mut ended = Vec::new();
        for connection in connections.values_mut() {
            if let Some(reader) = connection.speech.reader() {
                reader.quiet(now.saturating_sub(QUIET_NS), &mut Sinks { statements, turns });
            }
            if !turns.is_empty() {
                ended.push((RowLabels::for_connection(connection), std::mem::take(turns)));
            }
        }
        for (names, turns) in ended {
            self.turns = turns;
            self.give(&names, out);
        }
        self.forget(|connection| connection.is_closed && connection.last_at < now.saturating_sub(CLOSED_KEPT_NS));
    }

    /// Ends everything unanswered, at the time `now`: the capture is over.
    pub fn finish(&mut self, now: i64, out: &mut dyn FnMut(Exchange)) {
        for (_, mut connection) in std::mem::take(&mut self.connections) {
            let Self { statements, turns, totals, .. } = self;
            connection.finish(now, totals, &mut Sinks { statements, turns });
            self.give(&RowLabels::for_connection(&connection), out);
        }
        self.memory = 0;
    }

    /// The exchanges since the last call, with [`Options::in_full`].
    pub fn details(&mut self) -> std::vec::Drain<'_, Detail> {
        self.details.drain(..)
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Time of the last packet, nanoseconds since the Unix epoch; none before the first.
    pub fn last_at(&self) -> Option<i64> {
        (self.last_at > i64::MIN).then_some(self.last_at)
    }

    /// Round trips measured since the last call, one per client address and server.
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
            old.end(Outcome::Closed, at, &mut Sinks { statements, turns });
            self.give(&RowLabels::for_connection(&old), out);
        }
        if !self.connections.contains_key(&ends) {
            let Some(connection) = self.begin(segment, at) else { return };
            self.make_room(out);
            self.connections.insert(ends, connection);
        }
        let Self { connections, statements, turns, totals, .. } = self;
        let Some(connection) = connections.get_mut(&ends) else { return };
        let (before, was_side, was_spoken) =
            (connection.memory(), connection.is_server_side, connection.speech.protocol());
        connection.take(segment, at, totals, &mut Sinks { statements, turns });
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
            let names = RowLabels::for_connection(connection);
            self.give(&names, out);
        }
    }

    /// A connection for `segment`, if it is a wanted one.
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
        // A mere acknowledgement or end does not identify a connection whose start was not seen.
        let greets = protocol == Some(Protocol::Mysql) && !is_client && is_greeting(segment.payload);
        let says_something = is_opening || is_accepting || !segment.payload.is_empty();
        if !says_something || (protocol.is_none() && !(self.options.guess && (is_opening || is_accepting))) {
            return None;
        }
        self.totals.connections += u64::from(protocol.is_some());
        Some(Connection::new(client, server, protocol, at, is_opening || is_accepting || greets))
    }

    /// Gives up the connections silent for longest, if there are too many or they hold back too
    /// much.
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
            let Self { statements, turns, totals, last_at, .. } = self;
            connection.finish(*last_at, totals, &mut Sinks { statements, turns });
            self.give(&RowLabels::for_connection(&connection), out);
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

    fn give(&mut self, names: &RowLabels, out: &mut dyn FnMut(Exchange)) {
        let mut turns = std::mem::take(&mut self.turns);
        let count = turns.len();
        // One by one: behind a proxy, different clients may share a connection.
        turns.retain(|turn| !turn.sent.is_own);
        self.totals.own_exchanges += (count - turns.len()) as u64;
        for turn in turns.drain(..) {
            self.totals.compressed += u64::from(turn.kind == Kind::Opaque && !turn.command.is_empty());
            if self.options.in_full {
                self.totals.exchanges += 1;
                self.totals.lost_exchanges += u64::from(turn.is_lost);
                self.details.push(Detail::from_turn(names.client, names.server, names.protocol, outcome(&turn), turn));
            } else {
                out(self.row(names, turn));
            }
        }
        self.turns = turns;
    }

    fn row(&mut self, names: &RowLabels, turn: Turn) -> Exchange {
        self.totals.exchanges += 1;
        self.totals.lost_exchanges += u64::from(turn.is_lost);
        let source = &self.options.source;
        let statement = turn.sent.statement.as_deref();
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
            trace_id: turn.sent.trace_id.as_deref().map(str::to_owned),
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
            request_seq: turn.request_seq.map(i64::from),
        }
    }

    fn side(&self, names: &RowLabels) -> &'static str {
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
        // Leaving is not a failure: closing without a response to `COM_QUIT`, or in the middle of
        // an opaque one.
        Outcome::Closed if turn.kind == Kind::Opaque && turn.first_byte_at.is_some() => "ok",
        Outcome::Closed => "closed",
        Outcome::Unfinished => "unfinished",
    }
}

/// Labels of a connection in its rows.
struct RowLabels {
    client: SocketAddr,
    server: SocketAddr,
    protocol: Option<Protocol>,
    is_server_side: Option<bool>,
}

impl RowLabels {
    fn for_connection(connection: &Connection) -> Self {
        let Connection { client, server, is_server_side, .. } = *connection;
        Self { client, server, protocol: connection.protocol(), is_server_side }
    }
}

#[cfg(test)]
mod mangled_tests;
#[cfg(test)]
mod tests;
