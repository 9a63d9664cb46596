//! HTTP as a client speaks it, without I/O: bytes go in, events come out, and request bytes are laid out ahead of
//! time. It knows no sockets, no clocks and no TLS, and keeps no bodies: what it counts, the caller may time.
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
    pub headers: &'a [(String, String)],
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

/// `User-Agent` of requests that don't bring their own.
pub const USER_AGENT: &str = concat!("holdup/", env!("CARGO_PKG_VERSION"));

/// Fields of a response head that are handed on; all others are dropped unseen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `Location`, to follow redirects.
    pub location: bool,
    /// `Set-Cookie`, to keep a session.
    pub set_cookie: bool,
}

impl Wanted {
    fn any(self) -> bool {
        self.location || self.set_cookie
    }
}
