//! A receiver of Prometheus remote writes that takes them apart by itself: HTTP, snappy's block format by the crate that
//! does nothing else, protocol buffers by hand.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// The value that says that a series has ended.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Names and values.
pub type Labels = Vec<(String, String)>;

/// One request that had series.
#[derive(Clone, Debug)]
pub struct Write {
    pub authorization: String,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, Default)]
pub struct Series {
    pub labels: Labels,
    /// Value and milliseconds.
    pub samples: Vec<(f64, i64)>,
}

pub struct Receiver {
    pub address: SocketAddr,
    writes: Arc<Mutex<Vec<Write>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = Self {
            address: listener.local_addr().unwrap(),
            writes: Arc::default(),
            status: Arc::new(AtomicU16::new(204)),
        };
        let (writes, status) = (Arc::clone(&own.writes), Arc::clone(&own.status));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (writes, status) = (Arc::clone(&writes), Arc::clone(&status));
                std::thread::spawn(move || serve(stream.unwrap(), &writes, &status));
            }
        });
        own
    }

    /// Every request with series in it is answered with `status`.
    pub fn answer_after_the_first(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }
}

/// Answers the requests of a connection, one after the other.
fn serve(mut stream: TcpStream, writes: &Mutex<Vec<Write>>, status: &AtomicU16) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut bytes) {
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")));
            line.map(|line| line[name.len() + 2..].trim().to_owned()).unwrap_or_default()
        };
        assert!(head.starts_with("POST /api/v1/write HTTP/1.1"), "{head}");
        assert_eq!(
            (field("content-encoding"), field("content-type")),
            ("snappy".into(), "application/x-protobuf".into())
        );
        assert_eq!(field("x-prometheus-remote-write-version"), "0.1.0");
        let unpacked = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let series: Vec<Series> = fields(&unpacked)
            .into_iter()
            .map(|(number, value)| match (number, value) {
                (1, Field::Bytes(series)) => self::series(series),
                other => panic!("not in a WriteRequest: {other:?}"),
            })
            .collect();
        let mut answer = 204;
        if !series.is_empty() {
            answer = status.load(Ordering::Relaxed);
            writes.lock().unwrap().push(Write { authorization: field("authorization"), series });
        }
        let text = format!("HTTP/1.1 {answer} X\r\nContent-Length: 0\r\n\r\n");
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Head and body of the next request; `rest` is what was read beyond it.
fn request(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let mut buffer = [0; 4_096];
    loop {
        if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(rest[..end].to_vec()).unwrap();
            let length = head.to_ascii_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0);
            if rest.len() >= whole {
                let body = rest[end + 4..whole].to_vec();
                rest.drain(..whole);
                return Some((head, body));
            }
        }
        match stream.read(&mut buffer) {
            Ok(n @ 1..) => rest.extend(&buffer[..n]),
            _ => return None,
        }
    }
}

fn series(bytes: &[u8]) -> Series {
    let mut series = Series::default();
    for (number, value) in fields(bytes) {
        match (number, value) {
            (1, Field::Bytes(label)) => {
                let parts = fields(label);
                let [(1, Field::Bytes(name)), (2, Field::Bytes(value))] = parts[..] else { panic!("{parts:?}") };
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                series.labels.push((text(name), text(value)));
            }
            (2, Field::Bytes(sample)) => {
                let parts = fields(sample);
                let [(1, Field::Fixed(value)), (2, Field::Number(at_ms))] = parts[..] else { panic!("{parts:?}") };
                series.samples.push((f64::from_bits(value), at_ms as i64));
            }
            other => panic!("not in a TimeSeries: {other:?}"),
        }
    }
    series
}

#[derive(Debug)]
enum Field<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Numbers and values of a message's fields.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        panic!("a number without an end");
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Fixed(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = number(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}
