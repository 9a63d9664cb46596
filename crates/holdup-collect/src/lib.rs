//! Collects raw samples from live systems. Each source is one file (or folder); it knows how to
//! find out what it can read (`probe`), and how to read settings (`settings`) and current values
//! (`sample`). It never derives anything: rates, ratios over time and verdicts are computed when a
//! recording is read.
//!
//! To add a source: write `src/<source>.rs` with a [`Collector`], and a line in [`watch::SCHEMES`].

#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod account;
mod arrival;
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgresql")),
    expect(dead_code, reason = "only sources with connections space their reads")
)]
mod backoff;
pub mod catalog;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod catalogs;
pub mod cgroup;
mod changes;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod connections;
mod coverage;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod database;
pub mod discover;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod elasticsearch;
mod endpoint;
pub mod haproxy;
pub mod hardware;
pub mod host;
pub mod http;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod kafka;
pub mod kubernetes;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod line;
mod log;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
pub mod mysql;
mod nginx;
mod options;
#[cfg(feature = "otlp")]
mod otlp;
mod own_thread;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod pace;
mod page;
#[cfg(feature = "postgresql")]
mod pgbouncer;
pub mod php_fpm;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod plans;
#[cfg(feature = "postgresql")]
pub mod postgres;
mod probe;
pub mod proc;
pub mod process;
pub mod processes;
pub mod prometheus;
#[cfg(feature = "mysql")]
mod proxysql;
pub mod puma;
mod reading;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod redis;
pub mod run;
mod server;
pub mod slow;
mod table;
mod tracepoints;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod trouble;
pub mod uwsgi;
pub mod watch;
mod wire;

use std::time::Duration;

use holdup_recording::{Batch, Coverage};

/// A source of facts about a live system.
///
/// A read that fails is a gap, never a zero. Each row carries the time of its own read. A collector
/// writes nothing to the system under watch. The coverage names whatever it cannot see, with the
/// command, setting or grant that would change that.
pub trait Collector: Send {
    /// Its name in the tables and the coverage, e.g. `host` or `mysql://127.0.0.1:3306`. Never a
    /// secret.
    fn source(&self) -> String;

    /// Finds out what can be read: one coverage entry for the source itself and one for each part
    /// that is switched off or not permitted. Called before anything else, again after pauses until it
    /// succeeds, and in a thread of its own.
    ///
    /// # Errors
    /// If the source as a whole cannot be used now; the others are recorded meanwhile.
    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError>;

    /// Adds settings (versions, limits, options) to `batch`, if the source has any. Called at the start
    /// and at the end.
    ///
    /// # Errors
    /// If they could not be read: a gap.
    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }

    /// The same once a minute in between, for what changed: unchanged rows are not kept.
    ///
    /// # Errors
    /// If they could not be read: a gap.
    fn settings_again(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.settings(batch)
    }

    /// Adds current values to `batch`. Called once per interval. Rows added before an error are
    /// kept.
    ///
    /// # Errors
    /// If some values could not be read: a gap.
    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError>;

    /// Whether one of its own threads has panicked: that thread's data is missing from then on.
    fn has_panicked(&mut self) -> bool {
        false
    }

    /// CPU time of its own threads, apart from the calling one.
    fn other_cpu_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// Why a source cannot be used at all. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The address given to `--watch` is not understood.
    #[error("{0}")]
    BadAddress(String),
    /// Nothing answers there.
    #[error("{source_name}: {why}")]
    Unreachable {
        /// The source.
        source_name: String,
        /// The reason, and where to look.
        why: String,
    },
    /// It is gone for good, e.g. a process that has ended.
    #[error("{source_name}: {why}")]
    Gone {
        /// The source.
        source_name: String,
        /// The reason, and where to look.
        why: String,
    },
    /// It answers but rejects the login: wrong account or password.
    #[error("{source_name}: {why}")]
    Denied {
        /// The source.
        source_name: String,
        /// The server's message.
        why: String,
    },
    /// The account lacks a grant without which the source cannot be judged.
    #[error("{source_name}: {why}; run: {grant} (or continue without it: --partial)")]
    MissingGrant {
        /// The source.
        source_name: String,
        /// What cannot be read.
        why: String,
        /// The exact statement that grants it.
        grant: String,
    },
}

impl ProbeError {
    /// Nothing usable answers at `source`.
    pub(crate) fn unreachable(source: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unreachable { source_name: source.into(), why: why.into() }
    }

    /// `source` rejects this account.
    pub(crate) fn denied(source: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Denied { source_name: source.into(), why: why.into() }
    }
}

/// Why one read failed: a gap in the recording.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

impl ReadError {
    /// One gap for all that failed in a sample; none if nothing did.
    pub(crate) fn all(failures: Vec<String>) -> Result<(), Self> {
        if failures.is_empty() { Ok(()) } else { Err(Self(failures.join("; "))) }
    }
}

/// The output of `cargo xtask new collector`.
#[cfg(test)]
#[path = "../../../xtask/stubs/collector.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_new_says_so() {
        let mut source = stub::make("here", &watch::Options::default()).unwrap();
        assert!(source.probe().is_err_and(|error| error.to_string().contains("not written yet")));
    }
}
