//! The messages that a receiver sends: the number of rejected items, why a body was refused, when
//! to try again. They are a few fields of OTLP's and gRPC's messages; `opentelemetry-proto`, which
//! has the former, would bring an SDK along.

/// `ExportTraceServiceResponse` and `ExportMetricsServiceResponse`, which differ by name only.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportResponse {
    /// Present if items were rejected.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess` and `ExportMetricsPartialSuccess`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PartialSuccess {
    /// Number of spans or data points.
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    /// The reason, in words.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// gRPC's status code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The error, in words.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Further details.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`: a message and its type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    /// Type of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message, encoded.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    /// Time after which the request may be sent again.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Duration>,
}

/// `google.protobuf.Duration`, in whole seconds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Duration {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
}
