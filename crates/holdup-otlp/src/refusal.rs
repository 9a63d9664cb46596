//! Why a body is refused, and how the protocol says so: an HTTP or gRPC status, and
//! `google.rpc.Status`. Only temporary refusals may be retried; OTLP clients recognize them by 429
//! with `Retry-After`, and by RESOURCE_EXHAUSTED with `RetryInfo`
//! (<https://opentelemetry.io/docs/specs/otlp/>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message as _;

use crate::messages::{Any, Duration, RetryInfo, Status};
use crate::{Encoding, Malformed};

/// Seconds after which a client may try again.
pub const RETRY_AFTER_SECONDS: i64 = 1;

/// The type of the message that tells a client when to try again.
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// The reasons for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is not a message of the protocol.
    #[error("malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The body broke off.
    #[error("the body broke off")]
    BrokeOff,
    /// The body as sent is too large.
    #[error("the body is larger than this receiver accepts; send smaller batches")]
    TooLarge,
    /// The decompressed body is too large.
    #[error("the decompressed body is larger than this receiver accepts; send smaller batches")]
    TooLargeUnpacked,
    /// It is marked as gzip and is not.
    #[error("the body is marked as gzip, but is not gzip")]
    NotGzip,
    /// Neither protobuf nor JSON.
    #[error("the content type must be application/x-protobuf or application/json, over HTTP/2 also application/grpc")]
    ContentType,
    /// Compressed in an unsupported way.
    #[error("the compression is not supported; use gzip or none")]
    Coding,
    /// It arrived too slowly.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// Earlier data must be recorded first.
    #[error("too much data is waiting to be recorded; send it again later")]
    NoRoom,
    /// Unknown path.
    #[error(
        "unknown path; send traces to /v1/traces and metrics to /v1/metrics, or use their services' Export methods"
    )]
    NoSuchPath,
    /// A signal that is not recorded.
    #[error("logs and profiles are not accepted; disable them with OTEL_LOGS_EXPORTER=none")]
    OtherSignal,
    /// The method is not POST.
    #[error("the method is not supported; use POST")]
    NotPost,
    /// A gRPC message is compressed, but its encoding is not named.
    #[error("a message is compressed, but grpc-encoding does not say how")]
    NoCoding,
}

impl Refusal {
    /// The HTTP status.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Malformed(_) | Self::BrokeOff | Self::NotGzip | Self::NoCoding => 400,
            Self::NoSuchPath | Self::OtherSignal => 404,
            Self::NotPost => 405,
            Self::TooSlow => 408,
            Self::TooLarge | Self::TooLargeUnpacked => 413,
            Self::ContentType | Self::Coding => 415,
            Self::NoRoom => 429,
        }
    }

    /// The gRPC status (<https://grpc.io/docs/guides/status-codes/>).
    pub fn grpc_status(self) -> i32 {
        match self {
            Self::Malformed(_) | Self::BrokeOff | Self::NotGzip | Self::ContentType => 3,
            Self::TooSlow => 4,
            Self::TooLarge | Self::TooLargeUnpacked | Self::NoRoom => 8,
            Self::NoSuchPath | Self::OtherSignal | Self::NotPost | Self::Coding => 12,
            Self::NoCoding => 13,
        }
    }

    /// Whether the same body may be accepted later.
    pub fn may_be_sent_again(self) -> bool {
        self == Self::NoRoom
    }

    /// Whether it may have cost spans or points.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::OtherSignal | Self::NotPost)
    }

    /// `google.rpc.Status`, as the body of an answer.
    pub fn body(self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Protobuf => self.status().encode_to_vec(),
            // None of these messages contains characters that JSON would escape.
            Encoding::Json => format!("{{\"code\":{},\"message\":\"{self}\"}}", self.grpc_status()).into_bytes(),
        }
    }

    /// The same for gRPC's trailer `grpc-status-details-bin`, if it adds to the other trailers:
    /// when to try again.
    pub fn details(self) -> Option<String> {
        if !self.may_be_sent_again() {
            return None;
        }
        let retry_delay = Some(Duration { seconds: RETRY_AFTER_SECONDS });
        let retry = Any { type_url: RETRY_INFO.to_owned(), value: RetryInfo { retry_delay }.encode_to_vec() };
        let status = Status { details: vec![retry], ..self.status() };
        Some(STANDARD_NO_PAD.encode(status.encode_to_vec()))
    }

    fn status(self) -> Status {
        Status { code: self.grpc_status(), message: self.to_string(), details: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_well_formed_in_both_encodings() {
        let refusal = Refusal::Malformed(Malformed("a number is cut off"));
        let json: serde_json::Value = serde_json::from_slice(&refusal.body(Encoding::Json)).unwrap();
        assert_eq!(json, serde_json::json!({"code": 3, "message": "malformed: a number is cut off"}));
        assert_eq!(refusal.body(Encoding::Protobuf), b"\x08\x03\x12\x1emalformed: a number is cut off");
        assert_eq!(refusal.details(), None);
    }

    #[test]
    fn only_want_of_room_passes() {
        let details = Refusal::NoRoom.details().map(|details| STANDARD_NO_PAD.decode(details).unwrap()).unwrap();
        let status = Status::decode(details.as_slice()).unwrap();
        let [any] = status.details.as_slice() else { panic!("{status:?}") };
        assert_eq!((status.code, any.type_url.as_str()), (8, RETRY_INFO));
        let retry = RetryInfo::decode(any.value.as_slice()).unwrap();
        assert_eq!(retry.retry_delay, Some(Duration { seconds: RETRY_AFTER_SECONDS }));
        assert!(!Refusal::TooLarge.may_be_sent_again());
        let all = [Refusal::NoRoom, Refusal::TooLarge, Refusal::Coding, Refusal::NoSuchPath, Refusal::OtherSignal];
        assert!(all.iter().all(|refusal| {
            refusal.to_string().bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\' | b'%'))
        }));
    }
}
