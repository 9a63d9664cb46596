//! How a request ended.

use std::io;

use crate::script::StepFailure;
use rustls::AlertDescription;

use crate::scenario::HttpVersion;

/// How a request ended. Its name is the value of the `outcome` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// A status below 400.
    Ok,
    /// A status of 400 or above.
    HttpStatus,
    /// No whole response before the deadline.
    Timeout,
    /// The deadline passed before a connection was free.
    NeverSent,
    /// The run was stopped while it was under way.
    Unfinished,
    /// The name of the target does not resolve (now).
    NameUnresolved,
    /// The connection was refused, or the target can't be reached.
    ConnectFailed,
    /// No local port was left for one more connection: a limit of the generator's machine.
    NoLocalPort,
    /// The target's certificate does not verify.
    TlsCertificate,
    /// TLS failed otherwise.
    TlsFailed,
    /// HTTP/2 was requested and the target does not support it.
    Http2Refused,
    /// The server closed before the response was whole.
    ConnectionClosed,
    /// The connection was reset or broke.
    ConnectionReset,
    /// The server reset this request's stream, or refused it (HTTP/2).
    StreamReset,
    /// The bytes are not an HTTP response.
    BadResponse,
    /// A response head without end.
    HeadTooLarge,
    /// A body above the limit.
    ResponseTooLarge,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A check of the response failed.
    CheckFailed,
    /// The value to capture is not in the response.
    CaptureMissed,
    /// The body should be JSON and is not.
    BadJson,
    /// A feeder had no row left: nothing was sent.
    FeederDry,
    /// A template could not be filled in: nothing was sent.
    TemplateFailed,
    /// The database refused the statement, or one of the transaction, which was rolled back.
    StatementFailed,
    /// The database refused the login: wrong password, too many connections, no such database.
    LoginFailed,
}

impl Outcome {
    /// All of them, in the order of their numbers.
    pub const ALL: [Outcome; 25] = [
        Outcome::Ok,
        Outcome::HttpStatus,
        Outcome::Timeout,
        Outcome::NeverSent,
        Outcome::Unfinished,
        Outcome::NameUnresolved,
        Outcome::ConnectFailed,
        Outcome::NoLocalPort,
        Outcome::TlsCertificate,
        Outcome::TlsFailed,
        Outcome::Http2Refused,
        Outcome::ConnectionClosed,
        Outcome::ConnectionReset,
        Outcome::StreamReset,
        Outcome::BadResponse,
        Outcome::HeadTooLarge,
        Outcome::ResponseTooLarge,
        Outcome::TooManyRedirects,
        Outcome::CheckFailed,
        Outcome::CaptureMissed,
        Outcome::BadJson,
        Outcome::FeederDry,
        Outcome::TemplateFailed,
        Outcome::StatementFailed,
        Outcome::LoginFailed,
    ];

    /// The outcome for a failed step of a session.
    pub fn from_step_failure(failed: StepFailure) -> Self {
        match failed {
            StepFailure::Check => Self::CheckFailed,
            StepFailure::CaptureMissed => Self::CaptureMissed,
            StepFailure::BadJson => Self::BadJson,
            StepFailure::FeederDry => Self::FeederDry,
            StepFailure::Template => Self::TemplateFailed,
        }
    }

    /// Whether its duration counts as a response time: the request succeeded, or had not ended when
    /// it was given up.
    pub fn is_latency(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Timeout | Outcome::NeverSent | Outcome::Unfinished)
    }

    /// Whether it counts as a failure. A request cut off by a stop is neither a success nor a
    /// failure.
    pub fn is_failure(self) -> bool {
        !matches!(self, Outcome::Ok | Outcome::Unfinished)
    }

    /// Whether the service answered in full, and the answer was a failure.
    pub fn is_answer(self) -> bool {
        use Outcome::{BadJson, CaptureMissed, CheckFailed, HttpStatus, StatementFailed, TooManyRedirects};
        matches!(self, HttpStatus | CheckFailed | CaptureMissed | BadJson | StatementFailed | TooManyRedirects)
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::HttpStatus => "http_status",
            Outcome::Timeout => "timeout",
            Outcome::NeverSent => "never_sent",
            Outcome::Unfinished => "unfinished",
            Outcome::NameUnresolved => "name_unresolved",
            Outcome::ConnectFailed => "connect_failed",
            Outcome::NoLocalPort => "no_local_port",
            Outcome::TlsCertificate => "tls_certificate",
            Outcome::TlsFailed => "tls_failed",
            Outcome::Http2Refused => "http2_refused",
            Outcome::ConnectionClosed => "connection_closed",
            Outcome::ConnectionReset => "connection_reset",
            Outcome::StreamReset => "stream_reset",
            Outcome::BadResponse => "bad_response",
            Outcome::HeadTooLarge => "head_too_large",
            Outcome::ResponseTooLarge => "response_too_large",
            Outcome::TooManyRedirects => "too_many_redirects",
            Outcome::CheckFailed => "check_failed",
            Outcome::CaptureMissed => "capture_missed",
            Outcome::BadJson => "bad_json",
            Outcome::FeederDry => "feeder_dry",
            Outcome::TemplateFailed => "template_failed",
            Outcome::StatementFailed => "statement_failed",
            Outcome::LoginFailed => "login_failed",
        }
    }

    /// The outcome for an HTTP status.
    pub fn from_status(status: u16) -> Self {
        if status < 400 { Outcome::Ok } else { Outcome::HttpStatus }
    }

    /// The outcome for an error on an open connection.
    pub fn from_io_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Outcome::ConnectionClosed,
            _ => Outcome::ConnectionReset,
        }
    }

    /// The outcome for an error while connecting.
    pub fn from_connect_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Outcome::NoLocalPort,
            _ => Outcome::ConnectFailed,
        }
    }

    /// The outcome for a TLS error where `version` was requested.
    pub fn from_tls_error(error: &rustls::Error, version: HttpVersion) -> Self {
        match error {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => Outcome::TlsCertificate,
            rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) if version == HttpVersion::Http2 => {
                Outcome::Http2Refused
            }
            _ => Outcome::TlsFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_distinct_and_in_order() {
        for (i, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, i);
            assert!(Outcome::ALL[..i].iter().all(|o| o.name() != outcome.name()));
        }
    }
}
