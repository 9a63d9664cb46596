//! MySQL's true process list: its sessions, the queue of its thread pool and its lock waits, joined.

use holdup_recording::{Batch, clock};

use super::release::Flavour;
use super::{MySql, Reads, pool, read_sessions, status};
use crate::options::Options;
use crate::processes::{Look, Process};
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
        let mut mysql = MySql::from_address(address, &Options { partial: true, slow: None })?;
        let coverage = mysql.probe()?;
        if !mysql.parts.process {
            let own = coverage.into_iter().next();
            let (why, grant) = own.map(|own| (own.why, own.enable)).unwrap_or_default();
            return Err(ProbeError::Denied {
                source_name: mysql.source(),
                why: format!("{}; run: {}", why.unwrap_or_default(), grant.unwrap_or_default()),
            });
        }
        let matters = |source: &str| source.ends_with(" thread pool") || source.ends_with(" replication");
        let notes = coverage.into_iter().filter(|part| matters(&part.source) || part.source == mysql.source);
        let notes = notes.filter_map(|part| {
            let enable = part.enable.map(|enable| format!("; {enable}"));
            Some(format!("{}{}", part.why?, enable.unwrap_or_default()))
        });
        let notes: Vec<String> = notes.collect();
        Ok((Self(mysql), notes))
    }

    /// Name of the server in tables, e.g. `mysql://127.0.0.1:3306`.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Its kind and version, e.g. `MariaDB 10.11.6`; empty without a connection.
    pub fn release(&self) -> String {
        let Some(server) = &self.0.server else { return String::new() };
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
        let (parts, mut batch) = (self.0.parts, Batch::default());
        let mut reads = Reads::after(std::mem::take(&mut self.0.backoffs));
        let source = self.0.source.clone();
        let texts = read_sessions(&server, &source, parts, &mut reads, &mut batch);
        if parts.pool {
            reads.read("thread pool", || pool::sample(&server, &source, &mut batch));
        }
        reads.read("status", || status::sample(&server, &source, &mut self.0.uptime, &mut batch));
        if parts.replication {
            reads.read("replication", || self.0.replication.sample(&server, &source, &mut batch));
        }
        let failed = self.0.finish(server, reads);
        let Some(mut texts) = texts else {
            return Err(failed.err().unwrap_or_else(|| {
                ReadError("the sessions could not be read: holdup reconnects and tries again".to_owned())
            }));
        };
        let processes = batch.sessions.into_iter().map(|session| {
            let statement = texts.remove(&session.session_id);
            Process { session, statement }
        });
        Ok(Look { at: clock::now_ns(), processes: processes.collect(), samples: batch.samples })
    }
}
