//! Options of the services with known capacity. They run no SQL and have no pool: they exist to be
//! overloaded.

use std::time::Duration;

use crate::service::duration;
use crate::service::queue::Overflow;

/// See the module.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Services of known capacity (they run no SQL)")]
pub struct CapacityOptions {
    /// Serve as N servers would that each take exactly --service-time for any request
    ///
    /// The capacity is N divided by --service-time, whatever the CPU does.
    #[arg(long, value_name = "N", requires = "service_time", conflicts_with_all = ["blocking_workers", "admin", "routes", "orders"],
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub servers: Option<u32>,

    /// Serve with N threads that each accept a connection, answer one request after --service-time,
    /// and close
    #[arg(long, value_name = "N", requires = "service_time", conflicts_with_all = ["admin", "routes", "orders"],
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub blocking_workers: Option<u32>,

    /// Time to serve one request
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub service_time: Option<Duration>,

    /// Most requests that wait for one of --servers [default: no limit]
    #[arg(long, value_name = "N", requires = "servers", conflicts_with = "blocking_workers")]
    pub room: Option<u32>,

    /// Response to a request that finds no --room: a 503 at once, a closed connection, or no answer
    /// ever
    #[arg(long, value_name = "HOW", value_enum, requires = "servers", conflicts_with = "blocking_workers", default_value_t = Overflow::Refuse)]
    pub overflow: Overflow,

    /// Sigma of the Universal Scalability Law
    ///
    /// With n requests in the service each takes 1 + sigma (n - 1) + kappa n (n - 1) times as long.
    #[arg(long, value_name = "SIGMA", requires = "servers", conflicts_with = "blocking_workers", default_value_t = 0.0, value_parser = coefficient)]
    pub contention: f64,

    /// Kappa of the Universal Scalability Law, which makes throughput fall beyond a peak
    #[arg(long, value_name = "KAPPA", requires = "servers", conflicts_with = "blocking_workers", default_value_t = 0.0, value_parser = coefficient)]
    pub coherency: f64,

    /// Connections that wait in the kernel for one of --blocking-workers
    ///
    /// With one more than that, the kernel drops new ones.
    #[arg(long, value_name = "N", requires = "blocking_workers", conflicts_with = "servers", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(0..=65_535))]
    pub backlog: u32,
}

fn coefficient(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(format!("`{text}` is not between 0 and 1")) }
}
