//! Turns what apps send in OpenTelemetry's protocol (OTLP 1.x) into rows: traces become `spans`,
//! metrics `samples`.
//!
//! Bytes are walked, and unused data is never built, so that [`Bounds`] limit the memory whatever
//! arrives. A [`Receiver`] speaks the protocol over the network (HTTP/1.1, HTTP/2 and gRPC on each
//! of its ports); an [`Intake`] does the same without a network. It assembles no traces and derives
//! nothing: readers of a recording assign spans to requests. Logs and profiles are refused.

#![forbid(unsafe_code)]

mod attributes;
#[cfg(feature = "receiver")]
mod body;
mod bounds;
#[cfg(feature = "receiver")]
mod connections;
#[cfg(feature = "receiver")]
mod grpc;
#[cfg(feature = "receiver")]
mod http;
mod intake;
mod json;
mod message;
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
pub use intake::{BodyResult, Intake, RefusedBodies};
#[cfg(feature = "receiver")]
pub use receiver::Receiver;
pub use refusal::Refusal;

/// The content of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `ExportTraceServiceRequest`.
    Traces,
    /// `ExportMetricsServiceRequest`.
    Metrics,
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol Buffers.
    Protobuf,
    /// JSON.
    Json,
}

/// Why a body is not a message of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
