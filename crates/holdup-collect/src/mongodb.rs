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
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Coverage};

use self::address::{Address, PASSWORD_VARIABLE};
use self::collections::Collections;
use self::commands::Command;
use self::log::Log;
use self::parts::{OperationsBy, Parts};
use self::profile::Profiles;
use self::server::{Failure, Server};
use crate::backoff::Backoffs;
use crate::connections::Connections;
use crate::database::{ReadWindow, Reads};
use crate::options::Options;
use crate::reading::tell;
use crate::{Collector, ProbeError, ReadError};

/// Makes the collector for `mongodb://…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the address is not understood, or if a file or variable that it names does not exist.
pub fn make(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let address = Address::parse(address)?;
    Ok(Box::new(MongoDb {
        source: address.source(),
        log: address.log.as_deref().map(Log::new),
        profiles: Profiles::default(),
        address,
        partial: options.partial,
        server: None,
        connections: Connections::default(),
        backoffs: Backoffs::default(),
        parts: Parts::default(),
        collections: Collections::default(),
    }))
}

struct MongoDb {
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
    collections: Collections,
    log: Option<Log>,
    profiles: Profiles,
}

impl Collector for MongoDb {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let mut server = Server::connect(&self.address, &self.connections).map_err(|it| self.unusable(&it))?;
        let found =
            probe::find(&mut server, &self.address, &self.connections).map_err(|failure| self.unusable(&failure))?;
        if let Some((why, grant)) = found.missing
            && !self.partial
        {
            return Err(ProbeError::MissingGrant { source_name: self.source(), why, grant });
        }
        self.parts = found.parts;
        self.server = Some(server);
        let mut coverage = found.coverage;
        if let Some(unreadable) = self.log.as_mut().and_then(|log| log.probe(&self.source)) {
            coverage.push(unreadable);
            self.log = None;
        }
        Ok(coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut server = self.connected()?;
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
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
        self.finish(server, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // The log is there whether the server answers or not.
        let logged = self.log.as_mut().map_or(Ok(()), |log| log.sample(&self.source, batch));
        let mut server = self.connected()?;
        let source = self.source.as_str();
        let mut reads = Reads::after(std::mem::take(&mut self.backoffs));
        if self.parts.status {
            let mut window = ReadWindow::begin(source);
            if let Some(status) = reads.read("serverStatus", || server.ask(Command::Status)) {
                window.end();
                put(holdup_mongodb::status(&status).figures, &window, batch);
            }
        }
        if let Some(by) = self.parts.operations {
            let mut window = ReadWindow::begin(source);
            if let Some(list) = reads.read("operations", || operations(&mut server, by)) {
                window.end();
                let found = holdup_mongodb::operations(&list, window.at(), source);
                put(found.figures, &window, batch);
                batch.sessions.extend(found.sessions);
            }
        }
        if self.parts.replica_set {
            let mut window = ReadWindow::begin(source);
            if let Some(status) = reads.read("replica set", || server.ask(Command::ReplicaSet)) {
                window.end();
                put(holdup_mongodb::replica_set(&status), &window, batch);
            }
        }
        let mut window = ReadWindow::begin(source);
        let (collections, parts) = (&mut self.collections, &mut self.parts);
        if let Some(figures) = reads.read("collections", || collections.sample(&mut server, parts)) {
            window.end();
            put(figures, &window, batch);
        }
        // The log has the same operations.
        if self.log.is_none() && self.parts.profiles && self.profiles.is_due() {
            let (profiles, has_top) = (&mut self.profiles, self.parts.top);
            reads.read("profiler", || profiles.sample(&mut server, has_top, source, batch));
        }
        if let Err(error) = logged {
            reads.failures.push(format!("log: {error}"));
        }
        self.finish(server, reads)
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

fn put(figures: Vec<Figure>, window: &ReadWindow, batch: &mut Batch) {
    batch.samples.extend(figures.into_iter().map(|figure| Sample {
        observed_at: window.at(),
        window_ns: window.window_ns(),
        source: window.source.to_owned(),
        metric: figure.metric,
        labels: figure.labels,
        value: figure.value,
    }));
}

impl MongoDb {
    /// Takes out the connection, reconnecting if it was lost; [`finish`](Self::finish) puts it back
    /// if it still works.
    fn connected(&mut self) -> Result<Server, ReadError> {
        if let Some(server) = self.server.take() {
            return Ok(server);
        }
        let reconnect = || {
            let mut server = Server::connect(&self.address, &self.connections)?;
            let found = probe::find(&mut server, &self.address, &self.connections)
                .inspect_err(|failure| self.connections.lost(failure.to_string()))?;
            Ok((server, found.parts))
        };
        let (server, parts) =
            reconnect().map_err(|failure: Failure| ReadError(format!("cannot connect: {failure}")))?;
        // It may have come back as another version.
        self.parts = parts;
        Ok(server)
    }

    fn finish(&mut self, server: Server, reads: Reads) -> Result<(), ReadError> {
        self.server = self.connections.keep(server, &reads);
        self.backoffs = reads.backoffs;
        if reads.failures.is_empty() { Ok(()) } else { Err(ReadError(reads.failures.join("; "))) }
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        let source_name = self.source();
        match failure {
            Failure::Login(words) => {
                let user = self.address.user.as_deref().unwrap_or_default();
                let is_given = !self.address.password.reveal().is_empty();
                let password = if is_given {
                    format!("came with a password: check it in the address or in {PASSWORD_VARIABLE}")
                } else {
                    format!("came without a password: put it into the environment variable {PASSWORD_VARIABLE}")
                };
                let database = &self.address.auth_source;
                let why = format!(
                    "{words}. User {user} {password}. Its account is looked up in the database {database} (?authSource=)"
                );
                ProbeError::Denied { source_name, why }
            }
            Failure::Server(..) | Failure::Large(_) => {
                ProbeError::Unreachable { source_name, why: failure.to_string() }
            }
            Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) => {
                let tls = if self.address.tls == address::Tls::Off { " without TLS (?tls=true)" } else { "" };
                let why = format!(
                    "{failure}; is the server running, is this its port, and does it accept one more connection{tls}?"
                );
                ProbeError::Unreachable { source_name, why }
            }
        }
    }
}

/// Which program the server is, and its storage engine. The version is known from `buildInfo`, for which no grant is needed.
fn program(status: &Value) -> Vec<(String, String)> {
    let told = holdup_mongodb::status(status).settings.into_iter();
    told.filter(|(name, _)| *name != "version").map(|(name, value)| (name.to_owned(), value)).collect()
}
