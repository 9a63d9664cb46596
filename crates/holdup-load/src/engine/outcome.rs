//! How a request ended.

use std::io;

use crate::script::StepFailure;
use rustls::AlertDescription;

use crate::scenario::HttpVersion;

/// The outcomes with their names, from one list.
macro_rules! outcomes {
    ($($(#[$doc:meta])* $outcome:ident = $name:literal,)*) => {
        /// How a request ended. Its name is the value of the `outcome` column.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Outcome {
            $($(#[$doc])* $outcome,)*
        }

        impl Outcome {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$outcome),*];

            /// Its name in the table.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$outcome => $name,)*
                }
            }
        }
    };
}

outcomes! {
    /// A status below 400.
    Ok = "ok",
    /// A status of 400 or above.
    HttpStatus = "http_status",
    /// No whole response before the deadline.
    Timeout = "timeout",
    /// The deadline passed before a connection was free.
    NeverSent = "never_sent",
    /// The run was stopped while it was under way.
    Unfinished = "unfinished",
    /// The name of the target does not resolve (now).
    NameUnresolved = "name_unresolved",
    /// The connection was refused, or the target can't be reached.
    ConnectFailed = "connect_failed",
    /// No local port was left for one more connection: a limit of the generator's machine.
    NoLocalPort = "no_local_port",
    /// The target's certificate does not verify.
    TlsCertificate = "tls_certificate",
    /// TLS failed otherwise.
    TlsFailed = "tls_failed",
    /// HTTP/2 was requested and the target does not support it.
    Http2Refused = "http2_refused",
    /// The server closed before the response was whole.
    ConnectionClosed = "connection_closed",
    /// The connection was reset or broke.
    ConnectionReset = "connection_reset",
    /// The server reset this request's stream, or refused it (HTTP/2).
    StreamReset = "stream_reset",
    /// The bytes are not an HTTP response.
    BadResponse = "bad_response",
    /// A response head without end.
    HeadTooLarge = "head_too_large",
    /// A body above the limit.
    ResponseTooLarge = "response_too_large",
    /// More redirects than allowed.
    TooManyRedirects = "too_many_redirects",
    /// A check of the response failed.
    CheckFailed = "check_failed",
    /// The value to capture is not in the response.
    CaptureMissed = "capture_missed",
    /// The body should be JSON and is not.
    BadJson = "bad_json",
    /// A feeder had no row left: nothing was sent.
    FeederDry = "feeder_dry",
    /// A template could not be filled in: nothing was sent.
    TemplateFailed = "template_failed",
    /// The database refused the statement, or one of the transaction, which was rolled back.
    StatementFailed = "statement_failed",
    /// The database refused the login: wrong password, too many connections, no such database.
    LoginFailed = "login_failed",
}

impl Outcome {
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
