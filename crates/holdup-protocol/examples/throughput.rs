//! What reading packets costs on one core: a capture file of as many exchanges as wanted is made in pieces in memory, and each
//! piece is read as `holdup import` reads it. Only the reading is timed, in CPU time of
//! this thread.
//!
//!     cargo run --release -p holdup-protocol --example throughput -- 1000000

use std::time::Duration;

use holdup_protocol::packets::file::Reader;
use holdup_protocol::packets::{Capture, Options, Protocol};

const CONNECTIONS: usize = 200;
/// Exchanges that are made, and read, at once.
const AT_ONCE: usize = 10_000;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// One connection: what each side has sent so far.
#[derive(Clone, Default)]
struct Line {
    sent: u32,
    received: u32,
}

struct File {
    bytes: Vec<u8>,
    at_us: u64,
    lines: Vec<Line>,
    is_postgres: bool,
}

impl File {
    fn head() -> Vec<u8> {
        let mut bytes = 0xa1b2_c3d4_u32.to_ne_bytes().to_vec();
        bytes.extend([2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
        bytes.extend([0, 0, 65_535, 1].iter().flat_map(|number: &u32| number.to_ne_bytes()));
        bytes
    }

    fn packet(&mut self, line: usize, is_client: bool, payload: &[u8]) {
        self.at_us += 7;
        let server_port: u16 = if self.is_postgres { 5432 } else { 3306 };
        let Line { sent, received } = self.lines[line].clone();
        let client_port = 20_000 + line as u16;
        let (from, to, ports, seq, ack) = if is_client {
            (CLIENT, SERVER, [client_port, server_port], sent, received)
        } else {
            (SERVER, CLIENT, [server_port, client_port], received, sent)
        };
        let length = 54 + payload.len() as u32;
        let when = [1_700_000_000 + (self.at_us / 1_000_000) as u32, (self.at_us % 1_000_000) as u32, length, length];
        self.bytes.extend(when.iter().flat_map(|number| number.to_ne_bytes()));
        self.bytes.extend([0; 12]);
        self.bytes.extend([0x08, 0, 0x45, 0]);
        self.bytes.extend((length as u16 - 14).to_be_bytes());
        self.bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        self.bytes.extend([from, to].concat());
        self.bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        self.bytes.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        self.bytes.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        self.bytes.extend(payload);
        let line = &mut self.lines[line];
        let side = if is_client { &mut line.sent } else { &mut line.received };
        *side = side.wrapping_add(payload.len() as u32);
    }

    /// A statement with its trace id, three rows of an answer, and the client's acknowledgement of it.
    fn exchange(&mut self, number: usize) {
        let line = number % CONNECTIONS;
        let text = format!(
            "/*traceparent='00-{number:032x}-00000000000000ff-01'*/ SELECT id, name, price FROM products{} WHERE id = {number} AND shop = 'north'",
            number % 50
        );
        let (request, response) =
            if self.is_postgres { (simple_query(&text), postgres_rows()) } else { (query(&text), mysql_rows()) };
        self.packet(line, true, &request);
        self.packet(line, false, &response);
        self.packet(line, true, b"");
    }
}

fn query(text: &str) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes()[..3], &[0, 3], text.as_bytes()].concat()
}

fn mysql_rows() -> Vec<u8> {
    let eof: &[u8] = b"\xfe\0\0\x02\0";
    let column: &[u8] =
        b"\x03def\x04shop\x08products\x08products\x04name\x04name\x0c\x2d\0\xff\0\0\0\xfd\x01\x10\0\0\0";
    let row: &[u8] = b"\x0612345\x07\x0cA nice thing\x0519.99";
    let messages = [b"\x03", column, column, column, eof, row, row, row, eof];
    let numbered = messages.iter().enumerate();
    numbered.flat_map(|(n, content)| [&[content.len() as u8, 0, 0, n as u8 + 1], *content].concat()).collect()
}

fn simple_query(text: &str) -> Vec<u8> {
    tagged(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u32 + 4).to_be_bytes(), content].concat()
}

fn postgres_rows() -> Vec<u8> {
    let row = tagged(b'D', b"\0\x03\0\0\0\x0512345\0\0\0\x0cA nice thing\0\0\0\x0519.99");
    let description = tagged(b'T', &[&b"\0\x03"[..], &[7; 69]].concat());
    [description, row.clone(), row.clone(), row, tagged(b'C', b"SELECT 3\0"), tagged(b'Z', b"I")].concat()
}

/// Memory of this process, MiB.
fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * 4096.0 / f64::from(1 << 20)
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() {
    let wanted = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000_usize);
    for protocol in [Protocol::Mysql, Protocol::Postgres] {
        let ports = vec![(3306, Protocol::Mysql), (5432, Protocol::Postgres)];
        let mut capture = Capture::new(Options { ports, ..Options::default() });
        let (mut reader, mut rows, mut ok) = (Reader::new(), 0_usize, 0_usize);
        let lines = vec![Line { sent: 1, received: 1 }; CONNECTIONS];
        let is_postgres = protocol == Protocol::Postgres;
        let mut file = File { bytes: File::head(), at_us: 0, lines, is_postgres };
        let (mut took, mut bytes, mut made) = (Duration::ZERO, 0, 0);
        let mut first_mib = None;
        while made < wanted {
            let count = AT_ONCE.min(wanted - made);
            // A trace id is not zero.
            (made + 1..=made + count).for_each(|number| file.exchange(number));
            made += count;
            bytes += file.bytes.len();
            let begun = cpu_time();
            let mut out = |row: holdup_recording::rows::Exchange| {
                rows += 1;
                ok += usize::from(row.outcome == "ok" && row.trace_id.is_some());
            };
            let fed = reader.feed(&file.bytes, &mut |packet| capture.packet(packet, &mut out));
            took += cpu_time() - begun;
            assert!(fed.is_ok(), "{fed:?}");
            file.bytes.clear();
            first_mib.get_or_insert_with(resident_mib);
        }
        assert_eq!((rows, ok), (wanted, wanted), "each is read");
        let (seconds, megabytes) = (took.as_secs_f64(), bytes as f64 / 1e6);
        println!(
            "{}: {wanted} exchanges, {megabytes:.0} MB in {seconds:.2} s of CPU: {:.0} exchanges/s, {:.0} MB/s; {:.1} MiB of memory after the first {AT_ONCE}, {:.1} MiB at the end",
            protocol.name(),
            wanted as f64 / seconds,
            megabytes / seconds,
            first_mib.unwrap_or_default(),
            resident_mib(),
        );
    }
}
