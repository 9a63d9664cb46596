//! The counters of a host and its database as a table of one row a step (`frame`, `signal`), and the
//! stretches of it that stand out (`detect`). By how much a counter changed is `effect`; `jitter`
//! says which changes are chance.

pub mod detect;
pub mod effect;
pub mod frame;
pub mod jitter;
pub mod signal;

pub use detect::detect;
pub use frame::{Frame, Rows};
pub use signal::{Family, Kind, Signal};
