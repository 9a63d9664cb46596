//! The bodies of requests and answers. Those of requests are received within limits of bytes and
//! time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue};

use crate::connections::Shared;
use crate::refusal::Refusal;

/// How much of an oversized body is read and discarded, in multiples of the largest, so that its
/// sender sees the answer instead of a connection reset.
const DRAINED: usize = 4;

/// An answer's body: at most one piece, and trailers for gRPC.
#[derive(Debug, Default)]
pub struct Piece {
    /// The piece.
    pub data: Option<Bytes>,
    /// The trailers.
    pub trailers: Option<HeaderMap>,
}

impl Body for Piece {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        Poll::Ready(data.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

/// Whether a body is compressed, by the header field.
///
/// # Errors
/// If it is compressed with anything other than gzip.
pub fn is_gzip(coding: Option<&HeaderValue>) -> Result<bool, Refusal> {
    match coding.map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"" | b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(_) => Err(Refusal::Coding),
    }
}

/// A received body; it counts as pending while it lives.
pub struct Received<'s> {
    /// The body.
    pub bytes: Vec<u8>,
    pending: &'s AtomicUsize,
}

impl Received<'_> {
    fn let_go(&mut self) {
        self.pending.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.bytes = Vec::new();
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Receives the body of `request`.
///
/// # Errors
/// If it is too large or too slow, breaks off, or too many others are pending.
pub async fn receive<'s>(request: Request<Incoming>, shared: &'s Shared) -> Result<Received<'s>, Refusal> {
    let most = shared.intake.bounds().body_bytes_max;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) && request.headers().contains_key(EXPECT) {
        // The client waits for permission to send (100-continue).
        return Err(Refusal::TooLarge);
    }
    let body = request.into_body();
    let in_time = tokio::time::timeout(shared.intake.bounds().patience, pieces(body, shared)).await;
    in_time.unwrap_or(Err(Refusal::TooSlow))
}

async fn pieces<'s>(mut body: Incoming, shared: &'s Shared) -> Result<Received<'s>, Refusal> {
    let bounds = shared.intake.bounds();
    let mut received = Received { bytes: Vec::new(), pending: &shared.pending };
    let mut refusal = None;
    let mut drained = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(piece) = frame.map_err(|_| Refusal::BrokeOff)?.into_data() else { continue };
        if refusal.is_none() {
            if received.bytes.len() + piece.len() > bounds.body_bytes_max {
                refusal = Some(Refusal::TooLarge);
            } else if shared.pending.load(Ordering::Relaxed) + piece.len() > bounds.pending_bytes_max {
                refusal = Some(Refusal::NoRoom);
            } else {
                received.bytes.extend_from_slice(&piece);
                shared.pending.fetch_add(piece.len(), Ordering::Relaxed);
                continue;
            }
            received.let_go();
        }
        drained += piece.len();
        if drained > DRAINED * bounds.body_bytes_max {
            break;
        }
    }
    refusal.map_or(Ok(received), Err)
}
