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
mod statements;
mod tables;

use holdup_protocol::database::Dialect;
use holdup_recording::{Batch, Coverage};

use self::address::Address;
use self::counters::Counters;
use self::log::Log;
use self::plans::Plans;
use self::probe::Parts;
use self::server::{Failure, Server};
use self::statements::Statements;
use self::tables::Tables;
use crate::backoff::Backoffs;
use crate::connections::Connections;
use crate::database::{ReadWindow, Reads, refused_login};
use crate::options::Options;
use crate::pace::Turn;
use crate::{Collector, ProbeError, ReadError};

pub use self::catalog::Catalog;
#[doc(hidden)]
pub use self::log::fuzz;
#[doc(hidden)]
pub use crate::plans::fuzz as fuzz_plans;

/// The collector for `postgresql://user[:password]@host[:port][/database][?sslmode=…&password_env=VAR&password_file=PATH&log=PATH&plans=explain]`.
///
/// # Errors
/// If the address is not understood, or if a file or variable that it names does not exist.
pub fn make(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    Ok(Box::new(PostgreSql::at(address, options)?))
}

struct PostgreSql {
    source: String,
    address: Address,
    partial: bool,
    /// None before the first connection and after a loss.
    server: Option<Server>,
    /// The number of connections, and when the next attempt is due.
    connections: Connections,
    /// Parts that failed lately.
    backoffs: Backoffs,
    parts: Parts,
    statements: Statements,
    tables: Tables,
    counters: Counters,
    plans: Plans,
    log: Option<Log>,
}

impl Collector for PostgreSql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let server = Server::connect(&self.address, &self.connections).map_err(|failure| self.unusable(failure))?;
        let found = probe::find(&server, &self.address).map_err(|failure| self.unusable(failure))?;
        if let Some((why, grant)) = found.missing
            && !self.partial
        {
            return Err(ProbeError::MissingGrant { source_name: self.source(), why, grant });
        }
        self.parts = found.parts;
        self.server = Some(server);
        if let Some(log) = &mut self.log {
            // Its present content is older than the recording.
            log.skip_to_end();
        }
        Ok(found.coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let server = self.connected()?;
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
        reads.read("settings", || counters::settings(&server, &self.source, batch));
        reads.read("settings of tables", || counters::options(&server, &self.source, batch));
        self.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log can be read even while the server refuses connections.
        let log = self.follow(batch);
        let server = match self.connected() {
            Ok(server) => server,
            Err(failure) => {
                return Err(ReadError(log.map_or(failure.to_string(), |log| format!("{failure}; {log}"))));
            }
        };
        let source = self.source.as_str();
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
        reads.failures.extend(log);
        let mut turn = Turn::default();
        reads.note("beginning", server.begin());
        // Without the right to see other sessions' activity they would all seem idle: no row is
        // better than a wrong one.
        if self.parts.sessions {
            let (size, texts) = (self.parts.query_size, &self.statements.texts);
            reads.read("sessions", || sessions::sample(&server, source, size, texts, None, batch));
        }
        // These reads pause per view, table and query.
        if !reads.lost {
            let read = self.counters.sample(&server, self.parts.rights, &mut turn, source, batch);
            reads.note("counters", read);
        }
        if !reads.lost {
            reads.note("tables", self.tables.sample(&server, &self.parts.database, &mut turn, source, batch));
        }
        if let Some(extension) = &self.parts.statements {
            reads.read("statements", || self.statements.sample(&server, extension, &mut turn, source, batch));
        }
        if !reads.lost {
            reads.note("end", server.end());
        }
        if self.parts.plans {
            let (wish, size) = (self.address.plans, self.parts.query_size);
            reads.read("plans", || self.plans.sample(&server, wish, size, source, batch));
        }
        self.finish(server, reads)
    }
}

impl PostgreSql {
    /// The server at `address`, without a connection yet.
    fn at(address: &str, options: &Options) -> Result<Self, ProbeError> {
        let address = Address::parse(address)?;
        Ok(Self {
            source: address.source(),
            log: address.log.clone().map(Log::new),
            address,
            partial: options.partial,
            server: None,
            connections: Connections::default(),
            backoffs: Backoffs::default(),
            parts: Parts::default(),
            statements: Statements::default(),
            tables: Tables::default(),
            counters: Counters::default(),
            plans: Plans::default(),
        })
    }

    /// Reads the new content of the log; returns an error message.
    fn follow(&mut self, batch: &mut Batch) -> Option<String> {
        let (log, form) = (self.log.as_mut()?, self.parts.log.as_ref()?);
        log.sample(form, &self.source, batch).err().map(|error| format!("log: {error}"))
    }

    /// Takes out the connection, reconnecting if it was lost; [`finish`](Self::finish) puts it back
    /// if it still works.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.server.take() {
            return Ok(server);
        }
        let reconnect = || {
            let server = Server::connect(&self.address, &self.connections)?;
            let found = probe::find(&server, &self.address)
                .inspect_err(|failure| self.connections.lost(failure.to_string()))?;
            Ok((server, found.parts))
        };
        let (server, parts) =
            reconnect().map_err(|failure: Failure| ReadError(format!("cannot connect: {failure}")))?;
        // Settings may have changed with a restart.
        self.parts = parts;
        self.plans.forget();
        self.tables.forget();
        self.statements.forget();
        Ok(server)
    }

    fn finish(&mut self, server: Server, reads: Reads) -> Result<(), ReadError> {
        self.server = self.connections.keep(server, &reads);
        self.backoffs = reads.backoffs;
        if reads.failures.is_empty() { Ok(()) } else { Err(ReadError(reads.failures.join("; "))) }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        let source_name = self.source();
        match failure {
            Failure::Login(words) => {
                let is_given = !self.address.password.reveal().is_empty();
                let why = refused_login(&words, &self.address.user, is_given, Dialect::Postgres);
                ProbeError::Denied { source_name, why }
            }
            Failure::Server(..) | Failure::Large(_) => {
                ProbeError::Unreachable { source_name, why: failure.to_string() }
            }
            Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) => {
                let why = format!(
                    "{failure}; is the server running, is this its port, and does it accept one more connection?"
                );
                ProbeError::Unreachable { source_name, why }
            }
        }
    }
}
