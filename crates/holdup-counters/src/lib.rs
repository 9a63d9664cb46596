//! What counters alone can say. From a table of per-interval series of a host and a database it finds the stretch in
//! which something was wrong, and names the causes that changed counters the way they do. Nothing is learned from
//! labelled cases: each cause is one file of what the mechanism must do to counters, what it can't do, and how much
//! either weighs. It reads no files and knows no recording; statements, plans and sessions are judged elsewhere.

#![forbid(unsafe_code)]

pub mod causes;
pub mod detect;
pub mod effect;
pub mod frame;
pub mod jitter;
pub mod judge;
pub mod postgres;
pub mod signal;
pub mod view;

pub use detect::detect;
pub use frame::{Frame, Rows};
pub use judge::{Ranking, Suspect, judge};
pub use signal::{Family, Kind, Signal};
pub use view::Normal;
