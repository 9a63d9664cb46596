//! Makes requests from a session: templates, conditions, captures, checks and feeders. It is pure:
//! it opens no files and reads no clock, so that the scenario's text and data, a seed and the
//! responses determine what is sent.

mod capture;
mod condition;
mod context;
pub mod document;
pub mod encoding;
mod failure;
mod feeder;
pub mod fill;
mod names;
mod number;
mod pattern;
pub mod program;
mod random;
mod response;
pub mod session;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use capture::{Capture, Pick};
pub use condition::{Condition, Subjects};
pub use context::Context;
pub use failure::StepFailure;
pub use feeder::{AtEnd, Draw, Drawer, Fault, Feeder, FeederError, MAX_COLUMNS, Order, Row};
pub use fill::FilledRequest;
pub use holdup_recording::nearest::nearest;
pub use names::{Names, Slot};
pub use random::Random;
pub use response::{Needs, Response};
pub(crate) use template::expression_bytes;
pub use template::{Template, TemplateError};
pub use value::Value;
