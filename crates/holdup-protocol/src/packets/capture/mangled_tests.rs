//! Conversations whose packets are dropped, doubled, swapped, cut and changed: whatever comes of them, nothing panics, each row
//! is in order by itself, and nothing is kept at the end.

use holdup_mongodb::Writer;

use super::*;
use crate::packets::packet::Link;
use crate::packets::packet::tests::ip_packet;

/// Marsaglia's xorshift: the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

fn message(number: u8, content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes()[..3], &[number], content].concat()
}

fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u32 + 4).to_be_bytes(), content].concat()
}

fn mysql() -> Vec<(bool, Vec<u8>)> {
    let greeting: &[u8] = b"\x0a8.0\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
    let login = [&0x0000_0201_u32.to_le_bytes()[..], &[0; 28], b"me\0secret\0"].concat();
    let (ok, eof, column): (&[u8], &[u8], &[u8]) = (b"\0\0\0\x02\0\0\0", b"\xfe\0\0\x02\0", b"\x03def\0\0\0\x01a\0");
    let rows = [(1, &b"\x01"[..]), (2, column), (3, eof), (4, b"\x011"), (5, eof)];
    let rows: Vec<u8> = rows.iter().flat_map(|(number, content)| message(*number, content)).collect();
    let execute = message(0, b"\x17\x05\0\0\0\0\x01\0\0\0");
    vec![
        (false, message(0, greeting)),
        (true, message(1, &login)),
        (false, message(2, ok)),
        (true, message(0, b"\x03SELECT a FROM t WHERE b = 'x'")),
        (false, rows),
        (true, [message(0, b"\x16DELETE FROM t WHERE a = 5"), execute.clone()].concat()),
        (false, message(1, b"\0\x05\0\0\0\0\0\0\0\0\0\0")),
        (false, message(1, ok)),
        (true, [message(0, b"\x19\x05\0\0\0"), execute].concat()),
        (false, message(1, b"\xff\xdb\x04#HY000unknown")),
        (true, message(0, b"\x01")),
    ]
}

fn postgres() -> Vec<(bool, Vec<u8>)> {
    let startup = [&17_u32.to_be_bytes()[..], &196_608_u32.to_be_bytes(), b"user\0me\0\0"].concat();
    let all = |parts: &[(u8, &[u8])]| parts.iter().flat_map(|(kind, content)| tagged(*kind, content)).collect();
    let [ready, done]: [(u8, &[u8]); 2] = [(b'Z', b"I"), (b'C', b"SELECT 1\0")];
    let run: [(u8, &[u8]); 2] = [(b'B', b"\0s\0"), (b'E', b"\0\0\0\0\0")];
    vec![
        (true, startup),
        (false, all(&[(b'R', b"\0\0\0\0"), (b'K', b"\0\0\x01\x07abcd"), ready])),
        (true, all(&[(b'Q', b"SELECT 'x'; SELECT 2\0")])),
        (false, all(&[(b'T', b""), (b'D', b""), done, ready])),
        (true, all(&[(b'P', b"s\0SELECT $1 + 7\0\0\0"), run[0], run[1], run[0], run[1], (b'S', b"")])),
        (false, all(&[(b'1', b""), (b'2', b""), (b'D', b"x"), done])),
        (false, all(&[(b'2', b""), (b'E', b"SERROR\0C42P01\0Mno\0\0"), ready])),
        (true, all(&[(b'X', b"")])),
    ]
}

fn mongodb() -> Vec<(bool, Vec<u8>)> {
    let message = |number: i32, answers: i32, flags: u32, body: Writer| {
        let rest = [&flags.to_le_bytes()[..], &[0], &body.finish()].concat();
        [&[rest.len() as i32 + 16, number, answers, 2013].map(i32::to_le_bytes).concat()[..], &rest].concat()
    };
    let find = |number| message(number, 0, 0, Writer::new().text("find", "t").text("$db", "d"));
    let ok = |number, answers, flags| message(number, answers, flags, Writer::new().double("ok", 1.0));
    vec![
        (true, message(1, 0, 0, Writer::new().int("hello", 1).text("$db", "admin"))),
        (false, message(9, 1, 0, Writer::new().int("connectionId", 7).double("ok", 1.0))),
        (true, find(2)),
        (false, [ok(10, 2, 2), ok(11, 10, 0)].concat()),
        (true, [message(3, 0, 2, Writer::new().text("insert", "t")), find(4)].concat()),
        (false, ok(12, 4, 0)),
        (true, find(5)),
        (false, message(13, 5, 0, Writer::new().double("ok", 0.0).int("code", 59))),
    ]
}

/// Packets of all conversations, one after the other from each, from the handshake to the end.
fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut lines = [(3306, mysql()), (5432, postgres()), (27_017, mongodb())]
        .map(|(port, steps)| (port, steps.into_iter(), [11_u32, 51]));
    for (port, ..) in &lines {
        let (client, server) = ((1, 40_000), (2, *port));
        all.push(ip_packet(false, client, server, 10, 0, 0x02, b""));
        all.push(ip_packet(false, server, client, 50, 11, 0x12, b""));
        all.push(ip_packet(false, client, server, 11, 51, 0x10, b""));
    }
    loop {
        let before = all.len();
        for (port, steps, [sent, received]) in &mut lines {
            let Some((is_client, bytes)) = steps.next() else { continue };
            let (client, server) = ((1, 40_000), (2, *port));
            if is_client {
                all.push(ip_packet(false, client, server, *sent, *received, 0x18, &bytes));
                *sent += bytes.len() as u32;
            } else {
                all.push(ip_packet(false, server, client, *received, *sent, 0x18, &bytes));
                *received += bytes.len() as u32;
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

#[test]
fn mangled_conversations() {
    let whole = packets();
    let mut seen = HashMap::<String, usize>::new();
    for seed in 1..=4000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let rarely = 2 + dice.below(30);
        let mut packets = Vec::new();
        for packet in &whole {
            let copies = if dice.one_in(rarely) { dice.below(3) } else { 1 };
            packets.extend(std::iter::repeat_n(packet.clone(), copies));
            if dice.one_in(rarely) && packets.len() > 1 {
                let last = packets.len() - 1;
                packets.swap(last, last - 1);
            }
        }
        let mut capture =
            Capture::new(Options { guess: true, connections_max: 1 + dice.below(4), ..Options::default() });
        let (mut rows, mut at) = (Vec::new(), 0);
        for mut bytes in packets {
            let length = bytes.len();
            if dice.one_in(rarely) {
                bytes.truncate(dice.below(length));
            }
            while !bytes.is_empty() && dice.one_in(rarely) {
                let place = dice.below(bytes.len());
                bytes[place] = dice.below(256) as u8;
            }
            at += 1_000_000;
            capture.packet(&Packet { at, link: Link::Ip, bytes: &bytes, length }, &mut |row| rows.push(row));
            capture.quiet(at, &mut |row| rows.push(row));
        }
        capture.finish(at, &mut |row| rows.push(row));
        assert!(capture.connections.is_empty() && capture.memory == 0, "{seed}");
        assert_eq!(capture.totals().exchanges, rows.len() as u64, "{seed}");
        for row in &rows {
            let ends_in_order = row.request_at <= row.request_end_at && row.request_at <= row.done_at;
            let answer_in_order = row.first_byte_at.is_none_or(|first| row.request_at <= first && first <= row.done_at);
            assert!(ends_in_order && answer_in_order && row.done_at <= at, "{seed}: {row:?}");
            *seen.entry(format!("{} {}", row.protocol, row.outcome)).or_default() += 1;
        }
    }
    // The mangling leaves enough to be worth the name, of all.
    let kinds = ["mysql ok", "mysql lost", "postgresql ok", "postgresql lost", "mysql unfinished"];
    for kind in kinds.into_iter().chain(["mongodb ok", "mongodb lost", "mongodb error"]) {
        assert!(seen.get(kind).is_some_and(|count| *count > 50), "{kind}: {seen:?}");
    }
}
