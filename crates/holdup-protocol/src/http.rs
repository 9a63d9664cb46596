//! HTTP as a client speaks it, without I/O: bytes go in, events come out, and request bytes are laid out ahead of
//! time. It knows no sockets, no clocks and no TLS: what it counts, the caller may time. Heads and bodies are dropped
//! unless they are [`Wanted`]; it doesn't decompress them.
//!
//! It is the hot path of a load generator, so that nothing is allocated per request once a connection is in its
//! stride, and whatever a server sends, memory is bounded.

pub mod http1;
pub mod http2;

/// What is asked for, in the form both versions of the protocol are laid out from. Nothing in it may hold a line
/// break: the caller checks what its users write.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, ...
    pub method: &'a str,
    /// `http` or `https`; HTTP/2 says it to the server.
    pub scheme: &'a str,
    /// Host, with the port unless it is the scheme's own.
    pub authority: &'a str,
    /// Path and query, from the `/` on.
    pub path: &'a str,
    /// Further header fields, in order.
    pub headers: &'a [(&'a str, &'a str)],
    /// Bytes of the body, if there is one.
    pub body: Option<&'a [u8]>,
}

impl Request<'_> {
    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
    }

    /// The length to declare: methods that are expected to carry a body say so if there is none.
    fn declared_length(&self) -> Option<usize> {
        match self.body {
            Some(body) => Some(body.len()),
            None if matches!(self.method, "GET" | "HEAD" | "DELETE" | "OPTIONS" | "TRACE" | "CONNECT") => None,
            None => Some(0),
        }
    }
}

/// A number's decimal digits, without an allocation.
struct Decimal {
    text: [u8; 20],
    from: usize,
}

impl Decimal {
    fn new(number: usize) -> Self {
        let mut decimal = Self { text: [b'0'; 20], from: 20 };
        let mut left = number as u64;
        loop {
            decimal.from -= 1;
            decimal.text[decimal.from] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return decimal;
            }
        }
    }

    fn digits(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

/// `User-Agent` of requests that don't bring their own.
pub const USER_AGENT: &str = concat!("holdup/", env!("CARGO_PKG_VERSION"));

/// What of a response is looked at; all else is counted and dropped unseen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `Location`, to follow redirects.
    pub location: bool,
    /// `Set-Cookie`, to keep a session.
    pub set_cookie: bool,
    /// `Server-Timing`: what the server says of its own time. Of HTTP/1 so many bytes are kept as
    /// [`http1::MAX_TIMING_BYTES`] says.
    pub server_timing: bool,
    /// Every header field. HTTP/1 keeps the head's bytes, HTTP/2 hands each field on.
    pub head: bool,
    /// So many bytes of the body proper are kept from its beginning on, without the sizes and line ends of chunks.
    /// HTTP/2 keeps none whatever is asked for: there the bytes are handed on as they come.
    pub body_bytes: u32,
}

impl Wanted {
    /// Whether fields are to be picked out of a head as it is read.
    #[inline]
    fn picks(self) -> bool {
        self.location || self.set_cookie
    }

    /// Whether bytes of a response are kept as they are.
    #[inline]
    fn keeps(self) -> bool {
        self.head || self.body_bytes > 0
    }
}
