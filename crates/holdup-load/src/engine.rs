//! Sends a scenario's requests when they are due and writes down what became of each.
//!
//! One thread, one epoll set. Arrivals come from the schedule alone; a request that is due while every
//! connection is busy waits in a FIFO of due times, and its response time counts from when it was due. So
//! nothing the system under test does can make the load gentler or the numbers better. A request that
//! was never sent or timed out enters at its age.

mod connection;
mod run;
mod turns;

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use holdup_recording::hlog::Interval;
use holdup_recording::manifest::Phase;
use holdup_recording::writer::RowSink;

use crate::scenario::{Scenario, Target};
use crate::stats::{Latencies, Live};

/// How long the target may take to accept the first connection.
const FIRST_CONNECT: Duration = Duration::from_secs(5);

/// Why no load could be put on: nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The host name has no address.
    #[error("{host}: the name does not resolve ({why})")]
    NoAddress {
        /// As it was given.
        host: String,
        /// The resolver's words.
        why: String,
    },
    /// Nothing accepts connections there.
    #[error("{target} does not accept connections ({why}); is the service up, and is that its port?")]
    TargetDown {
        /// Host and port.
        target: String,
        /// The kernel's words.
        why: String,
    },
    /// The kernel refused what the loop itself needs.
    #[error("failed to start the load loop: {0}")]
    Kernel(#[from] std::io::Error),
}

/// Where facts go while the load runs.
pub struct Outputs {
    /// Rows of requests and of the generator's own samples.
    pub rows: Option<RowSink>,
    /// Histograms a second.
    pub slices: Option<mpsc::Sender<Interval>>,
    /// For whoever shows progress.
    pub live: Live,
}

/// What a run of the load came to.
pub struct Summary {
    /// Start of the schedule, nanoseconds since the Unix epoch.
    pub started_at: i64,
    /// When the last request had ended.
    pub ended_at: i64,
    /// The phases as they were.
    pub phases: Vec<Phase>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// CPU time of the loop over the run, as a share of one core.
    pub cpu_ratio: f64,
    /// Counts and exact latencies of each operation, in the scenario's order.
    pub operations: Vec<OperationSummary>,
}

/// Counts and latencies of one operation.
pub struct OperationSummary {
    /// Its name.
    pub operation: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed, never-sent ones among them.
    pub errors: u64,
    /// Histograms of the whole run.
    pub latencies: Latencies,
}

/// A scenario whose target has been reached once.
pub struct Engine<'a> {
    scenario: &'a Scenario,
    address: SocketAddr,
}

impl<'a> Engine<'a> {
    /// Resolves the target and makes sure that something accepts connections there.
    ///
    /// # Errors
    /// If it does not resolve or does not accept: nothing was sent then.
    pub fn prepare(scenario: &'a Scenario) -> Result<Self, LoadError> {
        let Target { host, port } = &scenario.target;
        let no_address = |why: String| LoadError::NoAddress { host: host.clone(), why };
        let addresses: Vec<SocketAddr> =
            (host.as_str(), *port).to_socket_addrs().map_err(|e| no_address(e.to_string()))?.collect();
        let mut last = None;
        for address in &addresses {
            match TcpStream::connect_timeout(address, FIRST_CONNECT) {
                Ok(_) => return Ok(Self { scenario, address: *address }),
                Err(e) => last = Some(e),
            }
        }
        match last {
            Some(e) => Err(LoadError::TargetDown { target: format!("{host}:{port}"), why: e.to_string() }),
            None => Err(no_address("no address".to_owned())),
        }
    }

    /// The phases of a load that starts at `started_at`, nanoseconds since the Unix epoch.
    pub fn phases(&self, started_at: i64) -> Vec<Phase> {
        self.scenario.load.phases(started_at)
    }

    /// Puts the load on until the schedule and all its requests have ended, or `stop` is set.
    ///
    /// # Errors
    /// If the kernel refuses what the loop itself needs. Errors of requests are rows.
    pub fn run(&self, outputs: Outputs, stop: &AtomicBool) -> Result<Summary, LoadError> {
        run::Run::new(self.scenario, self.address, outputs)?.drive(stop)
    }
}
