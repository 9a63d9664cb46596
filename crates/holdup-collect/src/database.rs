//! What collectors of databases share: parsing the account in an address, the window of a read, and
//! the results of a sample's parts. It speaks no protocol.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Instant;

use holdup_protocol::database::Dialect;
use holdup_recording::metrics::MetricName;
use holdup_recording::rows::Sample;
use holdup_recording::{Labels, clock, files};

use crate::backoff::Backoffs;

/// An error of one of holdup's own statements.
pub(crate) trait Trouble: Display {
    /// Whether the connection is unusable. After a timeout the answer may still arrive, so the
    /// connection is out of step.
    fn is_of_connection(&self) -> bool;

    /// Whether the query itself may be the cause, and not only the connection.
    fn is_of_read(&self) -> bool;

    /// Whether nothing listens there.
    fn is_refused(&self) -> bool;

    /// A connection that is not attempted now, and why.
    fn not_tried(why: String) -> Self
    where
        Self: Sized;
}

/// Why a database has no answer. `Code` is what it numbers its errors with.
#[derive(Debug)]
pub(crate) enum Failure<Code> {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// The answer exceeds holdup's size limit.
    Large(String),
    /// Nothing listens there.
    Refused(String),
    /// The server rejected the login, or holdup will not log in this way.
    Login(String),
    /// The server's error, code and message.
    Server(Code, String),
}

/// What a database numbers its errors with.
pub(crate) trait ErrorCode {
    /// The error with this code, in the server's `words`.
    fn say(&self, words: &str) -> String;
}

impl<Code: ErrorCode> Trouble for Failure<Code> {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_) | Self::Large(_))
    }

    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    fn not_tried(why: String) -> Self {
        Self::Lost(why)
    }
}

impl<Code: ErrorCode> Display for Failure<Code> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Large(why) | Self::Refused(why) | Self::Login(why) => {
                f.write_str(why)
            }
            Self::Server(code, words) => f.write_str(&code.say(words)),
        }
    }
}

/// The results of the parts of one sample.
#[derive(Default)]
pub(crate) struct Reads {
    /// Error messages.
    pub failures: Vec<String>,
    /// Whether the connection is lost.
    pub lost: bool,
    /// Parts that failed lately and pause for a while; they outlive the sample.
    pub backoffs: Backoffs,
}

impl Reads {
    /// Starts a sample with the pauses of earlier ones.
    pub fn after(backoffs: Backoffs) -> Self {
        Self { backoffs, ..Self::default() }
    }

    /// Reads `part`, unless the connection is lost or the part failed lately: then it is a gap
    /// without a query.
    pub fn read<T, E: Trouble>(&mut self, part: &'static str, read: impl FnOnce() -> Result<T, E>) -> Option<T> {
        if !self.may(part) {
            return None;
        }
        let begun = Instant::now();
        let result = read();
        self.learn(part, begun, result.as_ref().err());
        self.note(part, result)
    }

    /// Whether `part` may be read; if it failed lately, it is recorded as a gap.
    pub fn may(&mut self, part: &'static str) -> bool {
        if self.lost {
            return false;
        }
        match self.backoffs.ask(part) {
            Ok(()) => true,
            Err(words) => {
                self.failures.push(format!("{part}: {words}"));
                false
            }
        }
    }

    /// Records that `part` was read, starting at `begun`.
    pub fn learn(&mut self, part: &'static str, begun: Instant, failure: Option<&impl Trouble>) {
        if failure.is_none_or(Trouble::is_of_read) {
            self.backoffs.note(part, begun.elapsed(), failure.map(ToString::to_string));
        }
    }

    /// The value of `result`; an error is noted as a failure of `part`.
    pub fn note<T>(&mut self, part: &str, result: Result<T, impl Trouble>) -> Option<T> {
        result
            .inspect_err(|failure| {
                self.lost |= failure.is_of_connection();
                self.failures.push(format!("{part}: {failure}"));
            })
            .ok()
    }
}

/// The window of one read.
pub(crate) struct ReadWindow<'a> {
    /// Name of the source.
    pub source: &'a str,
    /// Start, nanoseconds since 1970.
    pub begun_at: i64,
    /// End, nanoseconds since 1970.
    pub ended_at: i64,
}

impl<'a> ReadWindow<'a> {
    /// Starts a read of `source` now.
    pub fn begin(source: &'a str) -> Self {
        let now = clock::now_ns();
        Self { source, begun_at: now, ended_at: now }
    }

    /// Ends it now.
    pub fn end(&mut self) {
        self.ended_at = clock::now_ns();
    }

    /// Its length, nanoseconds.
    pub fn window_ns(&self) -> i64 {
        self.ended_at - self.begun_at
    }

    /// Its middle, nanoseconds since 1970.
    pub fn at(&self) -> i64 {
        self.begun_at + self.window_ns() / 2
    }

    /// A value read within this window.
    pub fn sample(&self, metric: impl MetricName, labels: Labels, value: f64) -> Sample {
        Sample {
            observed_at: self.at(),
            window_ns: self.window_ns(),
            source: self.source.to_owned(),
            metric: metric.name().to_owned(),
            labels,
            value,
        }
    }
}

/// A file of certificates. What is not a regular file is refused here; whether it is there at all shows
/// when it is needed.
pub(crate) fn certificates(parameter: &str, value: String) -> Result<PathBuf, String> {
    let path = PathBuf::from(&value);
    match files::open(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{parameter}={value}: {error}")),
        _ => Ok(path),
    }
}

/// Host and port of `place`, e.g. `db:3307`, `[::1]`; `default` if it names no port. The host is
/// not decoded.
///
/// # Errors
/// If the text after the colon is not a port. The error never repeats the input: it may be a
/// password.
pub(crate) fn host_and_port(place: &str, default: u16) -> Result<(&str, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), str::parse).ok().filter(|port| *port > 0);
    Ok((host, port.ok_or("the text after the host's colon is not a port number (is an `@` missing?)")?))
}

/// User and password of `account`, e.g. `me:s%40cret`.
///
/// # Errors
/// Those of [`decoded`].
pub(crate) fn user_and_password(account: &str) -> Result<(String, Option<String>), String> {
    match account.split_once(':') {
        Some((user, password)) => Ok((decoded(user)?, Some(decoded(password)?))),
        None => Ok((decoded(account)?, None)),
    }
}

/// The password in the environment variable `name`.
///
/// # Errors
/// If the variable is not set.
pub(crate) fn password_of_variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("the environment variable {name}, named by password_env, is not set: export it first"))
}

/// What the server said of a login that it refused, with where the password comes from.
pub(crate) fn refused_login(words: &dyn Display, user: &str, is_password_given: bool, dialect: Dialect) -> String {
    let variable = dialect.password_variable();
    if is_password_given {
        return format!("{words}. User {user} came with a password: check it in the address or in {variable}");
    }
    format!("{words}. User {user} came without a password: put it into the environment variable {variable}")
}

/// `text` with each `%XX` replaced by its byte.
///
/// # Errors
/// If a `%` is not followed by two hex digits, or the result is not UTF-8.
pub(crate) fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit =
            || bytes.next().and_then(|digit| char::from(digit).to_digit(16)).and_then(|digit| u8::try_from(digit).ok());
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => return Err("a `%` is not followed by two hex digits (write a literal % as %25)".to_owned()),
        }
    }
    String::from_utf8(out).map_err(|_| "its %XX sequences do not decode to UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_names_the_one_variable() {
        for (dialect, variable) in
            [(Dialect::Mysql, "HOLDUP_MYSQL_PASSWORD"), (Dialect::Postgres, "HOLDUP_POSTGRES_PASSWORD")]
        {
            let refused = |is_given| refused_login(&"refused", "me", is_given, dialect);
            assert_eq!(
                refused(false),
                format!("refused. User me came without a password: put it into the environment variable {variable}")
            );
            assert_eq!(
                refused(true),
                format!("refused. User me came with a password: check it in the address or in {variable}")
            );
        }
    }
}
