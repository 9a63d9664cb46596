//! One probe: a new connection, a request, and the result. It follows kubelet's rules: status 200
//! to 399 is a success, certificates are not checked, and no proxy from the environment is used. A
//! redirect is a success and is not followed.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::http;
use crate::prometheus::address::Address as Url;

/// Bytes read of a body, the same as kubelet reads.
const BODY_BYTES_MAX: u64 = 10 << 10;

/// The target of a probe.
#[derive(Clone)]
pub(super) enum Target {
    /// A GET of this URL.
    Http(Url),
    /// Connecting to this host and port.
    Tcp(String),
}

/// Why a probe failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No complete answer in time.
    Timeout,
    /// No server listens there.
    Refused,
    /// The connection was closed before the answer.
    Reset,
    /// An answer with a failing status.
    Status(u16),
    /// The host name does not resolve.
    Dns,
    /// Anything else.
    Io,
}

/// A probe that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProbeFailure {
    /// The kind of failure.
    pub reason: Reason,
    /// The message, without the URL.
    pub text: String,
}

impl Reason {
    /// The value of the label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Status(_) => "status",
            Self::Dns => "dns",
            Self::Io => "io",
        }
    }
}

/// A repeatable probe.
pub(super) struct Check {
    place: Target,
    timeout: Duration,
    agent: ureq::Agent,
}

impl Check {
    /// A probe of `place` that waits `timeout` for a complete answer.
    pub fn new(place: &Target, timeout: Duration) -> Self {
        let unchecked = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = http::config(timeout, "*/*")
            .max_idle_connections(0)
            .tls_config(unchecked)
            .user_agent(concat!("holdup/", env!("CARGO_PKG_VERSION"), " probe"))
            .build()
            .into();
        Self { place: place.clone(), timeout, agent }
    }

    /// Probes once.
    pub fn once(&self) -> Result<(), ProbeFailure> {
        match &self.place {
            Target::Http(url) => self.get(url),
            Target::Tcp(place) => self.connect(place),
        }
    }

    fn get(&self, url: &Url) -> Result<(), ProbeFailure> {
        let mut request = self.agent.get(&url.url).header("Connection", "close");
        if let Some(authorization) = &url.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request.call().map_err(|e| self.failed(&e))?;
        let status = response.status().as_u16();
        // A body that does not arrive in time is a failure; a long one is not.
        match response.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec() {
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {}
            Err(error) => return Err(self.failed(&error)),
        }
        match status {
            200..=399 => Ok(()),
            _ => {
                Err(ProbeFailure { reason: Reason::Status(status), text: format!("it answered with status {status}") })
            }
        }
    }

    fn connect(&self, place: &str) -> Result<(), ProbeFailure> {
        let begun = Instant::now();
        let addresses = place.to_socket_addrs().map_err(|_| no_such_host())?;
        let mut last = no_such_host();
        for address in addresses {
            // `connect_timeout` rejects a zero timeout with an error of its own.
            let left = self.timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.no_answer());
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(_) => return Ok(()),
                Err(error) => last = self.failed_io(&error),
            }
        }
        Err(last)
    }

    fn no_answer(&self) -> ProbeFailure {
        ProbeFailure {
            reason: Reason::Timeout,
            text: format!("no complete answer within {} s", self.timeout.as_secs_f64()),
        }
    }

    fn failed(&self, error: &ureq::Error) -> ProbeFailure {
        let other = |text: String| ProbeFailure { reason: Reason::Io, text };
        match error {
            ureq::Error::Timeout(_) => self.no_answer(),
            ureq::Error::Io(error) => self.failed_io(error),
            ureq::Error::HostNotFound => no_such_host(),
            ureq::Error::ConnectionFailed => other("the connection failed".to_owned()),
            ureq::Error::Tls(why) => other(format!("TLS: {why}")),
            ureq::Error::Rustls(why) => other(format!("TLS: {why}")),
            ureq::Error::Protocol(why) => other(format!("the answer is not HTTP: {why}")),
            // Other errors may repeat the URL.
            _ => other("the request failed; is the URL right?".to_owned()),
        }
    }

    fn failed_io(&self, error: &std::io::Error) -> ProbeFailure {
        // A failed DNS lookup has neither an error kind nor a number.
        if error.raw_os_error().is_none() && error.to_string().starts_with("failed to lookup address") {
            return no_such_host();
        }
        let reason = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => return self.no_answer(),
            ErrorKind::ConnectionRefused => Reason::Refused,
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => Reason::Reset,
            _ => Reason::Io,
        };
        let text = match reason {
            Reason::Refused => "the connection was refused: no server listens there".to_owned(),
            Reason::Reset => "the connection was closed before the complete answer".to_owned(),
            _ => error.to_string(),
        };
        ProbeFailure { reason, text }
    }
}

fn no_such_host() -> ProbeFailure {
    ProbeFailure { reason: Reason::Dns, text: "the host name does not resolve".to_owned() }
}
