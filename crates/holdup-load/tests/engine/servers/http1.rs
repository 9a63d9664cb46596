//! The server's side of HTTP/1.1, as far as the tests need it.

use std::io::{Read, Write};

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// Header fields with lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// The head of the next request and nothing of its body; none if the client has gone.
pub fn read_head(stream: &mut impl Read) -> Option<Asked> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let fields = lines.filter_map(|line| line.split_once(": "));
    let headers: Vec<(String, String)> = fields.map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let body = length.map_or(0, |(_, value)| value.parse().expect("a length"));
    Some(Asked { method, path, headers, body })
}

/// The next request, whose body is read and dropped; none if the client has gone.
pub fn read(stream: &mut impl Read) -> Option<Asked> {
    let asked = read_head(stream)?;
    let mut left = asked.body;
    let mut buffer = vec![0; left.min(64 * 1024)];
    while left > 0 {
        let room = left.min(buffer.len());
        match stream.read(&mut buffer[..room]) {
            Ok(count) if count > 0 => left -= count,
            _ => return None,
        }
    }
    Some(asked)
}

/// Answers each request with what `answer` makes of it, until the client goes.
pub fn serve(mut stream: impl Read + Write, mut answer: impl FnMut(&Asked) -> Vec<u8>) {
    while let Some(asked) = read(&mut stream) {
        let response = answer(&asked);
        if stream.write_all(&response).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// Answers whatever arrives at once with `response`, after `delay()`, until the client goes.
pub fn answer(mut stream: impl Read + Write, response: &[u8], delay: impl Fn()) {
    let mut buffer = [0; 4_096];
    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
        delay();
        if stream.write_all(response).is_err() {
            return;
        }
    }
}
