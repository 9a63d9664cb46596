//! What makes a request out of a session: templates, conditions, captures, checks and feeders. Pure: it opens no files
//! and asks no clock, so that what a scenario does follows from its text, its data, a seed and the responses.

mod context;
mod failed;
mod feeder;
mod names;
mod random;
mod response;
mod value;

pub use context::Context;
pub use failed::Failed;
pub use feeder::{Fault, Feeder, FeederError, MAX_COLUMNS, Row};
pub use names::{Names, Slot};
pub use random::Random;
pub use response::{Needs, Response};
pub use value::Value;
