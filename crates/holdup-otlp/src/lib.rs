//! What apps say of themselves in OpenTelemetry's protocol (OTLP 1.x), as rows: traces -> `spans`, metrics -> `samples`.
//!
//! Bytes are walked, and what is not asked for is never built, so that memory is bounded by [`Bounds`] whatever comes in.
//! A [`Receiver`] speaks the protocol over the network (HTTP/1.1, HTTP/2 and gRPC on each of its ports); [`take_in`] is
//! the same without one. It keeps no traces and derives nothing: which spans are of one request is found out when a
//! recording is read. Logs and profiles are refused.

pub mod json;
pub mod protobuf;

/// Why a body is no message of the protocol, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
