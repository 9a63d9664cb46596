//! Live systems -> raw samples. One file (or folder) a source; each knows how to find out whether it can
//! read (`probe`), what is set (`settings`), and what is so now (`sample`). It never derives anything: a
//! rate, a ratio over time or a verdict is made when a recording is read.
//!
//! To add a source: write `src/<source>.rs` with a [`Collector`], and a line in [`watch::SCHEMES`].

#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod backoff;
pub mod catalog;
pub mod cgroup;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod connections;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod database;
pub mod discover;
mod endpoint;
pub mod hardware;
pub mod host;
pub mod http;
pub mod kubernetes;
pub mod log;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "otlp")]
pub mod otlp;
mod own_thread;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod pace;
pub mod php_fpm;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod plans;
#[cfg(feature = "postgresql")]
pub mod postgres;
pub mod probe;
pub mod proc;
pub mod process;
pub mod prometheus;
pub mod puma;
mod reading;
pub mod run;
pub mod server;
pub mod slow;
pub mod tracepoints;
pub mod uwsgi;
pub mod watch;
pub mod wire;

use std::time::Duration;

use holdup_recording::{Batch, Coverage};

/// A source of facts about a live system.
///
/// The law: a read that fails is a gap, never a zero. Rows of one call carry the time of their own read.
/// Nothing is written to the system under watch. What can't be seen is said in the coverage, with the
/// command, setting or grant that would change it.
pub trait Collector: Send {
    /// Its name in the tables and the coverage, e.g. `host` or `mysql://127.0.0.1:3306`. Never a secret.
    fn source(&self) -> String;

    /// Finds out what can be read: one coverage entry for the source itself and one for each part that is
    /// switched off or not permitted. Called once, before anything else.
    ///
    /// # Errors
    /// If the source as a whole can't be used; the run does not start then.
    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError>;

    /// Puts what is set (versions, limits, options) into `batch`. Called at the start and at the end.
    ///
    /// # Errors
    /// If it could not be read: a gap.
    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError>;

    /// Puts what is so now into `batch`. Called once an interval. What was put in before an error is kept.
    ///
    /// # Errors
    /// If some of it could not be read: a gap.
    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError>;

    /// Whether a thread of its own has panicked: what that reads is missing from then on.
    fn has_panicked(&mut self) -> bool {
        false
    }

    /// CPU time of threads of its own, besides the one that calls it.
    fn other_cpu_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// Why a source can't be used at all. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// What `--watch` was given is not understood.
    #[error("{0}")]
    BadAddress(String),
    /// Nothing answers there.
    #[error("{source_name}: {why}")]
    Unreachable {
        /// The source.
        source_name: String,
        /// Why, and what to look at.
        why: String,
    },
    /// It answers, but not to us: wrong account or password.
    #[error("{source_name}: {why}")]
    Denied {
        /// The source.
        source_name: String,
        /// The server's words.
        why: String,
    },
    /// The account lacks a grant without which the source can't be judged.
    #[error("{source_name}: {why}; run: {grant} (or go on without it: --partial)")]
    MissingGrant {
        /// The source.
        source_name: String,
        /// What can't be read.
        why: String,
        /// The exact statement that would change it.
        grant: String,
    },
}

/// Why one read failed: a gap in the recording.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// What `cargo xtask new collector` writes.
#[cfg(test)]
#[path = "../../../xtask/stubs/collector.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_new_says_so() {
        let mut source = stub::make("new:here", &watch::Options::default()).unwrap();
        assert!(source.probe().is_err_and(|error| error.to_string().contains("not written yet")));
    }
}
