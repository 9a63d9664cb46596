//! The client side of HTTP/2 (RFC 9113), over any byte stream: TLS with `h2` negotiated by ALPN, or
//! clear text with prior knowledge. A [`Template`] is one operation's request, encoded once; a
//! [`Session`] is one connection. Server push, priorities and `CONNECT` are not supported. It keeps
//! nothing of responses: it passes on the wanted parts.

mod frame;
mod heads;
pub mod hpack;
mod outbox;
mod session;
mod streams;
mod template;
mod uploads;

use thiserror::Error;

use crate::http::WantedParts;
pub use session::Session;
pub use template::Template;

/// Most bytes of a response's head, packed or unpacked: bounds the memory of a connection.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Settings of a session.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Most streams open at once; the server may allow fewer.
    pub max_streams: u32,
    /// Fields of response heads that become events.
    pub wanted: WantedParts,
}

/// What the server sent. A `tag` is the caller's name of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The final response's status; interim ones are left out.
    Status {
        /// Its stream.
        tag: u32,
        /// From 200 on (or 101, which no server should send here).
        status: u16,
    },
    /// A wanted field of the head, after its status.
    Header {
        /// Its stream.
        tag: u32,
        /// In lower case; never a pseudo-field such as `:status`.
        name: &'a [u8],
        /// As sent.
        value: &'a [u8],
    },
    /// Bytes of the body as they came, without padding; never empty.
    Data {
        /// Its stream.
        tag: u32,
        /// The next bytes.
        bytes: &'a [u8],
    },
    /// The response is complete; the tag is free again.
    End {
        /// Its stream.
        tag: u32,
    },
    /// The stream ended without a complete response: the server reset it, or violated the rules for
    /// a stream and this side reset it. The tag is free again.
    Reset {
        /// Its stream.
        tag: u32,
        /// Error code of RFC 9113, section 7.
        code: u32,
    },
    /// The server accepts no new streams on this connection; it still answers those that are open
    /// up to the given one.
    GoAway {
        /// The last stream it answers.
        last_stream_id: u32,
        /// Error code of RFC 9113, section 7; 0 for a regular end.
        code: u32,
    },
    /// The server did not process this request and will not, after [`Event::GoAway`]: it may be
    /// sent again elsewhere. The tag is free again.
    Refused {
        /// Its stream.
        tag: u32,
    },
}

/// Why a connection cannot be used any more. Its remaining streams will not be answered.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The first bytes are not an HTTP/2 SETTINGS frame.
    #[error("not an HTTP/2 server")]
    NotHttp2,
    /// A frame larger than allowed, or of a size that its type does not have.
    #[error("an HTTP/2 frame of a wrong size")]
    FrameTooLarge,
    /// A head that can't be unpacked (RFC 7541).
    #[error("an HTTP/2 response head that can't be unpacked")]
    Compression,
    /// A window exceeds its limit.
    #[error("HTTP/2 flow control violated")]
    FlowControl,
    /// A violated rule of the protocol.
    #[error("HTTP/2 protocol error: {0}")]
    Protocol(&'static str),
    /// A head of more than [`MAX_HEAD_BYTES`].
    #[error("an HTTP/2 response head larger than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    /// A flood of frames without effect.
    #[error("a flood of HTTP/2 control frames")]
    TooManyControlFrames,
}
