//! The service that the demo and the labs put load on, and its noisy neighbour.
//!
//! It is a small but real HTTP backend: one thread per connection, a pool of real database
//! connections with a first-come-first-served checkout, and the metrics that such a service exposes
//! in production (Prometheus text, OpenTelemetry's names). Faults are flags: too small a pool, a
//! connection held over a call to a downstream service, a slow handler. Every number that it
//! exposes is measured. It can also be a queue of exactly known capacity, a server whose accept
//! queue overflows, an order service with logins, and a document store on LMDB. It knows nothing of
//! holdup's recordings or rules, and it is not a model of a fast server.

mod address;
mod answer;
mod blocking;
#[cfg(test)]
mod blocking_tests;
mod capacity;
mod database;
mod duration;
mod handler;
mod http;
mod listener;
#[cfg(test)]
mod mariadb_tests;
mod metrics;
mod mysql;
mod noisy_neighbour;
mod options;
mod orders;
#[cfg(test)]
mod orders_tests;
mod pool;
mod process;
mod queue;
mod running;
mod script;
mod seed;
mod server;
#[cfg(test)]
mod service_tests;
#[cfg(feature = "labs")]
mod store;
#[cfg(not(feature = "labs"))]
#[path = "service/no_store.rs"]
mod store;
mod tracing;
#[cfg(test)]
mod tracing_tests;

pub use noisy_neighbour::{NoisyNeighbourOptions, run_noisy_neighbour};
pub use options::Options;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why the service or the noisy neighbour could not start or continue. No text of it holds a
/// password.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// An option is invalid.
    #[error("{option}: {why}")]
    BadOption {
        /// The option as typed.
        option: &'static str,
        /// What is wrong with its value, and what would be right.
        why: String,
    },
    /// The port is not available.
    #[error("can't listen on {address}: {source}; is another service on that port?")]
    Listen {
        /// The address that was requested.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The database refuses the connection, or cannot be filled.
    #[error("{database}: {why}")]
    Database {
        /// Its address, without the password.
        database: String,
        /// Its own reason.
        why: String,
    },
    /// The document store cannot be made or opened.
    #[error("{}: {why}", folder.display())]
    Store {
        /// Its folder.
        folder: PathBuf,
        /// LMDB's reason, or the service's.
        why: String,
    },
    /// The system refused something else: a thread, a signal handler, stdout.
    #[error("failed to {what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Serves until SIGTERM or SIGINT (or the end of stdin, if requested). Prints `ready listen=…
/// admin=…` on stdout once it accepts.
///
/// # Errors
///
/// If options are wrong, a port is taken, or the database cannot be reached or filled.
pub fn run(options: Options) -> Result<(), ServiceError> {
    if options.seed_only {
        return match store::Store::open(&options)? {
            Some(_) => Ok(()),
            None => database::Target::open(&options)?.seed(options.rows),
        };
    }
    let stop = process::stop_on_signals()?;
    if options.stop_on_stdin_eof {
        process::stop_on_stdin_eof(stop)?;
    }
    process::raise_file_limit();
    let running = running::Running::start(&options)?;
    let admin = running.admin().map_or("none".to_owned(), |address| address.to_string());
    let mut stdout = std::io::stdout();
    writeln!(stdout, "ready listen={} admin={admin}", running.listen())
        .and_then(|()| stdout.flush())
        .map_err(|source| ServiceError::System { what: "write to stdout", source })?;
    while !stop.is_set() {
        std::thread::sleep(Duration::from_millis(20));
    }
    running.stop();
    Ok(())
}
