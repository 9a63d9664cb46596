//! OTLP/gRPC: the two unary methods `Export` over HTTP/2
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>). A call is a POST whose body
//! is one message after five bytes; its status is in trailers. Other features of gRPC are absent.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};

use crate::body::{Piece, is_gzip, receive};
use crate::connections::Shared;
use crate::refusal::Refusal;
use crate::{Encoding, Malformed, Signal};

/// Bytes before a message: a flag for compression, and the length.
const HEAD_BYTES: usize = 5;

/// Handles the message of a call; returns the message to answer with.
pub async fn take(request: Request<Incoming>, shared: &Shared) -> Result<Vec<u8>, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::NotPost);
    }
    let signal = match request.uri().path() {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Signal::Traces,
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
        path if [".logs.", ".profiles."].iter().any(|signal| path.contains(signal)) => {
            return Err(Refusal::OtherSignal);
        }
        _ => return Err(Refusal::NoSuchPath),
    };
    let is_gzip = is_gzip(request.headers().get("grpc-encoding"))?;
    let received = receive(request, shared).await?;
    let (is_packed, message) = message(&received.bytes, shared.intake.bounds().body_bytes_max)?;
    if is_packed && !is_gzip {
        return Err(Refusal::NoCoding);
    }
    let taken = shared.intake.take(signal, Encoding::Protobuf, is_packed, message)?;
    Ok(taken.body(signal, Encoding::Protobuf))
}

/// The one message of a unary call, and whether it is compressed.
fn message(body: &[u8], bytes_max: usize) -> Result<(bool, &[u8]), Refusal> {
    let Some(([packed, length @ ..], message)) = body.split_first_chunk::<HEAD_BYTES>() else {
        return Err(Malformed("the call contains no message").into());
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > bytes_max {
        return Err(Refusal::TooLarge);
    }
    if length != message.len() {
        return Err(Malformed("the message's length differs from its prefix").into());
    }
    match packed {
        0 => Ok((false, message)),
        1 => Ok((true, message)),
        _ => Err(Malformed("the message has an invalid compression flag").into()),
    }
}

/// The answer to a call: a message and trailers, or only the status.
pub fn response(taken: Result<Vec<u8>, Refusal>) -> Response<Piece> {
    let mut response = Response::new(Piece::default());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    match taken {
        Ok(message) => {
            let mut data = Vec::with_capacity(HEAD_BYTES + message.len());
            data.push(0);
            data.extend((message.len() as u32).to_be_bytes());
            data.extend(message);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            *response.body_mut() = Piece { data: Some(Bytes::from(data)), trailers: Some(trailers) };
        }
        Err(refusal) => {
            let fields = response.headers_mut();
            fields.insert("grpc-status", HeaderValue::from(refusal.grpc_status()));
            if let Ok(message) = HeaderValue::from_str(&refusal.to_string()) {
                fields.insert("grpc-message", message);
            }
            if refusal == Refusal::Coding {
                fields.insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip"));
            }
            if let Some(details) = refusal.details().and_then(|details| HeaderValue::from_str(&details).ok()) {
                fields.insert("grpc-status-details-bin", details);
            }
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_and_nothing_beside_it() {
        assert_eq!(message(b"\0\0\0\0\x02ab", 10), Ok((false, &b"ab"[..])));
        assert_eq!(message(b"\x01\0\0\0\0", 10), Ok((true, &b""[..])));
        for bad in [&b""[..], b"\0\0\0\0", b"\0\0\0\0\x02a", b"\0\0\0\0\x02abc", b"\x02\0\0\0\0"] {
            assert!(matches!(message(bad, 10), Err(Refusal::Malformed(_))), "{bad:?}");
        }
        assert_eq!(message(b"\0\xff\xff\xff\xffab", 10), Err(Refusal::TooLarge));
    }
}
