//! A recorded mix on its way to a server: what the logs say becomes what the load engine plays, and what came of it is told.

mod facts;
mod feed;
mod outcome;

pub use facts::{Facts, REPLAY};
pub use feed::{Plan, plan};
pub use outcome::PlayedFacts;
