//! From offered rates and response times to knee, breaking point, hysteresis and scaling law.
//!
//! Two halves. [`Search`] is a controller: it is told how the last step went and says which offered rate to try next, for
//! how long, within a bounded time. [`judge`] looks at all steps that were played and names what they show, each figure
//! with an interval of 95 %. Both are pure: no I/O, no clock, no luck (what is drawn at random has a fixed seed), so that
//! a stored recording is judged later as it was judged live.
//!
//! [`scaling`] goes on from there: what several searches, each with more of something, say of how capacity grows.
//!
//! It sends nothing and measures nothing: what a step showed is the load engine's word, also whether the engine itself was
//! the limit. It knows nothing of scenarios, protocols and files.

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
mod simulation;

pub use config::{Config, Objective};
pub use figure::figure;
pub use finding::{Breaking, Curve, Estimate, Finding, Held, How, Hysteresis, Peak, Point, Usl};
pub use judge::judge;
pub use search::{Move, Progress, Search};
pub use step::{Purpose, Second, Step, Summary};
