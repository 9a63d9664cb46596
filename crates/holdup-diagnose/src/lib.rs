//! Recording -> signals -> verdicts. Pure functions: the same recording always gives the same
//! verdict, and this crate touches no clock, file or network. No language model is in the decision
//! path.
//!
//! `holdup-signals` computes what raw rows amount to over a window; this crate draws the
//! conclusions.
//!
//! Imports go upward only: each module may import those above it in this list.
//!
//! - [`search`]: the result of a search for the knee, in words.
//! - [`case`]: one recording laid out for judging: the episode, the baseline window, and views of
//!   both.
//! - `failures`, [`resources`]: which requests failed, and of what; what requests wait for, and
//!   what that costs them.
//! - [`strength`]: the grades of evidence.
//! - [`change`]: a setting that moves, and how each platform takes it. Every command that sets
//!   something is made there. `generator`: the load generator's fitness, in words.
//! - [`ledger`]: where the milliseconds of the requests went, and which have no owner.
//! - [`trace`], `instant`: what counters and one moment show. [`next_command`]: a command that shows a
//!   cause.
//! - [`causes`]: one folder per cause. Each returns `Found`, `Cleared` or `NotJudged`, with evidence.
//!   [`Cause`] is their list, below everything that names one. `finding`: a found cause as data.
//! - `changed`: changes of catalogs and settings beside the causes that they belong to.
//! - `applicable`: which causes the watched servers can have.
//! - `link`: which finding follows from which, by the edges that causes name. `confidence`, `between`,
//!   `rivals`: how certain a finding is, and what would tell it from others.
//! - [`verdict`], `links`, `judge`: the answer as data, and the findings ranked and linked into it.
//!
//! Beside them:
//!
//! - [`counters`]: what the host's and the database's counters alone show, if response time was not
//!   measured.
//! - [`audit`]: settings that deviate from the vendors' advice; [`host_load`]: the load average
//!   explained; [`indicators`]: what host and servers did, for a comparison.
//! - [`services`]: the table of services and one request's waterfall, from traces.
//! - `figures`: the headline if there are only a cloud's figures.

#![forbid(unsafe_code)]

mod applicable;
pub mod audit;
mod between;
pub mod case;
mod cause;
pub mod causes;
pub mod change;
mod changed;
mod confidence;
pub mod counters;
pub mod explain;
mod failures;
mod figures;
mod finding;
mod gains;
mod generator;
pub mod host_load;
pub mod indicators;
mod instant;
mod judge;
pub mod ledger;
mod link;
mod links;
mod load;
pub mod next_command;
mod origin;
pub mod resources;
mod rivals;
pub mod search;
pub mod services;
pub mod stages;
pub mod strength;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod verdict;

pub use case::{Case, Incomparable};
pub use cause::{Cause, UnknownCause};
pub use holdup_signals::ClientView;
pub use judge::excerpt::{CHOICE, UNREAD};
pub use judge::{diagnose, diagnose_against, diagnose_fleet};
pub use links::debt;
pub use verdict::Diagnosis;
