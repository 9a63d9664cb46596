//! MySQL's true process list: its sessions, the queue of its thread pool and its lock waits, joined.

use holdup_recording::Batch;

use super::address::Address;
use super::release::Flavour;
use super::{MySql, pool, read_sessions, status};
use crate::account;
use crate::options::Options;
use crate::processes::{self, Look};
use crate::reading::Out;
use crate::{Collector as _, ProbeError, ReadError};

/// A server whose processes are shown.
pub struct Processes(MySql);

impl Processes {
    /// Connects to the server at `address`, e.g. `mysql://user@127.0.0.1:3306`. Also returns notes
    /// on what cannot be shown, and how to enable it.
    ///
    /// # Errors
    /// If it cannot be reached, or if the account may not see other sessions: the error names the
    /// missing grant.
    pub fn open(address: &str) -> Result<(Self, Vec<String>), ProbeError> {
        let address = account::parse(address, Address::parse)?;
        let mut mysql = MySql::new(address, &Options { partial: true, slow: None });
        let coverage = mysql.probe()?;
        let notes = processes::notes(coverage, mysql.parts.process, &["thread pool", "replication"])?;
        Ok((Self(mysql), notes))
    }

    /// Name of the server in tables, e.g. `mysql://127.0.0.1:3306`.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Its kind and version, e.g. `MariaDB 10.11.6`; empty without a connection.
    pub fn release(&self) -> String {
        let Some(server) = &self.0.link.server else { return String::new() };
        let name = match server.release.flavour {
            Flavour::MariaDb => "MariaDB",
            Flavour::MySql => "MySQL",
            Flavour::Percona => "Percona Server",
        };
        let (major, minor, patch) = server.release.version;
        format!("{name} {major}.{minor}.{patch}")
    }

    /// Looks once.
    ///
    /// # Errors
    /// If the sessions could not be read. The next look reconnects if necessary.
    pub fn look(&mut self) -> Result<Look, ReadError> {
        let server = self.0.connected()?;
        let (parts, mut batch, mysql) = (self.0.parts, Batch::default(), &mut self.0);
        let mut reads = mysql.link.reads();
        let mut out = Out::new(&mut batch, &mysql.source);
        let texts = read_sessions(&server, parts, &mut reads, &mut out);
        if parts.pool {
            reads.read("thread pool", || pool::sample(&server, &mut out));
        }
        reads.read("status", || status::sample(&server, &mut mysql.uptime, &mut out));
        if parts.replication {
            reads.read("replication", || mysql.replication.sample(&server, &mut out));
        }
        let failed = mysql.link.finish(server, reads);
        processes::look(batch, texts, failed)
    }
}
