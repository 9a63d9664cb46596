//! `--watch mongodb://USER@HOST:PORT/`: one server of MongoDB 4.4 to 8.0, or one that speaks its
//! protocol. Each sample has the server's own counters and gauges, the operations in progress with what
//! each waits for, and how far the members of the replica set are. Collections and indexes come at a slow
//! pace.
//!
//! It sends only the commands of one list ([`commands`]), all of which read. What a server does not
//! have, or the account may not do, is a line of the coverage. It follows no cursor beyond its first
//! batch, and asks only the server that the address names.

mod address;
mod collections;
mod commands;
mod executions;
mod log;
mod parts;
mod probe;
mod profile;
mod server;

use holdup_mongodb::{Figure, Value};
use holdup_recording::{Batch, Coverage};

pub(crate) use self::address::SEVERAL_BY_NAME;
use self::address::{Address, PASSWORD_VARIABLE};
use self::collections::Collections;
use self::commands::Command;
use self::log::Log;
use self::parts::{OperationsBy, Parts};
use self::profile::Profiles;
use self::server::{Failure, Server};
use crate::database::{Found, Link, cannot_connect, login_refused};
use crate::line::Tls;
use crate::options::Options;
use crate::reading::{Out, OwnName, tell};
use crate::{Collector, ProbeError, ReadError};

/// Makes the collector for `mongodb://…`.
pub(crate) fn make(rest: &str, options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = Address::parse(rest)?;
    Ok(Box::new(MongoDb {
        source: address.source(),
        log: address.log.as_deref().map(Log::new),
        profiles: Profiles::default(),
        address,
        partial: options.partial,
        link: Link::default(),
        parts: Parts::default(),
        collections: Collections::default(),
    }))
}

struct MongoDb {
    source: String,
    address: Address,
    partial: bool,
    link: Link<Server>,
    parts: Parts,
    collections: Collections,
    log: Option<Log>,
    profiles: Profiles,
}

impl Collector for MongoDb {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
        let (server, found) = self.found().map_err(|failure| self.unusable(&failure))?;
        let found = found.enough(&self.source, self.partial)?;
        self.parts = found.parts;
        self.link.server = Some(server);
        let mut coverage = found.coverage;
        if let Some(unreadable) = self.log.as_mut().and_then(|log| log.probe(&self.source)) {
            coverage.push(unreadable);
            self.log = None;
        }
        Ok(coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut server = self.connected()?;
        let mut reads = self.link.reads();
        let mut found: Vec<(String, String)> = Vec::new();
        found.extend(server.version.clone().map(|version| ("version".to_owned(), version)));
        for (command, read) in [
            (Command::Status, program as fn(&Value) -> Vec<(String, String)>),
            (Command::Parameters, holdup_mongodb::parameters),
            (Command::Options, holdup_mongodb::options),
        ] {
            match server.ask(command) {
                Ok(answer) => found.extend(read(&answer)),
                // The coverage says so already.
                Err(failure) if failure.is_denied() || failure.is_lacking() => {}
                Err(failure) => {
                    reads.note("settings", Err::<(), _>(failure));
                }
            }
        }
        tell(batch, &self.source, found);
        self.link.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log is there whether the server answers or not.
        let logged = self.log.as_mut().map_or(Ok(()), |log| log.sample(&self.source, batch));
        let mut server = self.connected()?;
        let mut reads = self.link.reads();
        let (parts, mut out) = (&mut self.parts, Out::new(batch, &self.source));
        if parts.status
            && let Some(status) = reads.read("serverStatus", || out.read(|| server.ask(Command::Status)))
        {
            put(holdup_mongodb::status(&status).figures, &mut out);
        }
        if let Some(by) = parts.operations
            && let Some(list) = reads.read("operations", || out.read(|| operations(&mut server, by)))
        {
            let found = holdup_mongodb::operations(&list, out.at(), out.source());
            put(found.figures, &mut out);
            out.batch.sessions.extend(found.sessions);
        }
        if parts.replica_set
            && let Some(status) = reads.read("replica set", || out.read(|| server.ask(Command::ReplicaSet)))
        {
            put(holdup_mongodb::replica_set(&status), &mut out);
        }
        let collections = &mut self.collections;
        if let Some(figures) = reads.read("collections", || out.read(|| collections.sample(&mut server, parts))) {
            put(figures, &mut out);
        }
        // The log has the same operations.
        if self.log.is_none() && parts.profiles && self.profiles.is_due() {
            let (profiles, has_top) = (&mut self.profiles, parts.top);
            reads.read("profiler", || profiles.sample(&mut server, has_top, &mut out));
        }
        if let Err(error) = logged {
            reads.failures.push(format!("log: {error}"));
        }
        self.link.finish(server, reads)
    }
}

/// The operations in progress.
fn operations(server: &mut Server, by: OperationsBy) -> Result<Vec<Value>, Failure> {
    if by == OperationsBy::Stage {
        return server.list(Command::Operations);
    }
    let mut answer = server.ask(Command::OldOperations)?;
    let Some(Value::List(mut operations)) = server::take(&mut answer, "inprog") else { return Ok(Vec::new()) };
    operations.truncate(commands::OPERATIONS_MAX as usize);
    Ok(operations)
}

fn put(figures: Vec<Figure>, out: &mut Out) {
    figures.into_iter().for_each(|Figure { metric, labels, value }| out.put(OwnName(&metric), labels, value));
}

impl MongoDb {
    fn found(&self) -> Result<(Server, Found<Parts>), Failure> {
        let connect = |connections: &_| Server::open(&self.address, connections);
        self.link.find(connect, |server| probe::find(server, &self.address, &self.link.connections))
    }

    /// Takes out the connection, reconnecting if it was lost.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.link.server.take() {
            return Ok(server);
        }
        let (server, found) = self.found().map_err(cannot_connect)?;
        // It may have come back as another version.
        self.parts = found.parts;
        Ok(server)
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        match failure {
            Failure::Login(words) => {
                let user = self.address.user.as_deref().unwrap_or_default();
                let is_given = !self.address.password.reveal().is_empty();
                let words = login_refused(words, user, is_given, PASSWORD_VARIABLE);
                let database = &self.address.auth_source;
                let why = format!("{words}. Its account is looked up in the database {database} (?authSource=)");
                ProbeError::denied(&self.source, why)
            }
            Failure::Server(..) | Failure::Large(_) => ProbeError::unreachable(&self.source, failure.to_string()),
            Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) => {
                let tls = if self.address.tls == Tls::Off { " without TLS (?tls=true)" } else { "" };
                let why = format!(
                    "{failure}; is the server running, is this its port, and does it accept one more connection{tls}?"
                );
                ProbeError::unreachable(&self.source, why)
            }
        }
    }
}

/// Which program the server is, and its storage engine. The version is known from `buildInfo`, for which no grant is needed.
fn program(status: &Value) -> Vec<(String, String)> {
    let told = holdup_mongodb::status(status).settings.into_iter();
    told.filter(|(name, _)| *name != "version").map(|(name, value)| (name.to_owned(), value)).collect()
}
