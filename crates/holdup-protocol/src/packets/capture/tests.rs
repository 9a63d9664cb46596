//! Captures made of packets by hand: both directions of a connection, what is cut, what is lost.

use super::*;
use crate::packets::packet::Link;
use crate::packets::packet::tests::ip_packet;

const CLIENT: (u8, u16) = (1, 40_000);
const SERVER: (u8, u16) = (2, 3306);
const SYN: u8 = 0x02;
const FIN: u8 = 0x11;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

struct Wire {
    capture: Capture,
    rows: Vec<Exchange>,
    at: i64,
}

impl Wire {
    fn new() -> Self {
        Self::with(Options { ports: vec![(3306, Protocol::Mysql)], ..Options::default() })
    }

    fn with(options: Options) -> Self {
        Self { capture: Capture::new(options), rows: Vec::new(), at: 0 }
    }

    fn send(&mut self, from: (u8, u16), to: (u8, u16), seq: u32, ack: u32, flags: u8, payload: &[u8]) {
        self.at += 1_000_000;
        let bytes = ip_packet(false, from, to, seq, ack, flags, payload);
        let packet = Packet { at: self.at, link: Link::Ip, bytes: &bytes, length: bytes.len() };
        self.capture.packet(&packet, &mut |row| self.rows.push(row));
    }

    fn client(&mut self, seq: u32, ack: u32, flags: u8, payload: &[u8]) {
        self.send(CLIENT, SERVER, seq, ack, flags, payload);
    }

    fn server(&mut self, seq: u32, ack: u32, flags: u8, payload: &[u8]) {
        self.send(SERVER, CLIENT, seq, ack, flags, payload);
    }

    fn finish(&mut self) {
        self.capture.finish(self.at, &mut |row| self.rows.push(row));
    }
}

const PING: &[u8] = b"\x01\0\0\0\x0e";
const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";

#[test]
fn a_ping_over_wrapping_numbers_with_retransmissions() {
    let mut wire = Wire::new();
    let base = u32::MAX - 2;
    wire.client(base, 50, ACK, PING);
    wire.client(base, 50, ACK, PING);
    // The response comes in two parts, the second first.
    let end = base.wrapping_add(5);
    wire.server(54, end, ACK, &OK[4..]);
    wire.server(50, end, ACK, &OK[..4]);
    wire.client(end, 61, ACK, PING);
    wire.client(end.wrapping_add(5), 61, FIN, b"");
    wire.server(61, end.wrapping_add(6), FIN, b"");
    let [first, second] = wire.rows.as_slice() else { panic!("{:?}", wire.rows) };
    assert_eq!((first.request_at, first.first_byte_at, first.done_at), (1_000_000, Some(4_000_000), 4_000_000));
    assert_eq!(
        (first.outcome.as_str(), first.retransmits, first.request_bytes, first.response_bytes),
        ("ok", 1, 5, 11)
    );
    assert_eq!(
        (first.client.as_str(), first.server.as_str(), first.source.as_str()),
        ("10.0.0.1:40000", "10.0.0.2:3306", "wire:3306")
    );
    assert_eq!((second.outcome.as_str(), second.done_at), ("closed", 7_000_000));
    assert_eq!([first.request_seq, second.request_seq], [base, end].map(|seq| Some(i64::from(seq))));
    assert_eq!(wire.capture.totals().retransmitted, 1);
}

#[test]
fn a_request_has_the_number_of_the_segment_that_began_it() {
    let mut wire = Wire::new();
    let query = [b"\x09\0\0\0\x03", &b"SELECT 1"[..]].concat();
    wire.client(995, 50, ACK, PING);
    wire.server(50, 1_000, ACK, OK);
    for (begin, answer) in [(1_000, 61), (1_013, 72)] {
        for (offset, part) in [(0, &query[..4]), (4, &query[4..9]), (9, &query[9..])] {
            wire.client(begin + offset, answer, ACK, part);
        }
        wire.server(answer, begin + 13, ACK, OK);
    }
    let seqs: Vec<Option<i64>> = wire.rows.iter().map(|row| row.request_seq).collect();
    assert_eq!(seqs, [Some(995), Some(1_000), Some(1_013)], "{:?}", wire.rows);
}

#[test]
fn the_handshake_tells_the_round_trip_and_the_side() {
    for (waits, side) in [([0, 30], "server"), ([30, 0], "client")] {
        let mut wire = Wire::new();
        wire.client(9, 0, SYN, b"");
        wire.at += waits[0] * 1_000_000;
        wire.server(49, 10, SYN | ACK, b"");
        wire.at += waits[1] * 1_000_000;
        wire.client(10, 50, ACK, b"");
        let trips = wire.capture.round_trips();
        assert_eq!(trips.iter().map(|trip| trip.least_ns).collect::<Vec<_>>(), [32_000_000]);
        assert!(wire.capture.round_trips().is_empty());
        wire.server(50, 10, ACK, b"\x05\0\0\0\xff\x10\x04hi");
        assert_eq!((wire.rows[0].side.as_str(), wire.rows[0].error.as_deref()), (side, Some("1040")));
    }
}

#[test]
fn a_response_that_was_not_captured_is_lost_and_the_next_is_not() {
    let mut wire = Wire::new();
    wire.client(0, 50, ACK, PING);
    // 11 bytes of the server were acknowledged and never seen.
    wire.client(5, 61, ACK, PING);
    wire.server(61, 10, ACK, OK);
    wire.client(10, 72, ACK, PING);
    wire.server(72, 15, ACK, OK);
    wire.client(15, 83, RST, b"");
    let outcomes: Vec<&str> = wire.rows.iter().map(|row| row.outcome.as_str()).collect();
    assert_eq!(outcomes, ["lost", "ok", "ok"]);
    assert_eq!((wire.capture.totals().gaps, wire.capture.totals().lost_bytes), (1, 11));
}

#[test]
fn packets_that_are_dropped_are_told_and_spoil_nothing_else() {
    // Every seventh packet is not captured; what is said to be good has the right times and digests.
    let mut wire = Wire::new();
    let (mut seq, mut ack, mut truth) = (100_u32, 500_u32, HashMap::new());
    for n in 0..2000_u32 {
        let text = format!("SELECT c{} FROM t WHERE id = {n}", n % 10);
        let request = [&(text.len() as u32 + 1).to_le_bytes()[..3], &[0, 3], text.as_bytes()].concat();
        let response: Vec<u8> =
            [b"\x01\0\0\x01\x01", &b"\x03\0\0\x02def"[..], b"\x05\0\0\x03\xfe\0\0\x02\0\x05\0\0\x04\xfe\0\0\x02\0"]
                .concat();
        let mut put = |is_client: bool, seq, ack, payload: &[u8], number: u32| {
            if (n * 3 + number).is_multiple_of(7) {
                wire.at += 1_000_000;
            } else if is_client {
                wire.client(seq, ack, ACK, payload);
            } else {
                wire.server(seq, ack, ACK, payload);
            }
            wire.at
        };
        let asked_at = put(true, seq, ack, &request, 0);
        seq = seq.wrapping_add(request.len() as u32);
        let (head, tail) = response.split_at(12);
        let answered_at = put(false, ack, seq, head, 1);
        let done_at = put(false, ack.wrapping_add(12), seq, tail, 2);
        ack = ack.wrapping_add(response.len() as u32);
        truth.insert(asked_at, (answered_at, done_at, format!("SELECT c{} FROM t WHERE id = ?", n % 10)));
    }
    wire.finish();
    let good: Vec<&Exchange> = wire.rows.iter().filter(|row| row.outcome == "ok").collect();
    for row in &good {
        let (answered_at, done_at, text) = &truth[&row.request_at];
        assert_eq!(
            (row.first_byte_at, row.done_at, row.digest_text.as_ref()),
            (Some(*answered_at), *done_at, Some(text))
        );
    }
    // Of seven packets in a row, at most three exchanges lose one; a neighbour's end may be lost with it.
    assert!(good.len() > 900, "{} of 2000", good.len());
    assert!(wire.rows.iter().filter(|row| row.outcome == "lost").count() > 500);
    assert!(wire.capture.totals().gaps > 500);
}

#[test]
fn protocols_are_told_by_their_beginning() {
    let mut wire = Wire::with(Options { guess: true, ..Options::default() });
    for (n, greeting) in [&b"\x0a\0\0\0\x0a8.0\0\x07\0\0\0a"[..], b"HTTP/1.1 200 OK"].into_iter().enumerate() {
        let server = (2, 7000 + n as u16);
        wire.send(CLIENT, server, 9, 0, SYN, b"");
        wire.send(server, CLIENT, 49, 10, SYN | ACK, b"");
        wire.send(server, CLIENT, 50, 10, ACK, greeting);
    }
    wire.send(CLIENT, (2, 7002), 9, 0, SYN, b"");
    wire.send(CLIENT, (2, 7002), 10, 0, ACK, &[0, 0, 0, 9, 0, 3, 0, 0, 0]);
    wire.send(CLIENT, (2, 7003), 9, 0, SYN, b"");
    wire.send(CLIENT, (2, 7003), 10, 0, ACK, b"\x1a\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x05\0\0\0\0");
    wire.finish();
    let mut seen: Vec<_> = wire.rows.iter().map(|row| row.protocol.as_str()).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["mongodb", "postgresql"]);
    assert_eq!(wire.capture.totals().connections, 3);
}

#[test]
fn connections_are_bounded() {
    let ports = vec![(3306, Protocol::Mysql)];
    let mut wire = Wire::with(Options { ports, connections_max: 100, ..Options::default() });
    for n in 0..1000_u16 {
        wire.send((1, 10_000 + n), SERVER, 5, 5, ACK, PING);
        // Something that is held back.
        wire.send((1, 10_000 + n), SERVER, 500, 5, ACK, &[7; 1000]);
        assert!(wire.capture.connections.len() <= 100);
    }
    assert!(wire.capture.totals().given_up >= 900);
    assert!(wire.capture.memory < 100 * 200_000);
    wire.finish();
    assert_eq!(
        wire.rows.iter().filter(|row| row.outcome == "unfinished" || row.outcome == "lost").count(),
        wire.rows.len()
    );
}

#[test]
fn silent_connections_that_cannot_be_read_are_told_in_time() {
    let mut wire = Wire::new();
    wire.client(0, 50, ACK, PING);
    // Rows of which not all was stored: where they end is not seen.
    let bytes = ip_packet(false, SERVER, CLIENT, 50, 5, ACK, &[b"\x01\0\0\x01\x01", &[0; 100][..]].concat());
    wire.at += 1;
    let packet = Packet { at: wire.at, link: Link::Ip, bytes: &bytes[..60], length: bytes.len() };
    wire.capture.packet(&packet, &mut |row| wire.rows.push(row));
    wire.client(5, 155, ACK, b"\x02\0\0\0\x03x");
    wire.send(SERVER, CLIENT, 155, 11, ACK, b"\x05\0\0\x01\x01");
    let at = wire.at;
    let mut rows = Vec::new();
    wire.capture.quiet(at + 2 * QUIET_NS, &mut |row| rows.push(row));
    assert_eq!((wire.rows.len(), rows.len()), (1, 0), "the first was ended by the second, which has not ended");

    let mut wire = Wire::new();
    wire.client(0, 50, ACK, b"\x05\0\0\0\x03SELE");
    wire.at += 1;
    let bytes = ip_packet(false, SERVER, CLIENT, 50, 9, ACK, &[b"\x01\0\0\x01\x01", &[0; 100][..]].concat());
    let packet = Packet { at: wire.at, link: Link::Ip, bytes: &bytes[..60], length: bytes.len() };
    wire.capture.packet(&packet, &mut |row| wire.rows.push(row));
    let at = wire.at;
    for (later, count) in [(QUIET_NS / 2, 0), (2 * QUIET_NS, 1)] {
        wire.capture.quiet(at + later, &mut |row| rows.push(row));
        assert_eq!(rows.len(), count);
    }
    assert_eq!((rows[0].outcome.as_str(), rows[0].done_at), ("ok", at));
    assert!(rows[0].response_bytes > 100);
}

/// A statement, answered at once, on a connection that begins with these numbers.
fn ask(wire: &mut Wire, port: u16, seq: u32, ack: u32, text: &str) -> (u32, u32) {
    let request = [&(text.len() as u32 + 1).to_le_bytes()[..3], &[0, 3], text.as_bytes()].concat();
    wire.send((1, port), SERVER, seq, ack, ACK, &request);
    wire.send(SERVER, (1, port), ack, seq + request.len() as u32, ACK, OK);
    (seq + request.len() as u32, ack + OK.len() as u32)
}

#[test]
fn holdups_own_statements_are_left_out() {
    let mut wire = Wire::new();
    let (seq, ack) = ask(&mut wire, 40_001, 0, 50, "/* holdup */ SHOW GLOBAL STATUS");
    // The connection is a proxy's: others may use it.
    ask(&mut wire, 40_001, seq, ack, "SELECT 1");
    let (seq, ack) = ask(&mut wire, 40_002, 0, 50, "SELECT 2 /* holdup */");
    // What the watcher waits for when all ends is nobody's, either.
    wire.client(0, 50, ACK, b"\x0f\0\0\0\x03/* holdup */ x");
    wire.send((1, 40_002), SERVER, seq, ack, ACK, PING);
    wire.finish();
    let seen: Vec<_> = wire.rows.iter().map(|row| (row.client.as_str(), row.outcome.as_str())).collect();
    assert_eq!(seen, [("10.0.0.1:40001", "ok"), ("10.0.0.1:40002", "ok"), ("10.0.0.1:40002", "unfinished")]);
    assert_eq!((wire.capture.totals().exchanges, wire.capture.totals().own_exchanges), (3, 2));
}

#[test]
fn unanswered_requests_end_with_the_capture() {
    let mut wire = Wire::new();
    wire.client(0, 50, ACK, PING);
    wire.at += 700_000_000;
    wire.finish();
    let [row] = wire.rows.as_slice() else { panic!("{:?}", wire.rows) };
    assert_eq!((row.outcome.as_str(), row.first_byte_at, row.done_at), ("unfinished", None, 701_000_000));
}

#[test]
fn a_closed_connection_keeps_its_protocol() {
    let mut wire = Wire::new();
    wire.client(0, 50, ACK, PING);
    wire.client(5, 50, RST, b"");
    assert_eq!((wire.rows[0].outcome.as_str(), wire.rows[0].protocol.as_str()), ("closed", "mysql"));
}

#[test]
fn the_handshake_tells_the_side_of_foreign_hosts() {
    let host = || {
        let own = vec!["10.0.0.9".parse().unwrap()];
        Wire::with(Options { ports: vec![(3306, Protocol::Mysql)], vantage: Vantage::Host(own), ..Options::default() })
    };
    // Packets are 1 ms apart, but for the near ones.
    for (waits_ms, gap_ns, side) in [(30, 0, "client"), (-30, 0, "server"), (0, 20_000, "server"), (0, 0, "unknown")] {
        let mut wire = host();
        if waits_ms != 0 || gap_ns != 0 {
            let mut step = |at: i64, is_client: bool| {
                wire.at = at - 1_000_000;
                if is_client {
                    let (seq, ack, flags) = if at == 0 { (9, 0, SYN) } else { (10, 50, ACK) };
                    wire.client(seq, ack, flags, b"");
                } else {
                    wire.server(49, 10, SYN | ACK, b"");
                }
            };
            let (there, back) = match waits_ms {
                0 => (2 * gap_ns, gap_ns),
                ms if ms > 0 => (ms * 1_000_000, 1000),
                ms => (1000, -ms * 1_000_000),
            };
            step(0, true);
            step(there, false);
            step(there + back, true);
        }
        // Another connection, which was open before: like the others.
        ask(&mut wire, 50_000, 0, 50, "SELECT 1");
        assert_eq!(wire.rows[0].side, side, "{waits_ms} {gap_ns}");
    }
}
