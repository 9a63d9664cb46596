//! HTTP/1.1 on a blocking socket, as much as a small service needs: requests with keep-alive and
//! pipelining, responses with a length. Heads and bodies have a maximum size.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use hyper::StatusCode;

/// Longest request head, bytes: 8 KiB, as nginx allows for its first header buffers.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Most header fields in a head.
const FIELDS_MAX: usize = 64;

/// Longest request body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A request, read to its end.
#[derive(Debug)]
pub struct Request {
    /// Its method, verbatim.
    pub method: String,
    /// Its path, before any `?`.
    pub path: String,
    /// Its query, after the `?`; empty without one.
    pub query: String,
    /// Its header fields, in order.
    pub fields: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
    /// Whether the client wants to keep the connection open.
    pub keep_alive: bool,
    /// When its first byte had arrived.
    pub begun: Instant,
}

impl Request {
    /// The value of its first field with that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Why no request was read.
#[derive(Debug)]
pub enum NoRequest {
    /// The client has closed, or the connection broke.
    Closed,
    /// The request cannot be answered: the status for it, and when its first byte had arrived.
    Refused(StatusCode, Instant),
}

/// A client's connection, and the bytes read ahead from it.
pub struct Wire {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Wire {
    /// Wraps an accepted connection.
    pub fn new(stream: TcpStream) -> Self {
        // A response is one write: without this the last segment could wait for the client's delayed ACK.
        let _ = stream.set_nodelay(true);
        Self { stream, ahead: Vec::with_capacity(1024) }
    }

    /// Waits for the next request and reads all of it.
    pub fn read(&mut self) -> Result<Request, NoRequest> {
        let mut begun = None;
        loop {
            if !self.ahead.is_empty() {
                let begun = *begun.get_or_insert_with(Instant::now);
                if let Some((mut request, head_bytes, body_bytes)) = parse(&self.ahead, begun)? {
                    self.ahead.drain(..head_bytes);
                    while self.ahead.len() < body_bytes {
                        self.more()?;
                    }
                    request.body = self.ahead.drain(..body_bytes).collect();
                    return Ok(request);
                }
                if self.ahead.len() >= HEAD_BYTES_MAX {
                    return Err(NoRequest::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, begun));
                }
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Result<(), NoRequest> {
        let mut bytes = [0; 2048];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(NoRequest::Closed),
                Ok(n) => {
                    self.ahead.extend_from_slice(&bytes[..n]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(NoRequest::Closed),
            }
        }
    }

    /// Writes a whole response. `fields` are further lines of its head, each with its line end.
    pub fn write(
        &mut self,
        status: StatusCode,
        content_type: &str,
        fields: &str,
        body: &str,
        keep_alive: bool,
    ) -> std::io::Result<()> {
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: {connection}\r\n{fields}\r\n{body}",
            body.len()
        );
        self.stream.write_all(response.as_bytes())
    }

    /// Closes so that the last response arrives. A socket closed with unread bytes resets the
    /// connection, and the client may lose what it has not read yet.
    pub fn close(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(200)));
        let mut left: usize = 256 * 1024;
        let mut bytes = [0; 4096];
        while left > 0 {
            match self.stream.read(&mut bytes) {
                Ok(n) if n > 0 => left = left.saturating_sub(n),
                _ => return,
            }
        }
    }
}

/// The request at the start of `bytes`, without its body yet, and the bytes of its head and of its
/// body; `None` while its head is incomplete.
fn parse(bytes: &[u8], begun: Instant) -> Result<Option<(Request, usize, usize)>, NoRequest> {
    let refuse = |status| NoRequest::Refused(status, begun);
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(n)) if n > HEAD_BYTES_MAX => {
            return Err(refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        Ok(httparse::Status::Complete(n)) => n,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)),
        Err(_) => return Err(refuse(StatusCode::BAD_REQUEST)),
    };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // HTTP/1.1 keeps the connection open by default; HTTP/1.0 closes it by default.
    let mut keep_alive = head.version == Some(1);
    let mut body_bytes = 0;
    let mut given = Vec::with_capacity(head.headers.len());
    for field in head.headers.iter() {
        let value = std::str::from_utf8(field.value).map_err(|_| refuse(StatusCode::BAD_REQUEST))?.trim();
        given.push((field.name.to_owned(), value.to_owned()));
        if field.name.eq_ignore_ascii_case("connection") {
            for option in value.split(',').map(str::trim) {
                if option.eq_ignore_ascii_case("close") {
                    keep_alive = false;
                } else if option.eq_ignore_ascii_case("keep-alive") {
                    keep_alive = true;
                }
            }
        } else if field.name.eq_ignore_ascii_case("content-length") {
            if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
                return Err(refuse(StatusCode::BAD_REQUEST));
            }
            body_bytes = value.parse().unwrap_or(usize::MAX);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(refuse(StatusCode::NOT_IMPLEMENTED));
        }
    }
    if body_bytes > BODY_BYTES_MAX {
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        fields: given,
        body: Vec::new(),
        keep_alive,
        begun,
    };
    Ok(Some((request, head_bytes, body_bytes)))
}
