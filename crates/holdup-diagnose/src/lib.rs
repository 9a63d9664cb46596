//! Recording -> signals -> verdicts. Pure functions: the same recording always gives the same verdict, and
//! no clock, file or network is touched here. No language model is in the decision path.
//!
//! What raw rows amount to over a window is `holdup-signals`; this crate draws the conclusions.
//!
//! From below, each may import what stands above it in this list:
//!
//! - [`search`]: what a search for the knee found, in words.
//! - [`accounts`]: the app's and the database's account of one and the same request, joined.
//! - [`case`]: one recording laid out for judging: the degraded stretch, the calm one, and views of both.
//! - `failures`, [`resources`]: which requests failed of what; what requests wait for, and what that costs them.
//! - [`strength`]: the four grades of evidence.
//! - [`ledger`]: where the milliseconds of the requests went, and which have no owner.
//! - [`rules`]: one cause a file. Each says `Found`, `Cleared` or `NotJudged`, with evidence. `finding`: one that was found, as data.
//! - `applicable`: which causes the servers that were watched can have.
//! - `chain`: which cause brings about which, as a table. `confidence`, `between`, `rivals`: how sure a finding is, and what would
//!   tell it from others.
//! - [`verdict`], `links`, `judge`: the answer as data, and the findings ranked and linked into it.
//!
//! Beside them:
//!
//! - [`counters`]: what the host's and the database's counters alone say, where response time was not measured.
//! - [`audit`]: what is set against the vendors' advice; [`host_load`]: the load average explained; [`indicators`]: what
//!   host and servers did, for a comparison.
//! - `figures`: what is said where only a cloud's figures are there.

#![forbid(unsafe_code)]

pub mod accounts;
mod applicable;
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
pub mod strength;
#[cfg(test)]
mod testing;
pub mod verdict;

pub use case::{Case, Incomparable};
pub use holdup_signals::ClientView;
pub use judge::{diagnose, diagnose_against};
pub use links::debt;
pub use verdict::Diagnosis;
