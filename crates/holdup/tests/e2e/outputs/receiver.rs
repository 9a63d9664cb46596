//! A receiver of Prometheus remote writes that takes them apart by itself: HTTP, snappy's block format by the crate that
//! does nothing else, protocol buffers by prost with messages declared here, apart from those that are sent.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use prost::Message as _;

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

#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

impl From<TimeSeries> for Series {
    fn from(series: TimeSeries) -> Self {
        Self {
            labels: series.labels.into_iter().map(|label| (label.name, label.value)).collect(),
            samples: series.samples.into_iter().map(|sample| (sample.value, sample.timestamp)).collect(),
        }
    }
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
        let request = WriteRequest::decode(unpacked.as_slice()).unwrap();
        // A field that is declared nowhere here would be lost.
        assert_eq!(request.encoded_len(), unpacked.len(), "more than a WriteRequest has");
        let series: Vec<Series> = request.timeseries.into_iter().map(Series::from).collect();
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
