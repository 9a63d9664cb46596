//! MariaDB, MySQL and Percona Server: counters, settings, sessions with their true state, the
//! thread pool and its queue, lock waits, and statements with the server's own timing.
//!
//! It uses `extra_port` if there is one, so that a full thread pool cannot block it. Its session is
//! read-only with short limits, and each of its statements is marked and excluded from the
//! recording. It writes nothing and switches nothing on.

pub(crate) mod address;
mod capture;
mod catalog;
mod execution;
pub(crate) mod failure;
mod gate;
mod history;
mod holders;
mod innodb;
mod plans;
mod pool;
mod probe;
pub mod processes;
mod recorded;
mod release;
mod replication;
mod server;
mod sessions;
mod slow_log;
mod statements;
mod status;
mod versions;

use holdup_protocol::database::Dialect;
use holdup_recording::{Batch, Coverage};

use self::address::Address;
use self::capture::Capture;
use self::failure::Failure;
use self::history::Executions;
use self::innodb::Backlog;
use self::plans::Plans;
use self::pool::Queued;
use self::probe::Parts;
use self::replication::Replication;
use self::server::{OwnDigests, Server};
pub(crate) use self::server::{ask, log_in};
use self::sessions::{LockWaits, Texts};
use self::slow_log::SlowLog;
use self::statements::Statements;
use crate::backoff::Backoffs;
use crate::connections::Connections;
use crate::database::{ReadWindow, Reads, refused_login};
use crate::options::Options;
use crate::slow::SlowRequests;
use crate::{Collector, ProbeError, ReadError};

pub use self::catalog::Catalog;

/// The collector for `mysql://user[:password]@host[:port][?extra_port=N&password_env=VAR&password_file=PATH&option_file=PATH&log=PATH&plans=explain]`.
///
/// # Errors
/// If the address is not understood, or if a file or variable that it names does not exist.
pub fn make(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    Ok(Box::new(MySql::from_address(address, options)?))
}

impl MySql {
    fn from_address(address: &str, options: &Options) -> Result<Self, ProbeError> {
        let address = Address::parse(address)?;
        Ok(Self {
            source: address.source(),
            address,
            partial: options.partial,
            server: None,
            parts: Parts::default(),
            statements: Statements::default(),
            executions: Executions::default(),
            uptime: None,
            backlog: Backlog::default(),
            replication: Replication::default(),
            slow: options.slow.clone(),
            capture: None,
            own: OwnDigests::default(),
            connections: Connections::default(),
            backoffs: Backoffs::default(),
            slow_log: None,
            plans: Plans::default(),
        })
    }
}

struct MySql {
    source: String,
    address: Address,
    partial: bool,
    /// None before the first connection and after a loss.
    server: Option<Server>,
    parts: Parts,
    statements: Statements,
    executions: Executions,
    uptime: Option<status::Uptime>,
    backlog: Backlog,
    replication: Replication,
    slow: Option<SlowRequests>,
    /// Waits for slow requests, once sampling has started.
    capture: Option<Capture>,
    /// The statements of holdup's own connections.
    own: OwnDigests,
    /// The number of connections, and when the next attempt is due.
    connections: Connections,
    /// Parts that failed lately.
    backoffs: Backoffs,
    /// Followed while the server says that it is in use.
    slow_log: Option<SlowLog>,
    plans: Plans,
}

impl Collector for MySql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let server = Server::connect_sharing(&self.address, &self.own, &self.connections)
            .map_err(|failure| self.unusable(failure))?;
        let found = probe::find(&server, &self.address, &self.source).map_err(|failure| self.unusable(failure))?;
        if let Some((why, grant)) = found.missing
            && !self.partial
        {
            return Err(ProbeError::MissingGrant { source_name: self.source(), why, grant });
        }
        self.parts = found.parts;
        // Remembered, so that after a loss the extra port still works while the thread pool is
        // full.
        if server.port != self.address.port {
            self.address.extra_port = Some(server.port);
        }
        self.server = Some(server);
        // Its present content is older than the recording.
        let _ = self.logged(true, &mut Batch::default());
        Ok(found.coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let log = self.logged(true, batch);
        let server = self.connected().map_err(|failure| with(failure, log.as_deref()))?;
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
        reads.failures.extend(log);
        reads.read("settings", || status::settings(&server, &self.source, batch));
        // Executions are also read at the end: a postponed read happens now.
        if let Some(history) = self.parts.history {
            reads.read("statement history", || self.executions.sample(&server, history, true, &self.source, batch));
        }
        self.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log can be read even while the server refuses connections.
        let log = self.logged(false, batch);
        let server = self.connected().map_err(|failure| with(failure, log.as_deref()))?;
        let (parts, source) = (self.parts, self.source.as_str());
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
        reads.failures.extend(log);
        let texts = read_sessions(&server, source, parts, &mut reads, batch);
        if parts.pool {
            reads.read("thread pool", || pool::sample(&server, source, batch));
        }
        if let Some(status) = reads.read("status", || status::sample(&server, source, &mut self.uptime, batch)) {
            reads.read("InnoDB", || self.backlog.sample(&server, source, &status, parts.process, batch));
        }
        if parts.replication {
            reads.read("replication", || self.replication.sample(&server, source, batch));
        }
        if let Some(history) = parts.history {
            reads.read("statement history", || self.executions.sample(&server, history, false, source, batch));
        }
        if parts.digests {
            reads.read("statement digests", || self.statements.digests(&server, source, batch));
        }
        if parts.plans {
            let (wish, history) = (self.address.plans, parts.history.is_some());
            reads.read("plans", || self.plans.sample(&server, wish, texts.as_ref(), history, source, batch));
        }
        if let Some(trouble) = self.captured(batch) {
            reads.failures.push(trouble);
        }
        self.finish(server, reads)
    }

    fn has_panicked(&mut self) -> bool {
        self.capture.as_mut().is_some_and(Capture::has_panicked)
    }
}

impl MySql {
    /// Takes out the connection, reconnecting if it was lost; [`finish`](Self::finish) puts it back
    /// if it still works.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.server.take() {
            return Ok(server);
        }
        let reconnect = || {
            let server = Server::connect_sharing(&self.address, &self.own, &self.connections)?;
            let found = probe::find(&server, &self.address, &self.source)
                .inspect_err(|failure| self.connections.lost(failure.to_string()))?;
            Ok((server, found.parts))
        };
        let (server, parts) =
            reconnect().map_err(|failure: Failure| ReadError(format!("cannot connect: {failure}")))?;
        // Settings may have changed with a restart.
        self.parts = parts;
        self.statements.forget();
        self.executions.forget();
        self.plans.forget();
        Ok(server)
    }

    /// Reads the new entries of the slow query log, if it is in use; returns an error message.
    fn logged(&mut self, at_once: bool, batch: &mut Batch) -> Option<String> {
        let Some((form, path)) = self.parts.slow_log.zip(self.address.log.as_ref()) else {
            self.slow_log = None;
            return None;
        };
        let log = self.slow_log.get_or_insert_with(|| SlowLog::new(path));
        log.sample(form, at_once, &self.source, batch).err().map(|error| format!("slow log: {error}"))
    }

    /// Adds the captured statements of slow requests; starts the capture if it is wanted and
    /// possible. Returns why it is not.
    fn captured(&mut self, batch: &mut Batch) -> Option<String> {
        if let Some(capture) = &self.capture {
            batch.append(capture.take());
            return None;
        }
        let (slow, places) = self.slow.as_ref().zip(self.parts.places)?;
        let started = Capture::start(
            (&self.address, &self.source),
            slow,
            places,
            &self.executions.recorded,
            (&self.own, &self.connections),
        );
        match started {
            Ok(capture) => {
                self.capture = Some(capture);
                None
            }
            Err(error) => Some(format!("slow requests: {error}")),
        }
    }

    fn finish(&mut self, server: Server, reads: Reads) -> Result<(), ReadError> {
        self.server = self.connections.keep(server, &reads);
        self.backoffs = reads.backoffs;
        if reads.failures.is_empty() { Ok(()) } else { Err(ReadError(reads.failures.join("; "))) }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        let source_name = self.source();
        if let Failure::Login(why) = failure {
            return ProbeError::Denied { source_name, why };
        }
        if failure.is_login() {
            let is_given = self.address.password.0.is_some();
            let why = refused_login(&failure, &self.address.user, is_given, Dialect::Mysql);
            return ProbeError::Denied { source_name, why };
        }
        let way_out = match (&failure, self.address.extra_port) {
            (_, Some(port)) => format!(
                "; extra_port={port} was tried: does it equal the server's @@extra_port, and is a connection free (extra_max_connections)?"
            ),
            (Failure::Silent(_) | Failure::Server(1040, _), None) => {
                "; the thread pool or all connections may be in use: add ?extra_port=N with the server's extra_port"
                    .to_owned()
            }
            (Failure::Lost(_) | Failure::Refused(_) | Failure::Large(_), None) => {
                "; is the server running, and is this its port?".to_owned()
            }
            (Failure::Server(..) | Failure::Login(_), None) => String::new(),
        };
        ProbeError::Unreachable { source_name, why: format!("{failure}{way_out}") }
    }
}

/// Adds the other error to `failure`.
fn with(failure: ReadError, other: Option<&str>) -> ReadError {
    other.map_or_else(|| ReadError(failure.to_string()), |other| ReadError(format!("{failure}; {other}")))
}

/// All sessions with their true state, and the thread pool's queue. Returns the sessions'
/// statements with their literals; none if they could not be read.
fn read_sessions(server: &Server, source: &str, parts: Parts, reads: &mut Reads, batch: &mut Batch) -> Option<Texts> {
    // The queue and the sessions are joined, so they are read back to back.
    let locks = if parts.locks { sessions::lock_waits(server, reads) } else { Some(LockWaits::default()) };
    let queued = if parts.pool {
        reads.read("thread pool queue", || pool::queues(server, source, batch))
    } else {
        Some(Queued::new())
    };
    // Without locks or queue a session's true state is unknown. Without the right to see other
    // sessions, the server would seem to have none: no row is better than a wrong one.
    let (locks, queued) = locks.zip(queued).filter(|_| parts.sessions)?;
    sessions::sample(server, source, (&queued, &locks, parts.holders), reads, batch)
}
