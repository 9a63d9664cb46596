//! OTLP/gRPC: calls over HTTP/2, and how they end.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use holdup_otlp::Bounds;
use hyper::body::{Body, Frame};
use hyper::{HeaderMap, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::{counter, protobuf, receiver, request, small};

/// One piece, and then the end or, if it is half of a body, nothing more.
struct Piece(Option<Bytes>, bool);

impl Body for Piece {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.1 => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What a call ends with: status, details, and the message of the answer behind its five bytes.
type Ended = (Option<u64>, HeaderMap, Vec<u8>);

fn call(address: SocketAddr, path: &str, coding: Option<&str>, body: Vec<u8>, is_half: bool) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut request = Request::post(format!("http://{address}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(coding) = coding {
            request = request.header("grpc-encoding", coding);
        }
        let request = request.body(Piece(Some(body.into()), is_half)).expect("a request");
        let answer = tokio::time::timeout(Duration::from_secs(20), client.send_request(request)).await;
        let answer = answer.expect("in time").expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"application/grpc".parse().expect("a value"))
        );
        let mut said = answer.headers().clone();
        let mut message = Vec::new();
        let mut body = answer.into_body();
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            match frame.expect("a frame").into_data() {
                Ok(data) => message.extend(data),
                Err(frame) => said.extend(frame.into_trailers().expect("trailers")),
            }
        }
        (said.get("grpc-status").and_then(|status| status.to_str().ok()?.parse().ok()), said, message)
    })
}

fn framed(is_packed: bool, message: &[u8]) -> Vec<u8> {
    [&[u8::from(is_packed)][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

#[test]
fn a_call_is_answered_with_a_message_and_trailers() {
    let (receiver, address) = receiver(Bounds::default());
    let (status, _, message) = call(address, TRACES, None, framed(false, &protobuf()), false);
    assert_eq!((status, message), (Some(0), vec![0; 5]));
    let metrics = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
    assert_eq!(call(address, metrics, Some("gzip"), framed(false, b""), false).0, Some(0));
    // A span without an id.
    let body = request(Span::default()).encode_to_vec();
    let (status, _, message) = call(address, TRACES, None, framed(false, &body), false);
    let answer = ExportTraceServiceResponse::decode(&message[5..]).expect("an answer");
    let partial = answer.partial_success.expect("partial success");
    assert_eq!((status, partial.rejected_spans), (Some(0), 1));
    assert!(!partial.error_message.is_empty());
    assert_eq!(receiver.drain().spans.len(), 1);
}

#[test]
fn calls_that_are_refused() {
    let (receiver, address) = receiver(small());
    let logs = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    // Path, encoding, body, whether it stops half-way, status.
    type Case = (&'static str, Option<&'static str>, Vec<u8>, bool, u64);
    let cases: [Case; 8] = [
        (TRACES, None, framed(false, b"\xff"), false, 3),
        (TRACES, None, b"\0\0\0".to_vec(), false, 3),
        (TRACES, Some("gzip"), framed(true, b"no gzip"), false, 3),
        (TRACES, None, framed(false, &protobuf()), true, 4),
        (TRACES, None, framed(false, &[0; 20_000]), false, 8),
        (logs, None, framed(false, b""), false, 12),
        (TRACES, Some("snappy"), framed(true, b"x"), false, 12),
        (TRACES, None, framed(true, b"x"), false, 13),
    ];
    for (path, coding, body, is_half, expected) in cases {
        let (status, said, message) = call(address, path, coding, body, is_half);
        assert_eq!((status, message.len()), (Some(expected), 0), "{said:?}");
        assert!(!said["grpc-message"].is_empty());
        assert_eq!(said.get("grpc-status-details-bin"), None, "nothing of that passes by itself");
    }
    assert_eq!(counter(&receiver, "otlp_refused_bodies_total"), 8.0);
}

#[test]
fn without_room_a_client_is_told_when_to_try_again() {
    let (_receiver, address) = receiver(Bounds { queue_bytes_max: 1, ..Bounds::default() });
    assert_eq!(call(address, TRACES, None, framed(false, &protobuf()), false).0, Some(0));
    let (status, said, _) = call(address, TRACES, None, framed(false, &protobuf()), false);
    assert_eq!(status, Some(8));
    let details =
        base64::engine::general_purpose::STANDARD_NO_PAD.decode(&said["grpc-status-details-bin"]).expect("base64");
    let wanted = b"type.googleapis.com/google.rpc.RetryInfo";
    assert!(details.windows(wanted.len()).any(|window| window == wanted), "{details:?}");
}
