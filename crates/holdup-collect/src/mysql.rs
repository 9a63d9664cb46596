//! MariaDB, MySQL and Percona Server: counters, settings, sessions with what they really do, the thread pool and
//! its queue, lock waits, statements with the server's own timing.
//!
//! It reads through `extra_port` where there is one, so that a full thread pool can't hold it up; in a read-only session,
//! with short limits, every statement marked and left out of what is recorded. It writes nothing and switches nothing on.

mod address;
mod history;
mod pool;
mod probe;
mod server;
mod sessions;
mod statements;
mod status;
mod versions;

use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Coverage, Labels, clock};

use self::address::Address;
use self::history::Executions;
use self::pool::Queued;
use self::probe::Parts;
use self::server::{Failure, Server};
use self::sessions::LockWaits;
use self::statements::Statements;
use crate::watch::Options;
use crate::{Collector, ProbeError, ReadError};

/// The collector for `mysql://user[:password]@host[:port][?extra_port=N&password_env=VAR&password_file=PATH&option_file=PATH]`.
///
/// # Errors
/// If the address is not understood, or a file or variable it names is not there.
pub fn make(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let address = Address::parse(address)?;
    Ok(Box::new(MySql {
        source: address.source(),
        address,
        partial: options.partial,
        server: None,
        parts: Parts::default(),
        statements: Statements::default(),
        executions: Executions::default(),
        uptime_s: None,
    }))
}

struct MySql {
    source: String,
    address: Address,
    partial: bool,
    /// Empty before the first connection and after a loss.
    server: Option<Server>,
    parts: Parts,
    statements: Statements,
    executions: Executions,
    uptime_s: Option<f64>,
}

impl Collector for MySql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let server = Server::connect(&self.address).map_err(|failure| self.unusable(failure))?;
        let found = probe::find(&server, &self.source).map_err(|failure| self.unusable(failure))?;
        if let Some((why, grant)) = found.missing
            && !self.partial
        {
            return Err(ProbeError::MissingGrant { source_name: self.source(), why, grant });
        }
        self.parts = found.parts;
        // Known from now on: if the thread pool is full after a loss, the way in is still open.
        if server.port != self.address.port {
            self.address.extra_port = Some(server.port);
        }
        self.server = Some(server);
        Ok(found.coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let server = self.connected()?;
        let mut parts = Reads::default();
        parts.note("settings", status::settings(&server, &self.source, batch));
        self.finish(server, parts)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let server = self.connected()?;
        let (parts, source) = (self.parts, self.source.as_str());
        let mut reads = Reads::default();
        // The queue and the sessions are read back to back: they are joined.
        let locks = if parts.locks {
            reads.note("lock waits", sessions::lock_waits(&server)).map(|(waits, failure)| {
                reads.note("lock holders", failure.map_or(Ok(()), Err));
                waits
            })
        } else {
            Some(LockWaits::default())
        };
        let queued = if parts.pool && !reads.lost {
            reads.note("thread pool queue", pool::queues(&server, source, batch))
        } else {
            Some(Queued::new())
        };
        // Without the one or the other a session's true state can't be told, and without the right to see others' it
        // would look as if nobody else was there: no row is better than a wrong one.
        if let Some((locks, queued)) = locks.zip(queued)
            && parts.sessions
            && !reads.lost
        {
            reads.note("sessions", sessions::sample(&server, source, &queued, &locks, batch));
        }
        if parts.pool && !reads.lost {
            reads.note("thread pool", pool::sample(&server, source, batch));
        }
        if !reads.lost {
            reads.note("status", status::sample(&server, source, &mut self.uptime_s, batch));
        }
        if let Some(history) = parts.history
            && !reads.lost
        {
            reads.note("statement history", self.executions.sample(&server, history, source, batch));
        }
        if parts.digests && !reads.lost {
            reads.note("statement digests", self.statements.digests(&server, source, batch));
        }
        self.finish(server, reads)
    }
}

impl MySql {
    /// The connection, made anew if it was lost. It is taken out, for [`finish`](Self::finish) to put back if it is still good.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.server.take() {
            return Ok(server);
        }
        let reconnect = || {
            let server = Server::connect(&self.address)?;
            let parts = probe::find(&server, &self.source)?.parts;
            Ok((server, parts))
        };
        let (server, parts) =
            reconnect().map_err(|failure: Failure| ReadError(format!("could not connect: {failure}")))?;
        // Settings may differ after a restart.
        self.parts = parts;
        self.statements.forget();
        self.executions.forget();
        Ok(server)
    }

    fn finish(&mut self, server: Server, reads: Reads) -> Result<(), ReadError> {
        if !reads.lost {
            self.server = Some(server);
        }
        if reads.failures.is_empty() { Ok(()) } else { Err(ReadError(reads.failures.join("; "))) }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        let source_name = self.source();
        if failure.is_login() {
            let why = format!(
                "{failure} (user {}, password {})",
                self.address.user,
                if self.address.password.0.is_some() { "given" } else { "not given" }
            );
            return ProbeError::Denied { source_name, why };
        }
        let way_out = match (&failure, self.address.extra_port) {
            (_, Some(port)) => format!(
                "; extra_port={port} was tried: is that the server's @@extra_port, and has it room (extra_max_connections)?"
            ),
            (Failure::Silent(_) | Failure::Server(1040, _), None) => {
                "; the thread pool may be full or all connections taken: give ?extra_port=N, the server's extra_port"
                    .to_owned()
            }
            (Failure::Lost(_), None) => "; does the server run, and is this its port?".to_owned(),
            (Failure::Server(..), None) => String::new(),
        };
        ProbeError::Unreachable { source_name, why: format!("{failure}{way_out}") }
    }
}

/// How the parts of one sample went.
#[derive(Default)]
struct Reads {
    failures: Vec<String>,
    /// The connection is of no use any more.
    lost: bool,
}

impl Reads {
    fn note<T>(&mut self, part: &str, result: Result<T, Failure>) -> Option<T> {
        result
            .inspect_err(|failure| {
                // What was to be answered may still arrive: a connection that fell silent is out of step.
                self.lost |= !matches!(failure, Failure::Server(..));
                self.failures.push(format!("{part}: {failure}"));
            })
            .ok()
    }
}

/// The window in which something was read.
struct Read<'a> {
    source: &'a str,
    begun_at: i64,
    ended_at: i64,
}

impl<'a> Read<'a> {
    fn begin(source: &'a str) -> Self {
        let now = clock::now_ns();
        Self { source, begun_at: now, ended_at: now }
    }

    fn end(&mut self) {
        self.ended_at = clock::now_ns();
    }

    fn window_ns(&self) -> i64 {
        self.ended_at - self.begun_at
    }

    fn at(&self) -> i64 {
        self.begun_at + self.window_ns() / 2
    }

    fn sample(&self, metric: &str, labels: Labels, value: f64) -> Sample {
        Sample {
            observed_at: self.at(),
            window_ns: self.window_ns(),
            source: self.source.to_owned(),
            metric: metric.to_owned(),
            labels,
            value,
        }
    }
}
