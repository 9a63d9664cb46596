//! Finds out what this server has and what this account may read. It asks each command once; what is
//! refused or unknown becomes a line of the coverage and is not asked again on this connection.

use holdup_mongodb::{NEWEST, OLDEST, Value, missing_sections};
use holdup_protocol::database::mongodb::ADMIN;
use holdup_recording::Coverage;

use super::address::Address;
use super::collections;
use super::commands::Command;
use super::parts::{OperationsBy, Parts};
use super::server::{Failure, Server};
use crate::connections::Connections;
use crate::coverage::{Line as _, part};
use crate::database::Found;

/// What is asked, in turn.
struct Probe<'p> {
    server: &'p mut Server,
    source: String,
    grant: String,
    coverage: Vec<Coverage>,
}

/// Probes the server.
pub(super) fn find(server: &mut Server, address: &Address, connections: &Connections) -> Result<Found<Parts>, Failure> {
    let user = address.user.clone().unwrap_or_else(|| "USER".to_owned());
    let grant = format!(
        "db.getSiblingDB('{}').grantRolesToUser('{user}', [{{role: 'clusterMonitor', db: 'admin'}}])",
        address.auth_source
    );
    let mut probe = Probe { server, source: address.source(), grant, coverage: Vec::new() };
    let (mut parts, mut missing) = (Parts::default(), None);
    match probe.server.ask(Command::Status) {
        Ok(status) => {
            parts.status = true;
            probe.sections(&status);
        }
        Err(failure) if failure.is_denied() => {
            let why = match &address.user {
                Some(user) => format!("the account {user} may not run serverStatus: {failure}"),
                None => format!("the server wants an account, and the address has none (USER@): {failure}"),
            };
            missing = Some((why, probe.grant.clone()));
            probe.absent("serverStatus", &failure);
        }
        Err(failure) => probe.unless_fatal("serverStatus", failure)?,
    }
    parts.operations = probe.operations()?;
    parts.top = probe.has("use of collections", |server| server.ask(Command::Top))?;
    if address.sizes {
        probe.collections(&mut parts, || connections.attempt(|| Server::open(address, connections)))?;
    } else {
        probe.coverage.push(part(&probe.source, "collections").absent("the address says ?sizes=false"));
    }
    parts.profiles = probe.has("profiler", |server| server.list(Command::Profiled(ADMIN, None)))?;
    parts.replica_set = match probe.server.ask(Command::ReplicaSet) {
        Err(failure) if failure.is_alone() => false,
        Err(failure) => {
            probe.unless_fatal("replica set", failure)?;
            false
        }
        Ok(_) => true,
    };
    probe.has("parameters", |server| server.ask(Command::Parameters))?;
    probe.has("options", |server| server.ask(Command::Options))?;
    let version = probe.server.release();
    let mut coverage = Coverage::with_parts(&probe.source, probe.coverage);
    if let (Some(own), Some(version)) = (coverage.first_mut(), version)
        && !(OLDEST..=NEWEST).contains(&version)
    {
        let range = format!("MongoDB {version} is outside the supported versions ({OLDEST} to {NEWEST})");
        own.why =
            Some(own.why.take().map_or(range.clone(), |why| format!("{why}; {range}: some figures may be missing")));
    }
    Ok(Found { parts, coverage, missing })
}

impl Probe<'_> {
    /// Whether the server answers.
    fn has<T>(&mut self, part: &str, ask: impl FnOnce(&mut Server) -> Result<T, Failure>) -> Result<bool, Failure> {
        match ask(self.server) {
            Ok(_) => Ok(true),
            Err(failure) => self.unless_fatal(part, failure).map(|()| false),
        }
    }

    /// A line of the coverage; or the failure itself, if the connection is lost.
    fn unless_fatal(&mut self, part: &str, failure: Failure) -> Result<(), Failure> {
        if !matches!(failure, Failure::Server(..)) {
            return Err(failure);
        }
        self.absent(part, &failure);
        Ok(())
    }

    fn absent(&mut self, name: &str, failure: &Failure) {
        let enable = failure.is_denied().then(|| self.grant.clone());
        let why = match failure {
            _ if failure.is_denied() => format!("the account may not read it: {failure}"),
            _ if failure.is_lacking() => format!("the server does not have it: {failure}"),
            _ => failure.to_string(),
        };
        self.coverage.push(Coverage { enable, ..part(&self.source, name).absent(why) });
    }

    /// The sections of its status that another server of its version has.
    fn sections(&mut self, status: &Value) {
        // A router has no storage engine.
        let is_router = status.get("process").and_then(Value::text) == Some("mongos");
        let missing = missing_sections(status);
        if missing.is_empty() || is_router {
            return;
        }
        let list: Vec<String> = missing.iter().map(|(name, path)| format!("{name} ({path})")).collect();
        let why = format!("its serverStatus has no {}", list.join(", "));
        self.coverage.push(part(&self.source, "serverStatus").partial(why));
    }

    /// How operations can be read.
    fn operations(&mut self) -> Result<Option<OperationsBy>, Failure> {
        match self.server.list(Command::Operations) {
            Ok(_) => return Ok(Some(OperationsBy::Stage)),
            Err(failure) if failure.is_denied() || !matches!(failure, Failure::Server(..)) => {
                return self.unless_fatal("operations", failure).map(|()| None);
            }
            // Servers say in several ways that they do not have the stage.
            Err(_) => {}
        }
        let has = self.has("operations", |server| server.ask(Command::OldOperations))?;
        Ok(has.then_some(OperationsBy::Command))
    }

    /// What can be read of collections. FerretDB reads all of a database for its size, which can take
    /// longer than holdup waits: then it does not ask again, and goes on with another connection.
    fn collections(
        &mut self,
        parts: &mut Parts,
        reconnect: impl FnOnce() -> Result<Server, Failure>,
    ) -> Result<(), Failure> {
        match self.of_one_collection(parts) {
            Err(failure @ Failure::Silent(_)) => {
                *self.server = reconnect()?;
                (parts.sizes, parts.index_uses) = (false, false);
                self.absent("collections", &failure);
                Ok(())
            }
            tried => tried,
        }
    }

    /// The same, tried on one of them.
    fn of_one_collection(&mut self, parts: &mut Parts) -> Result<(), Failure> {
        let names = match collections::names(self.server, parts.top, 1) {
            Ok(names) => names,
            Err(failure) => return self.unless_fatal("list of collections", failure),
        };
        let Some((database, name)) = names.into_iter().next() else {
            // An empty server: whether it has them shows with the first collection.
            (parts.sizes, parts.index_uses) = (true, true);
            return Ok(());
        };
        parts.sizes = self.has("collections", |server| server.ask(Command::Sizes(&database, &name)))?;
        parts.index_uses = self.has("indexes", |server| server.ask(Command::IndexUses(&database, &name)))?;
        Ok(())
    }
}
