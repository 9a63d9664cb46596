//! PostgreSQL's true process list: what `pg_stat_activity` says of each session, who holds what it waits for, and how many
//! transactions ended.

use std::collections::HashMap;

use holdup_recording::{Batch, Labels, metrics};

use super::address::Address;
use super::server::{Failure, Server};
use super::{PostgreSql, sessions};
use crate::account;
use crate::options::Options;
use crate::processes::{self, Look};
use crate::reading::Out;
use crate::{Collector as _, ProbeError, ReadError};

/// A server that is looked at.
pub struct Processes(PostgreSql);

impl Processes {
    /// Connects to the server at `address`, e.g. `postgresql://user@127.0.0.1:5432/shop`. Returns notes too: what cannot be shown,
    /// and what would show it.
    ///
    /// # Errors
    /// If it cannot be reached, or the account may not see other sessions: the error says which grant it needs.
    pub fn open(address: &str) -> Result<(Self, Vec<String>), ProbeError> {
        let address = account::parse(address, Address::parse)?;
        let mut server = PostgreSql::new(address, &Options { partial: true, slow: None });
        let coverage = server.probe()?;
        let notes = processes::notes(coverage, server.parts.sessions, &["statement texts"])?;
        Ok((Self(server), notes))
    }

    /// Name of the server in tables, e.g. `postgresql://127.0.0.1:5432`.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Its kind and version, e.g. `PostgreSQL 15.18`; empty while there is no connection.
    pub fn release(&self) -> String {
        let Some(server) = &self.0.link.server else { return String::new() };
        format!("PostgreSQL {}.{}", server.major(), server.version % 10_000)
    }

    /// Looks once.
    ///
    /// # Errors
    /// If the sessions could not be read. The next look connects anew where it has to.
    pub fn look(&mut self) -> Result<Look, ReadError> {
        let server = self.0.connected()?;
        let (mut batch, mut statements, own) = (Batch::default(), HashMap::new(), &mut self.0);
        let mut reads = own.link.reads();
        let (size, texts) = (own.parts.query_size, &own.statements.texts);
        let mut out = Out::new(&mut batch, &own.source);
        let seen = reads.read("sessions", || sessions::sample(&server, size, texts, Some(&mut statements), &mut out));
        reads.read("transactions", || transactions(&server, &mut out));
        let failed = own.link.finish(server, reads);
        processes::look(batch, seen.map(|()| statements), failed)
    }
}

/// Transactions that ended, in all databases.
fn transactions(server: &Server, out: &mut Out) -> Result<(), Failure> {
    let sql = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database";
    let rows = out.read(|| server.rows_again(sql))?;
    let ended = rows.rows.first().and_then(|row| row.float(0));
    out.put_known(&Labels::none(), [(metrics::postgresql::STAT_DATABASE_XACT_COMMIT, ended)]);
    Ok(())
}
