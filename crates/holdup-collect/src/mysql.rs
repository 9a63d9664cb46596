//! MariaDB, MySQL and Percona Server: counters, settings, sessions with their true state, the
//! thread pool and its queue, lock waits, and statements with the server's own timing.
//!
//! It uses `extra_port` if there is one, so that a full thread pool cannot block it. Its session is
//! read-only with short limits, and each of its statements is marked and excluded from the
//! recording. It writes nothing and switches nothing on.

pub(crate) mod address;
mod capture;
mod catalog;
mod catalogs;
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
use self::catalogs::Catalogs;
use self::failure::Failure;
use self::history::Executions;
use self::innodb::Backlog;
use self::pool::Queued;
use self::probe::Parts;
use self::replication::Replication;
use self::server::{OwnDigests, Server};
pub(crate) use self::server::{ask, log_in};
use self::sessions::{LockWaits, Texts};
use self::slow_log::SlowLog;
use self::statements::Statements;
use crate::database::{Found, Link, Reads, cannot_connect, refused_login};
use crate::options::Options;
use crate::plans::pace::Pace;
use crate::reading::{Out, tell};
use crate::slow::SlowRequests;
use crate::{Collector, ProbeError, ReadError};

pub use self::catalog::Catalog;

/// The collector for `mysql://user[:password]@host[:port][?extra_port=N&password_env=VAR&password_file=PATH&option_file=PATH&log=PATH&plans=explain]`.
pub(crate) fn make(rest: &str, options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(MySql::new(Address::parse(rest)?, options)))
}

struct MySql {
    source: String,
    address: Address,
    partial: bool,
    link: Link<Server>,
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
    /// Followed while the server says that it is in use.
    slow_log: Option<SlowLog>,
    plans: Pace,
    catalogs: Catalogs,
}

impl Collector for MySql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
        let (server, found) = self.found().map_err(|failure| self.unusable(failure))?;
        let found = found.enough(&self.source, self.partial)?;
        self.use_parts(found.parts);
        // Remembered, so that after a loss the extra port still works while the thread pool is
        // full.
        if server.port != self.address.port {
            self.address.extra_port = Some(server.port);
        }
        self.link.server = Some(server);
        // Its present content is older than the recording.
        let _ = self.logged(true, &mut Batch::default());
        Ok(found.coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let log = self.logged(true, batch);
        let server = self.connected().map_err(|failure| with(failure, log.as_deref()))?;
        let mut reads = self.link.reads();
        reads.failures.extend(log);
        let mut out = Out::new(batch, &self.source);
        if let Some(found) = reads.read("settings", || status::settings(&server)) {
            tell(out.batch, out.source(), found);
        }
        reads.read("catalogs", || self.catalogs.with_settings(&server, &mut out));
        // Executions are also read at the end: a postponed read happens now.
        if let Some(history) = self.parts.history {
            reads.read("statement history", || self.executions.sample(&server, history, true, &mut out));
        }
        self.link.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log can be read even while the server refuses connections.
        let log = self.logged(false, batch);
        let server = self.connected().map_err(|failure| with(failure, log.as_deref()))?;
        let parts = self.parts;
        let mut reads = self.link.reads();
        reads.failures.extend(log);
        let mut out = Out::new(batch, &self.source);
        let texts = read_sessions(&server, parts, &mut reads, &mut out);
        if parts.pool {
            reads.read("thread pool", || pool::sample(&server, &mut out));
        }
        if let Some(status) = reads.read("status", || status::sample(&server, &mut self.uptime, &mut out)) {
            reads.read("InnoDB", || self.backlog.sample(&server, &status, parts.process, &mut out));
            reads.read("changes of catalogs", || self.catalogs.sample(&server, &status, &mut out));
        }
        if parts.replication {
            reads.read("replication", || self.replication.sample(&server, &mut out));
        }
        if let Some(history) = parts.history {
            reads.read("statement history", || self.executions.sample(&server, history, false, &mut out));
        }
        if parts.digests {
            reads.read("statement digests", || self.statements.digests(&server, &mut out));
        }
        if parts.plans {
            let (wish, history) = (self.address.plans, parts.history.is_some());
            reads.read("plans", || plans::sample(&server, &mut self.plans, wish, (texts.as_ref(), history), &mut out));
        }
        reads.failures.extend(self.captured(batch));
        self.link.finish(server, reads)
    }

    fn has_panicked(&mut self) -> bool {
        self.capture.as_mut().is_some_and(Capture::has_panicked)
    }
}

impl MySql {
    /// The server at `address`, without a connection yet.
    fn new(address: Address, options: &Options) -> Self {
        Self {
            source: address.source(),
            address,
            partial: options.partial,
            link: Link::default(),
            parts: Parts::default(),
            statements: Statements::default(),
            executions: Executions::default(),
            uptime: None,
            backlog: Backlog::default(),
            replication: Replication::default(),
            slow: options.slow.clone(),
            capture: None,
            own: OwnDigests::default(),
            slow_log: None,
            plans: Pace::default(),
            catalogs: Catalogs::default(),
        }
    }

    fn use_parts(&mut self, parts: Parts) {
        self.catalogs.allow(parts.catalogs);
        self.parts = parts;
    }

    fn found(&self) -> Result<(Server, Found<Parts>), Failure> {
        let connect = |connections: &_| Server::reach(&self.address, &self.own, connections);
        self.link.find(connect, |server| probe::find(server, &self.address, &self.source))
    }

    /// Takes out the connection, reconnecting if it was lost.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.link.server.take() {
            return Ok(server);
        }
        let (server, found) = self.found().map_err(cannot_connect)?;
        // Settings may have changed with a restart.
        self.use_parts(found.parts);
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
            (&self.own, &self.link.connections),
        );
        match started {
            Ok(capture) => {
                self.capture = Some(capture);
                None
            }
            Err(error) => Some(format!("slow requests: {error}")),
        }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        if let Failure::Login(why) = failure {
            return ProbeError::denied(&self.source, why);
        }
        if failure.is_login() {
            let is_given = !self.address.password.reveal().is_empty();
            let why = refused_login(&failure, &self.address.user, is_given, Dialect::Mysql);
            return ProbeError::denied(&self.source, why);
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
        ProbeError::unreachable(&self.source, format!("{failure}{way_out}"))
    }
}

/// Adds the other error to `failure`.
fn with(failure: ReadError, other: Option<&str>) -> ReadError {
    other.map_or_else(|| ReadError(failure.to_string()), |other| ReadError(format!("{failure}; {other}")))
}

/// All sessions with their true state, and the thread pool's queue. Returns the sessions'
/// statements with their literals; none if they could not be read.
fn read_sessions(server: &Server, parts: Parts, reads: &mut Reads, out: &mut Out) -> Option<Texts> {
    // The queue and the sessions are joined, so they are read back to back.
    let locks = if parts.locks { sessions::lock_waits(server, reads) } else { Some(LockWaits::default()) };
    let queued =
        if parts.pool { reads.read("thread pool queue", || pool::queues(server, out)) } else { Some(Queued::new()) };
    // Without locks or queue a session's true state is unknown. Without the right to see other
    // sessions, the server would seem to have none: no row is better than a wrong one.
    let (locks, queued) = locks.zip(queued).filter(|_| parts.sessions)?;
    sessions::sample(server, (&queued, &locks, parts.holders), reads, out)
}
