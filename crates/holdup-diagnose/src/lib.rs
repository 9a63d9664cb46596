//! Recording -> signals -> verdicts. Pure functions: the same recording always gives the same verdict, and
//! no clock, file or network is touched here. No language model is in the decision path.
//!
//! What raw rows amount to over a window is `holdup-signals`; this crate draws the conclusions.
//!
//! - [`case`]: one recording laid out for judging: the degraded stretch, the calm one, and views of both.
//! - [`resources`]: what requests wait for, and what that costs them.
//! - [`rules`]: one cause a file. Each says `Found`, `Cleared` or `NotJudged`, with evidence.
//! - [`accounts`]: the app's and the database's account of one and the same request, joined.
//! - [`ledger`]: where the milliseconds of the requests went, and which nobody owns.
//! - [`search`]: what a search for the knee found, in words.
//! - `confidence`, `rivals`: how sure a finding is, and what would tell it from others.
//! - `judge`, `links`, [`verdict`]: the rules' findings ranked and linked into one answer, and that answer as data.
//! - [`counters`]: what the host's and the database's counters alone say, where response time was not measured.
//! - [`audit`]: what is set against the vendors' advice; [`host_load`]: the load average explained; [`indicators`]: what
//!   host and servers did, for a comparison.
//! - `figures`: what is said where only a cloud's figures are there.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod audit;
mod between;
pub mod case;
mod chain;
mod confidence;
pub mod counters;
pub mod explain;
mod failures;
mod figures;
mod finding;
pub mod host_load;
pub mod indicators;
mod judge;
pub mod ledger;
mod links;
mod load;
pub mod resources;
mod rivals;
pub mod rules;
pub mod search;
#[cfg(test)]
mod testing;
pub mod verdict;

pub use case::{Case, Incomparable};
pub use holdup_signals::ClientView;
pub use judge::{diagnose, diagnose_against};
pub use links::debt;
pub use verdict::Diagnosis;
