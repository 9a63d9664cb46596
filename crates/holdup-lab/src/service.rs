//! The service that the demo and the labs put load on, and the hog that gets in its way.
//!
//! It answers for a small but real HTTP backend: a thread a connection, a pool of real database connections
//! with a first-come-first-served checkout, and the metrics such a service exposes in production (Prometheus text,
//! OpenTelemetry's names). Faults are flags: too small a pool, a connection held over a call to a
//! neighbour, a slow handler. Every number it exposes is measured. Beside that it can be a queue of exactly known
//! capacity, a server whose accept queue overflows, an order service with logins, and a document store on LMDB. It knows nothing of holdup's
//! recordings or rules, and is no model of how to write a fast server.

mod address;
mod blocking;
#[cfg(test)]
mod blocking_tests;
mod capacity;
mod database;
mod duration;
mod handler;
mod hog;
mod http;
mod listener;
#[cfg(test)]
mod mariadb_tests;
mod metrics;
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

pub use hog::{HogOptions, hog};
pub use options::Options;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why the service or the hog could not start or go on. No text of it holds a password.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// An option is not understood.
    #[error("{option}: {why}")]
    BadOption {
        /// The option as it is typed.
        option: &'static str,
        /// What is wrong with its value, and what would be right.
        why: String,
    },
    /// The port can't be had.
    #[error("can't listen on {address}: {source}; is another service on that port?")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The database does not let us in, or can't be filled.
    #[error("{database}: {why}")]
    Database {
        /// Its address, password left out.
        database: String,
        /// Its own reason.
        why: String,
    },
    /// The document store can't be made or opened.
    #[error("{}: {why}", folder.display())]
    Store {
        /// Its folder.
        folder: PathBuf,
        /// LMDB's reason, or ours.
        why: String,
    },
    /// The system refuses something else: a thread, a signal handler, stdout.
    #[error("failed to {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Serves until SIGTERM or SIGINT (or the end of stdin, where asked for). Says `ready listen=… admin=…` on
/// stdout once it accepts.
///
/// # Errors
/// If options are wrong, a port is taken, or the database can't be reached or filled.
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
