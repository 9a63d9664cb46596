//! OTLP/HTTP: one request with a body yields one answer. It reads bodies within limits of bytes and
//! time; the intake parses them. gRPC requests arrive here, too, and are answered in `grpc`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue, RETRY_AFTER,
};
use hyper::{Method, Request, Response, StatusCode, Version};

use crate::intake::Intake;
use crate::refusal::{RETRY_AFTER_SECONDS, Refusal};
use crate::{Encoding, Signal, grpc};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// How much of an oversized body is read and discarded, in multiples of the largest, so that its
/// sender sees the answer instead of a connection reset.
const DRAINED: usize = 4;

/// State shared by all connections.
#[derive(Debug)]
pub struct Shared {
    /// The destination of bodies.
    pub intake: Intake,
    /// Bytes of bodies being received.
    pub pending: AtomicUsize,
    /// Open connections.
    pub connections: AtomicUsize,
    /// Whether an answer has panicked. The runtime only ends that connection or call, without a
    /// report.
    pub has_panicked: AtomicBool,
}

/// Notes a panic of the answer that owns it.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_panicked.store(true, Ordering::Relaxed);
        }
    }
}

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

/// Answers one request.
pub async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Piece>, Infallible> {
    let _guard = Guard(Arc::clone(&shared));
    let content_type = content_type(request.headers());
    let is_grpc = content_type == "application/grpc" || content_type == "application/grpc+proto";
    if is_grpc && request.version() == Version::HTTP_2 {
        let taken = grpc::take(request, &shared).await;
        if let Err(refusal) = taken {
            shared.intake.count_refused(refusal);
        }
        return Ok(grpc::response(taken));
    }
    let encoding = match content_type.as_str() {
        PROTOBUF => Some(Encoding::Protobuf),
        JSON => Some(Encoding::Json),
        _ => None,
    };
    let answer = take(request, encoding, &shared).await;
    // A client whose format is unknown gets JSON, which people can read.
    let encoding = encoding.unwrap_or(Encoding::Json);
    Ok(match answer {
        Ok(body) => response(200, encoding, body),
        Err(refusal) => {
            shared.intake.count_refused(refusal);
            let mut response = response(refusal.http_status(), encoding, refusal.body(encoding));
            let fields = response.headers_mut();
            match refusal {
                Refusal::NoRoom => drop(fields.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS))),
                Refusal::NotPost => drop(fields.insert(ALLOW, HeaderValue::from_static("POST"))),
                Refusal::Coding => drop(fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))),
                _ => {}
            }
            response
        }
    })
}

async fn take(request: Request<Incoming>, encoding: Option<Encoding>, shared: &Shared) -> Result<Vec<u8>, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::NotPost);
    }
    let signal = match request.uri().path() {
        "/v1/traces" => Signal::Traces,
        "/v1/metrics" => Signal::Metrics,
        "/v1/logs" | "/v1development/profiles" => return Err(Refusal::OtherSignal),
        _ => return Err(Refusal::NoSuchPath),
    };
    let encoding = encoding.ok_or(Refusal::ContentType)?;
    let is_gzip = is_gzip(request.headers().get(CONTENT_ENCODING))?;
    let received = receive(request, shared).await?;
    let taken = shared.intake.take(signal, encoding, is_gzip, &received.bytes)?;
    Ok(taken.body(signal, encoding))
}

fn response(status: u16, encoding: Encoding, body: Vec<u8>) -> Response<Piece> {
    let mut response = Response::new(Piece { data: (!body.is_empty()).then(|| body.into()), trailers: None });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = if encoding == Encoding::Json { JSON } else { PROTOBUF };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The content type without parameters, in lower case.
fn content_type(fields: &HeaderMap) -> String {
    let value = fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;

    /// The runtime says nothing of it: the collector asks.
    #[test]
    fn an_answer_that_panics_is_known() {
        let shared = Arc::new(Shared {
            intake: Intake::new("otlp", Bounds::default()),
            pending: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            has_panicked: AtomicBool::new(false),
        });
        for panics in [false, true] {
            let guard = Guard(Arc::clone(&shared));
            let answer = std::thread::spawn(move || {
                let _guard = guard;
                assert!(!panics, "on purpose");
            });
            assert_eq!(answer.join().is_err(), panics);
            assert_eq!(shared.has_panicked.load(Ordering::Relaxed), panics);
        }
    }
}
