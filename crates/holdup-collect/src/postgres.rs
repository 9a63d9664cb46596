//! PostgreSQL 10 and later: sessions with their waits and blockers, counters, settings, statements
//! with the server's own timing, and from its log single executions with the trace id that the
//! application put into their text.
//!
//! It reads in a read-only session with short limits; each of its statements is marked and excluded
//! from the recording. It switches nothing on. One table (`readings`) says what to read from which
//! version; tables, indexes, processes and statements have their own modules. Costly reads are
//! spaced according to their cost (`pace`).

mod activity;
pub(crate) mod address;
mod catalog;
mod catalogs;
pub(crate) mod connection;
mod counters;
mod gate;
mod log;
mod plans;
mod probe;
pub mod processes;
mod readings;
mod resolve;
mod server;
mod sessions;
mod settings;
mod statements;
mod tables;

use holdup_protocol::database::Dialect;
use holdup_recording::{Batch, Coverage};

use self::address::Address;
use self::catalogs::Catalogs;
use self::connection::NO_DATABASE;
use self::counters::Counters;
use self::log::Log;
use self::probe::Parts;
use self::server::{Failure, Server};
use self::statements::Statements;
use self::tables::Tables;
use crate::database::{Found, Link, cannot_connect, refused_login};
use crate::options::Options;
use crate::pace::Turn;
use crate::plans::pace::Pace;
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

pub use self::catalog::Catalog;
#[doc(hidden)]
pub use self::log::fuzz;
pub use self::log::{Entry, Messages};
#[doc(hidden)]
pub use crate::plans::fuzz as fuzz_plans;

/// The collector for `postgresql://user[:password]@host[:port][/database][?sslmode=…&password_env=VAR&password_file=PATH&log=PATH&plans=explain]`.
pub(crate) fn make(rest: &str, options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(PostgreSql::new(Address::parse(rest)?, options)))
}

struct PostgreSql {
    source: String,
    address: Address,
    partial: bool,
    link: Link<Server>,
    parts: Parts,
    statements: Statements,
    tables: Tables,
    counters: Counters,
    catalogs: Catalogs,
    plans: Pace,
    log: Option<Log>,
}

impl Collector for PostgreSql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
        let (server, found) = self.found().map_err(|failure| self.unusable(failure))?;
        let found = found.enough(&self.source, self.partial)?;
        self.use_parts(found.parts);
        self.link.server = Some(server);
        if let Some(log) = &mut self.log {
            // Its present content is older than the recording.
            log.skip_to_end();
        }
        Ok(found.coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let server = self.connected()?;
        let mut reads = self.link.reads();
        let mut out = Out::new(batch, &self.source);
        if let Some(found) = reads.read("settings", || settings::settings(&server)) {
            tell(out.batch, out.source(), found);
        }
        reads.read("settings of tables", || counters::options(&server, &mut out));
        reads.read("catalogs", || self.catalogs.with_settings(&server, &mut out));
        self.link.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log can be read even while the server refuses connections.
        let log = self.follow(batch);
        let server = self.connected().map_err(|failure| {
            ReadError(log.as_ref().map_or(failure.to_string(), |log| format!("{failure}; {log}")))
        })?;
        let mut reads = self.link.reads();
        reads.failures.extend(log);
        let (mut turn, mut out) = (Turn::default(), Out::new(batch, &self.source));
        reads.note("beginning", server.begin());
        // Without the right to see other sessions' activity they would all seem idle: no row is
        // better than a wrong one.
        if self.parts.sessions {
            let (size, texts) = (self.parts.query_size, &self.statements.texts);
            reads.read("sessions", || sessions::sample(&server, size, texts, None, &mut out));
        }
        // These reads pause per view, table and query.
        if !reads.lost {
            let read = self.counters.sample(&server, self.parts.rights, &mut turn, &mut out);
            reads.note("counters", read);
        }
        if !reads.lost {
            reads.note("tables", self.tables.sample(&server, &self.parts.database, &mut turn, &mut out));
        }
        reads.read("changes of catalogs", || self.catalogs.sample(&server, &mut turn, &mut out));
        if let Some(extension) = &self.parts.statements {
            reads.read("statements", || self.statements.sample(&server, extension, &mut turn, &mut out));
        }
        if !reads.lost {
            reads.note("end", server.end());
        }
        if self.parts.plans {
            let (wish, size) = (self.address.plans, self.parts.query_size);
            reads.read("plans", || plans::sample(&server, &mut self.plans, wish, size, &mut out));
        }
        self.link.finish(server, reads)
    }
}

impl PostgreSql {
    /// The server at `address`, without a connection yet.
    fn new(address: Address, options: &Options) -> Self {
        Self {
            source: address.source(),
            log: address.log.clone().map(Log::new),
            address,
            partial: options.partial,
            link: Link::default(),
            parts: Parts::default(),
            statements: Statements::default(),
            tables: Tables::default(),
            counters: Counters::default(),
            catalogs: Catalogs::default(),
            plans: Pace::default(),
        }
    }

    fn use_parts(&mut self, parts: Parts) {
        self.catalogs.allow(parts.catalogs);
        self.parts = parts;
    }

    fn found(&self) -> Result<(Server, Found<Parts>), Failure> {
        let connect = |connections: &_| Server::open(&self.address, connections);
        self.link.find(connect, |server| probe::find(server, &self.address))
    }

    /// Reads the new content of the log; returns an error message.
    fn follow(&mut self, batch: &mut Batch) -> Option<String> {
        let (log, form) = (self.log.as_mut()?, self.parts.log.as_ref()?);
        log.sample(form, &self.source, batch).err().map(|error| format!("log: {error}"))
    }

    /// Takes out the connection, reconnecting if it was lost.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.link.server.take() {
            return Ok(server);
        }
        let (server, found) = self.found().map_err(cannot_connect)?;
        // Settings may have changed with a restart.
        self.use_parts(found.parts);
        self.plans.forget();
        self.tables.forget();
        self.statements.forget();
        Ok(server)
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        match failure {
            Failure::Login(words) => {
                let is_given = !self.address.password.reveal().is_empty();
                let why = refused_login(&words, &self.address.user, is_given, Dialect::Postgres);
                ProbeError::denied(&self.source, why)
            }
            Failure::Server(code, words) if code == NO_DATABASE => {
                let quoted = self.address.database.replace('"', "\"\"");
                let why = format!("{words}: name another in the address, or run: CREATE DATABASE \"{quoted}\";");
                ProbeError::denied(&self.source, why)
            }
            Failure::Server(..) | Failure::Large(_) => ProbeError::unreachable(&self.source, failure.to_string()),
            Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) => {
                let why = format!(
                    "{failure}; is the server running, is this its port, and does it accept one more connection?"
                );
                ProbeError::unreachable(&self.source, why)
            }
        }
    }
}
