//! PostgreSQL's true process list: what `pg_stat_activity` says of each session, who holds what it waits for, and how many
//! transactions ended.

use std::collections::HashMap;

use holdup_recording::{Batch, Labels, clock, metrics};

use super::server::{Failure, Server};
use super::{PostgreSql, ReadWindow, Reads, sessions};
use crate::options::Options;
use crate::processes::{Look, Process};
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
        let mut server = PostgreSql::at(address, &Options { partial: true, slow: None })?;
        let coverage = server.probe()?;
        let source = server.source.clone();
        if !server.parts.sessions {
            let own = coverage.into_iter().next();
            let (why, grant) = own.map(|own| (own.why, own.enable)).unwrap_or_default();
            return Err(ProbeError::Denied {
                source_name: source,
                why: format!("{}; run: {}", why.unwrap_or_default(), grant.unwrap_or_default()),
            });
        }
        let matters = |part: &str| part == source || part.ends_with(" statement texts");
        let notes = coverage.into_iter().filter(|part| matters(&part.source)).filter_map(|part| {
            let enable = part.enable.map(|enable| format!("; {enable}"));
            Some(format!("{}{}", part.why?, enable.unwrap_or_default()))
        });
        let notes = notes.collect();
        Ok((Self(server), notes))
    }

    /// Name of the server in tables, e.g. `postgresql://127.0.0.1:5432`.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Its kind and version, e.g. `PostgreSQL 15.18`; empty while there is no connection.
    pub fn release(&self) -> String {
        let Some(server) = &self.0.server else { return String::new() };
        format!("PostgreSQL {}.{}", server.major(), server.version % 10_000)
    }

    /// Looks once.
    ///
    /// # Errors
    /// If the sessions could not be read. The next look connects anew where it has to.
    pub fn look(&mut self) -> Result<Look, ReadError> {
        let server = self.0.connected()?;
        let (source, mut batch, mut statements) = (self.0.source.clone(), Batch::default(), HashMap::new());
        let mut reads = Reads::after(std::mem::take(&mut self.0.backoffs));
        let (size, texts) = (self.0.parts.query_size, &self.0.statements.texts);
        let seen = reads
            .read("sessions", || sessions::sample(&server, &source, size, texts, Some(&mut statements), &mut batch));
        reads.read("transactions", || transactions(&server, &source, &mut batch));
        let failed = self.0.finish(server, reads);
        if seen.is_none() {
            return Err(failed.err().unwrap_or_else(|| ReadError("the sessions could not be read".to_owned())));
        }
        let processes = batch.sessions.into_iter().map(|session| {
            let statement = statements.remove(&session.session_id);
            Process { session, statement }
        });
        Ok(Look { at: clock::now_ns(), processes: processes.collect(), samples: batch.samples })
    }
}

/// Transactions that ended, in all databases.
fn transactions(server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
    let mut read = ReadWindow::begin(source);
    let rows = server.rows_again("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database")?;
    read.end();
    if let Some(ended) = rows.rows.first().and_then(|row| row.float(0)) {
        batch.samples.push(read.sample(metrics::postgresql::STAT_DATABASE_XACT_COMMIT, Labels::none(), ended));
    }
    Ok(())
}
