//! What raw rows amount to: rates, means, plateaus, episodes, and the evidence that points back at
//! the rows. Derived when a recording is read, never stored. This crate knows no causes.

#![forbid(unsafe_code)]

pub mod app;
pub mod client;
pub mod database;
pub mod evidence;
pub mod host;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;
pub mod view;
pub mod yardstick;

pub use client::degradation::Degradation;
pub use client::validity::Validity;
pub use client::warm_up::WarmUp;
pub use database::blockers::{Blockers, Holder};
pub use database::server::DigestUse;
pub use database::sessions::{Busy, SessionGroup};
pub use evidence::Evidence;
pub use host::disks::{Disk, Disks, Transfers};
pub use host::memory::Memory;
pub use host::mounts::Mount;
pub use host::threads::{Asleep, Place};
pub use time::distribution::Distribution;
pub use time::plateau::Plateau;
pub use time::requests::ClientView;
pub use view::{Counter, Gauge, Growth, Mean, View};

/// A fact that a rule needs and the recording lacks. It makes the rule's outcome `NotJudged`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, in words with table and column or metric.
    pub what: String,
    /// What to record to have it, e.g. `--watch host`.
    pub enable: String,
}

impl Missing {
    /// A missing fact and what would record it.
    pub fn new(what: impl Into<String>, enable: impl Into<String>) -> Self {
        Self { what: what.into(), enable: enable.into() }
    }

    /// No baseline window, here or in another recording.
    pub fn baseline(what_for: &str) -> Self {
        let enable =
            "a longer recording that includes a healthy stretch; or --against another recording of healthy time";
        Self::new(format!("a baseline window{what_for}"), enable)
    }
}

/// A stretch of time, nanoseconds since the Unix epoch, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start.
    pub from: i64,
    /// End.
    pub to: i64,
}

impl Window {
    /// Whether `at` lies in it.
    pub fn contains(&self, at: i64) -> bool {
        self.from <= at && at < self.to
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }
}
