//! What apps say of themselves in OpenTelemetry's protocol (OTLP 1.x), as rows: traces -> `spans`, metrics -> `samples`.
//!
//! Bytes are walked, and what is not asked for is never built, so that memory is bounded by [`Bounds`] whatever comes in.
//! A [`Receiver`] speaks the protocol over the network (HTTP/1.1, HTTP/2 and gRPC on each of its ports); an [`Intake`] is
//! the same without one. It keeps no traces and derives nothing: which spans are of one request is found out when a
//! recording is read. Logs and profiles are refused.

#![forbid(unsafe_code)]

mod attributes;
mod bounds;
#[cfg(feature = "receiver")]
mod grpc;
#[cfg(feature = "receiver")]
mod http;
mod intake;
mod json;
mod messages;
mod metrics;
mod protobuf;
#[cfg(feature = "receiver")]
mod receiver;
mod refusal;
mod sampling;
mod span_names;
mod spans;
mod statement;
mod traces;

pub use bounds::Bounds;
pub use intake::{Intake, Lost, Taken};
#[cfg(feature = "receiver")]
pub use receiver::Receiver;
pub use refusal::Refusal;

/// What a body is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `ExportTraceServiceRequest`.
    Traces,
    /// `ExportMetricsServiceRequest`.
    Metrics,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol Buffers.
    Protobuf,
    /// JSON.
    Json,
}

/// Why a body is no message of the protocol, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
