//! The client side of HTTP, without I/O: bytes go in, events come out, and requests are encoded
//! beforehand. It knows no sockets, clocks or TLS; timing is up to the caller. Heads and bodies are
//! dropped unless they are [`WantedParts`]; it does not decompress them.
//!
//! This is the hot path of a load generator: once a connection is warm it allocates nothing per
//! request, and whatever a server sends, memory is bounded.

pub mod http1;
pub mod http2;

/// A request, from which both versions of the protocol are encoded. Nothing in it may contain a
/// line break: the caller checks user input.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, ...
    pub method: &'a str,
    /// `http` or `https`; HTTP/2 sends it to the server.
    pub scheme: &'a str,
    /// Host, with the port unless it is the scheme's default.
    pub authority: &'a str,
    /// Path and query, starting with `/`.
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

    /// The length to declare: methods that usually carry a body declare an empty one, too.
    fn declared_length(&self) -> Option<usize> {
        match self.body {
            Some(body) => Some(body.len()),
            None if matches!(self.method, "GET" | "HEAD" | "DELETE" | "OPTIONS" | "TRACE" | "CONNECT") => None,
            None => Some(0),
        }
    }
}

/// `User-Agent` of requests that do not set it.
pub const USER_AGENT: &str = concat!("holdup/", env!("CARGO_PKG_VERSION"));

/// Parts of a response that are kept; everything else is counted and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedParts {
    /// `Location`, to follow redirects.
    pub location: bool,
    /// `Set-Cookie`, to keep a session.
    pub set_cookie: bool,
    /// `Server-Timing`: the time that the server reports. With HTTP/1 at most
    /// [`http1::MAX_TIMING_BYTES`] are kept.
    pub server_timing: bool,
    /// Every header field. HTTP/1 keeps the head's bytes, HTTP/2 passes each field on.
    pub head: bool,
    /// Keep this many bytes from the start of the body, without the sizes and line ends of chunks.
    /// HTTP/2 ignores it and keeps none: the bytes are passed on as they come.
    pub body_bytes: u32,
}

impl WantedParts {
    /// Whether fields are picked out of a head as it is read.
    #[inline]
    fn picks(self) -> bool {
        self.location || self.set_cookie
    }

    /// Whether bytes of a response are kept unchanged.
    #[inline]
    fn keeps(self) -> bool {
        self.head || self.body_bytes > 0
    }
}
