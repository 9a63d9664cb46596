//! What makes a request out of a session: templates, conditions, captures, checks and feeders. Pure: it opens no files
//! and asks no clock, so that what a scenario does follows from its text, its data, a seed and the responses.

mod context;
mod failed;
mod feeder;
mod names;
mod nearest;
mod number;
mod random;
mod response;
mod template;
mod value;
#[cfg(test)]
mod world;

pub use context::Context;
pub use failed::Failed;
pub use feeder::{Fault, Feeder, FeederError, MAX_COLUMNS, Row};
pub use names::{Names, Slot};
pub use nearest::nearest;
pub use random::Random;
pub use response::{Needs, Response};
pub use template::{Template, TemplateError};
pub use value::Value;
