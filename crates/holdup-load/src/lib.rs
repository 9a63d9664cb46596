//! Scenario -> requests. Open model: arrivals are scheduled beforehand and never wait for the
//! system under test; response time counts from the intended start.
//!
//! - [`yaml`], [`scenario`]: what to send, read from a file or from flags.
//! - [`model`]: how much; [`schedule`]: when each request is due, as a pure function;
//!   [`access_log`]: a schedule from an access log.
//! - [`engine`]: the loop that sends requests and records how they ended; [`http`] knows the
//!   protocol and nothing about time.
//! - [`script`]: what a session remembers, fills in and checks, without I/O.
//! - [`stats`]: histograms and the live snapshot.

pub mod access_log;
pub mod engine;
pub mod model;
pub mod scenario;
pub mod schedule;
pub mod script;
pub mod stats;
mod sys;
pub mod yaml;

pub use engine::{Engine, LoadError};
pub use scenario::Scenario;
pub use yaml::YamlError;
