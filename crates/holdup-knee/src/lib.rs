//! From offered rates and response times to knee, breaking point, hysteresis and scaling law.
//!
//! It has two halves. [`Search`] is a controller: it takes the result of the last step and says
//! which offered rate to try next, and for how long, within a bounded time. [`judge`] takes all
//! steps that were played and reports what they show, each figure with a 95 % interval. Both are
//! pure: no I/O, no clock, no true randomness (draws have a fixed seed), so that a stored recording
//! is judged later exactly as during the run.
//!
//! [`scaling`] builds on that: how capacity grows over several searches, each with more of one
//! resource.
//!
//! It sends nothing and measures nothing: the load engine reports the results of steps, and also
//! whether the engine itself was the limit. It knows nothing about scenarios, protocols and files.

#![forbid(unsafe_code)]

mod config;
mod figure;
mod finding;
mod judge;
pub mod scaling;
mod search;
mod statistics;
mod step;

#[cfg(test)]
mod tests;

pub use config::{Config, Objective};
pub use figure::figure;
pub use finding::{Breaking, Curve, Estimate, Finding, Hysteresis, MissedRequirement, Peak, Point, StepResult, Usl};
pub use judge::judge;
pub use search::{Move, Search};
pub use step::{Purpose, Second, Step, Summary};
