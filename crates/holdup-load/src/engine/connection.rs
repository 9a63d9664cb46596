//! One connection slot: a socket, the request on it, and the parser of its response. It moves bytes and
//! says what happened; when and why is the loop's business.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::http::{Progress, ResponseParser};

/// How a request ended. The text is the `outcome` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A status below 400.
    Ok,
    /// A status of 400 or above.
    HttpStatus,
    /// No whole response before the deadline.
    Timeout,
    /// The deadline passed before a connection was free.
    NeverSent,
    /// The connection could not be made.
    ConnectFailed,
    /// The server closed or reset before the response was whole.
    ConnectionClosed,
    /// Bytes that are no HTTP response.
    BadResponse,
    /// The run was stopped while it was under way.
    Unfinished,
}

impl Outcome {
    /// Whether its time is a response time: it ended well, or had not ended when it was given up.
    pub fn is_latency(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Timeout | Outcome::NeverSent | Outcome::Unfinished)
    }

    /// As it stands in the table.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::HttpStatus => "http_status",
            Outcome::Timeout => "timeout",
            Outcome::NeverSent => "never_sent",
            Outcome::ConnectFailed => "connect_failed",
            Outcome::ConnectionClosed => "connection_closed",
            Outcome::BadResponse => "bad_response",
            Outcome::Unfinished => "unfinished",
        }
    }
}

/// A request with a connection. Times are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Index of the operation.
    pub operation: usize,
    /// Index of the stretch of the schedule.
    pub stretch: usize,
    /// When it was due.
    pub due: i64,
    /// When a connection slot was free for it.
    pub ready: i64,
    /// Nanoseconds of connecting it waited for.
    pub connect: i64,
    /// When its first byte was given to the kernel.
    pub sent: Option<i64>,
    /// When the first byte of the response was read.
    pub first_byte: Option<i64>,
    /// Bytes of the response so far.
    pub bytes: i64,
}

/// What a socket's readiness led to.
pub enum Step {
    /// Not done yet.
    Waiting,
    /// Not all could be written: writability is of interest.
    Blocked,
    /// The request ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// Whether the connection can be used again.
        reusable: bool,
    },
}

/// A slot for a connection.
pub struct Connection {
    pub stream: Option<TcpStream>,
    /// Counts up with every socket and request in this slot, so that late news of an earlier one is recognised.
    pub generation: u32,
    pub connecting_since: Option<i64>,
    /// Since when it has been free for a request.
    pub free_since: i64,
    pub request: Option<InFlight>,
    pub parser: ResponseParser,
    written: usize,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            stream: None,
            generation: 0,
            connecting_since: None,
            free_since: i64::MIN,
            request: None,
            parser: ResponseParser::new(),
            written: 0,
        }
    }

    /// Gets ready for a new request.
    pub fn assign(&mut self, request: InFlight, head_request: bool) {
        self.generation = self.generation.wrapping_add(1);
        self.request = Some(request);
        self.written = 0;
        self.parser.begin(head_request);
    }

    /// Writes what is left of `bytes`. `now` is the time of the send if it is the first byte.
    pub fn write(&mut self, bytes: &[u8], now: i64) -> Step {
        let (Some(stream), Some(request)) = (&mut self.stream, &mut self.request) else { return Step::Waiting };
        request.sent.get_or_insert(now);
        while self.written < bytes.len() {
            match stream.write(&bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Step::Blocked,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // It may have answered before it closed; what it said is read when readable. Nothing more can be sent.
                Err(_) => return Step::Ended { outcome: Outcome::ConnectionClosed, reusable: false },
            }
        }
        Step::Waiting
    }

    /// Reads all that has arrived into `buffer` and hands it to the parser.
    pub fn read(&mut self, buffer: &mut [u8], clock: impl Fn() -> i64) -> Step {
        let Some(stream) = &mut self.stream else { return Step::Waiting };
        loop {
            let closed = Step::Ended { outcome: Outcome::ConnectionClosed, reusable: false };
            let count = match stream.read(buffer) {
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Step::Waiting,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return closed,
            };
            let Some(request) = &mut self.request else {
                // Nothing was asked: the server closed an idle connection, or talks out of turn.
                return closed;
            };
            if count == 0 {
                let regular = self.parser.closed();
                return if regular { Step::Ended { outcome: self.verdict(), reusable: false } } else { closed };
            }
            request.first_byte.get_or_insert_with(&clock);
            request.bytes += count as i64;
            match self.parser.feed(&buffer[..count]) {
                Ok(Progress::More) => {}
                // Bytes after the response belong to no request: the connection is out of step.
                Ok(Progress::Done { used }) => {
                    return Step::Ended { outcome: self.verdict(), reusable: self.parser.keep_alive && used == count };
                }
                Err(_) => return Step::Ended { outcome: Outcome::BadResponse, reusable: false },
            }
        }
    }

    fn verdict(&self) -> Outcome {
        if self.parser.status < 400 { Outcome::Ok } else { Outcome::HttpStatus }
    }
}
