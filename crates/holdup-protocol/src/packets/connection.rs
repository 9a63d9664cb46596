//! One TCP connection: turns the segments of both directions into ordered bytes for its protocol.
//! It tracks the start, the end and the round trip, and finds out on which side of the network the
//! capture was made.

use std::net::SocketAddr;

use crate::packets::packet::Segment;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::protocol::{Protocol, ProtocolReader};
use crate::packets::stream::{SegmentKind, Stream, StreamPart};
use crate::packets::totals::Totals;
use crate::packets::turn::Outcome;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub speech: ProtocolReader,
    pub last_at: i64,
    pub is_closed: bool,
    /// Whether the handshake indicates a capture on the server's side.
    pub is_server_side: Option<bool>,
    /// A round trip measured since the last call, nanoseconds.
    pub round_trip_ns: Option<i64>,
    from_client: Direction,
    from_server: Direction,
    opened_at: i64,
    accepted_at: Option<i64>,
    is_opening: bool,
    /// Its protocol before it was closed.
    spoke: Option<Protocol>,
}

#[derive(Debug, Default)]
struct Direction {
    stream: Stream,
    is_finished: bool,
    /// The sequence number to be acknowledged, and when it was sent: for the round trip.
    probe: Option<(u32, i64)>,
    /// When segments were seen that may have begun the next request, and their sequence numbers.
    begun: Vec<(i64, u32)>,
}

/// Most segments of a request that are remembered until it is complete: of a longer one the first are.
const BEGUN_MAX: usize = 64;

impl Direction {
    /// Tells the requests that `segment`, seen at `at`, has completed which segment began them.
    fn number(&mut self, seq: u32, at: i64, speech: &mut ProtocolReader) {
        if self.begun.len() < BEGUN_MAX {
            self.begun.push((at, seq));
        }
        let begun = &self.begun;
        let seq_at = |at| begun.iter().find(|(seen, _)| *seen == at).map(|(_, seq)| *seq);
        if speech.reader().is_some_and(|reader| reader.number(&seq_at)) {
            self.begun.clear();
            // It may also have begun the next one.
            self.begun.push((at, seq));
        }
    }
}

impl Connection {
    /// A connection whose first segment was seen at `at`; `is_opening` if that was its very first.
    pub fn new(client: SocketAddr, server: SocketAddr, protocol: Option<Protocol>, at: i64, is_opening: bool) -> Self {
        Self {
            client,
            server,
            speech: ProtocolReader::new(protocol, is_opening.then_some(at)),
            last_at: at,
            is_closed: false,
            is_server_side: None,
            round_trip_ns: None,
            from_client: Direction::default(),
            from_server: Direction::default(),
            opened_at: at,
            accepted_at: None,
            is_opening,
            spoke: None,
        }
    }

    /// Its protocol, also after it was closed.
    pub fn protocol(&self) -> Option<Protocol> {
        self.speech.protocol().or(self.spoke)
    }

    /// Whether a segment that opens a connection opens a different one.
    pub fn is_other(&self, segment: &Segment<'_>) -> bool {
        self.is_closed || self.from_client.stream.next() != Some(segment.seq.wrapping_add(1))
    }

    pub fn memory(&self) -> usize {
        self.from_client.stream.memory() + self.from_server.stream.memory() + self.speech.memory()
    }

    /// Takes a segment.
    pub fn take(&mut self, segment: &Segment<'_>, at: i64, counts: &mut Totals, to: &mut Sinks<'_>) {
        self.last_at = at;
        if self.is_closed {
            return;
        }
        let is_client = segment.from == self.client;
        self.handshake(segment, is_client, at);
        if segment.rst {
            return self.close(at, to);
        }
        let Self { speech, from_client, from_server, is_server_side, round_trip_ns, .. } = self;
        let (own, other) = if is_client { (from_client, from_server) } else { (from_server, from_client) };
        let length = (segment.payload.len() as u32).saturating_add(segment.cut);
        if segment.syn {
            own.stream.begin(segment.seq.wrapping_add(1));
            return;
        }
        if let Some(ack) = segment.ack {
            let mut part = |part: StreamPart<'_>| give(speech, !is_client, &part, counts, to);
            other.stream.acknowledged(ack, at, &mut part);
            // On the far side, only data that is acknowledged at once shows a round trip.
            if let Some((end, sent_at)) = other.probe
                && ack.wrapping_sub(end) as i32 >= 0
            {
                other.probe = None;
                if length == 0 && *is_server_side == Some(is_client) {
                    let trip = (at - sent_at).max(0);
                    *round_trip_ns = Some(round_trip_ns.map_or(trip, |least| least.min(trip)));
                }
            }
        }
        if length > 0 {
            let mut part = |part: StreamPart<'_>| give(speech, is_client, &part, counts, to);
            match own.stream.take(segment.seq, segment.payload, segment.cut, segment.id, at, &mut part) {
                SegmentKind::New => {
                    own.probe.get_or_insert((segment.seq.wrapping_add(length), at));
                    if is_client {
                        own.number(segment.seq, at, speech);
                    }
                }
                SegmentKind::Again => {
                    own.probe = None;
                    counts.retransmitted += 1;
                    if let Some(reader) = speech.reader() {
                        reader.sent_again();
                    }
                }
                SegmentKind::Copy => counts.copies += 1,
            }
        }
        if segment.fin && own.stream.next() == Some(segment.seq.wrapping_add(length)) {
            own.stream.begin(segment.seq.wrapping_add(length).wrapping_add(1));
            own.is_finished = true;
            // The server has finished; the client's last request may still be answered.
            if !is_client || other.is_finished {
                self.close(at, to);
            }
        }
    }

    /// The capture has ended, at the time `now`.
    pub fn finish(&mut self, now: i64, counts: &mut Totals, to: &mut Sinks<'_>) {
        let (speech, at) = (&mut self.speech, self.last_at);
        self.from_client.stream.flush(at, &mut |part| give(speech, true, &part, counts, to));
        self.from_server.stream.flush(at, &mut |part| give(speech, false, &part, counts, to));
        self.end(Outcome::Unfinished, now, to);
    }

    /// Unanswered requests end with `unanswered` at `at`.
    pub fn end(&mut self, unanswered: Outcome, at: i64, to: &mut Sinks<'_>) {
        if let Some(reader) = self.speech.reader() {
            reader.end(unanswered, at, to);
        }
    }

    fn close(&mut self, at: i64, to: &mut Sinks<'_>) {
        self.end(Outcome::Closed, at, to);
        self.is_closed = true;
        self.spoke = self.speech.protocol();
        self.speech = ProtocolReader::Foreign;
        (self.from_client, self.from_server) = (Direction::default(), Direction::default());
    }

    /// The kernels answer each other: SYN, SYN-ACK and ACK make one round trip, and the longer half
    /// of it shows on which side the capture was made.
    fn handshake(&mut self, segment: &Segment<'_>, is_client: bool, at: i64) {
        if !self.is_opening {
            return;
        }
        match (segment.syn, is_client, self.accepted_at) {
            (true, false, None) => self.accepted_at = Some(at),
            (false, true, Some(accepted_at)) => {
                self.is_opening = false;
                self.is_server_side = Some(accepted_at - self.opened_at <= at - accepted_at);
                self.round_trip_ns = Some((at - self.opened_at).max(0));
            }
            (false, ..) => self.is_opening = false,
            // Retransmitted: it is unclear which one was answered.
            (true, true, _) if at != self.opened_at => self.is_opening = false,
            _ => {}
        }
    }
}

fn give(speech: &mut ProtocolReader, is_client: bool, part: &StreamPart<'_>, counts: &mut Totals, to: &mut Sinks<'_>) {
    match *part {
        StreamPart::Bytes(at, bytes, cut) => {
            counts.cut_bytes += u64::from(cut);
            speech.take(is_client, &Piece { at, bytes, cut }, to);
        }
        StreamPart::Gap(at, count) => {
            counts.gaps += 1;
            counts.lost_bytes += u64::from(count);
            speech.lost(is_client, at, count, to);
        }
    }
}
