//! What collectors of databases have in common: the account in an address, the window of a read, how the parts of a sample went. It
//! speaks no protocol.

use std::fmt::Display;
use std::time::Instant;

use holdup_recording::metrics::MetricName;
use holdup_recording::rows::Sample;
use holdup_recording::{Labels, clock};

use crate::backoff::Backoffs;

/// What can go wrong with a statement of ours.
pub(crate) trait Trouble: Display {
    /// Whether the connection is of no use any more. What was to be answered may still arrive: one that fell silent is out of step.
    fn is_of_connection(&self) -> bool;

    /// Whether what was read may be the cause, and not only the connection.
    fn is_of_read(&self) -> bool;
}

/// How the parts of one sample went.
#[derive(Default)]
pub(crate) struct Reads {
    /// What went wrong, in words.
    pub failures: Vec<String>,
    /// The connection is of no use any more.
    pub lost: bool,
    /// What failed lately and is left alone for a while; it outlives the sample.
    pub backoffs: Backoffs,
}

impl Reads {
    /// Those of a sample after others, of which `backoffs` tell.
    pub fn after(backoffs: Backoffs) -> Self {
        Self { backoffs, ..Self::default() }
    }

    /// Reads `part`, unless the connection is lost, or it failed lately: then it is a gap without being asked for.
    pub fn read<T, E: Trouble>(&mut self, part: &'static str, read: impl FnOnce() -> Result<T, E>) -> Option<T> {
        if !self.may(part) {
            return None;
        }
        let begun = Instant::now();
        let result = read();
        self.learn(part, begun, result.as_ref().err());
        self.note(part, result)
    }

    /// Whether `part` may be read; if it failed lately it is a gap.
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

    /// `part` was read, and the read began at `begun`.
    pub fn learn(&mut self, part: &'static str, begun: Instant, failure: Option<&impl Trouble>) {
        if failure.is_none_or(Trouble::is_of_read) {
            self.backoffs.note(part, begun.elapsed(), failure.map(ToString::to_string));
        }
    }

    /// What `result` has, or a note of what went wrong with `part`.
    pub fn note<T>(&mut self, part: &str, result: Result<T, impl Trouble>) -> Option<T> {
        result
            .inspect_err(|failure| {
                self.lost |= failure.is_of_connection();
                self.failures.push(format!("{part}: {failure}"));
            })
            .ok()
    }
}

/// The window in which something was read.
pub(crate) struct Read<'a> {
    /// Whose it is.
    pub source: &'a str,
    /// From when on, nanoseconds since 1970.
    pub begun_at: i64,
    /// Until when.
    pub ended_at: i64,
}

impl<'a> Read<'a> {
    /// One of `source` begins now.
    pub fn begin(source: &'a str) -> Self {
        let now = clock::now_ns();
        Self { source, begun_at: now, ended_at: now }
    }

    /// It has been answered.
    pub fn end(&mut self) {
        self.ended_at = clock::now_ns();
    }

    /// How long it took, nanoseconds.
    pub fn window_ns(&self) -> i64 {
        self.ended_at - self.begun_at
    }

    /// Its middle, nanoseconds since 1970.
    pub fn at(&self) -> i64 {
        self.begun_at + self.window_ns() / 2
    }

    /// A value that was read in it.
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

/// Host and port of `place`, e.g. `db:3307`, `[::1]`; `default` where no port is named. The host is not decoded.
///
/// # Errors
/// If what stands behind the colon is no port. The words never repeat what was given: it may be a password.
pub(crate) fn host_and_port(place: &str, default: u16) -> Result<(&str, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), str::parse).ok().filter(|port| *port > 0);
    Ok((host, port.ok_or("behind the host's colon there is no port number (is a `@` missing?)")?))
}

/// User and password of `account`, e.g. `me:s%40cret`.
///
/// # Errors
/// As of [`decoded`].
pub(crate) fn user_and_password(account: &str) -> Result<(String, Option<String>), String> {
    match account.split_once(':') {
        Some((user, password)) => Ok((decoded(user)?, Some(decoded(password)?))),
        None => Ok((decoded(account)?, None)),
    }
}

/// The password in the environment's variable `name`.
///
/// # Errors
/// If there is none.
pub(crate) fn password_of_variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("the environment has no {name} (password_env)"))
}

/// `text` with `%XX` as the bytes they stand for.
///
/// # Errors
/// If a `%` is followed by something else, or it is no UTF-8 then.
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
            _ => return Err("a `%` is not followed by two hex digits (a plain one is %25)".to_owned()),
        }
    }
    String::from_utf8(out).map_err(|_| "what its %XX stand for is no UTF-8".to_owned())
}
