//! The counters of a host and its database as a table of one row a step (`frame`, `signal`), and the
//! stretches of it that stand out (`detect`). By how much a counter changed is `effect`; `jitter`
//! says which changes are chance. `recorded` makes such a table of a recording, by the metrics in
//! `names`.

pub mod detect;
pub mod effect;
pub mod frame;
pub mod jitter;
mod names;
mod recorded;
pub mod signal;

pub use detect::detect;
pub use frame::{Frame, Rows};
pub use recorded::Table;
pub use signal::{Family, Kind, Signal};
