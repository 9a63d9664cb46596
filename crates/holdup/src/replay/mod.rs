//! Replays a recorded mix: turns logs into a load for the engine, and reports the outcome.

mod facts;
mod feed;
mod outcome;

pub use facts::{Facts, REPLAY};
pub use feed::{Plan, plan};
pub use outcome::PlayedFacts;
