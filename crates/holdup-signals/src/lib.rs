//! What raw rows amount to: rates, means, plateaus, episodes, and the evidence that points back at
//! the rows. Derived when a recording is read, never stored. This crate knows no causes.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod app_server;
pub mod autovacuum;
pub mod band;
pub mod blockers;
pub mod change;
pub mod client;
pub mod copies;
pub mod counters;
pub mod critical_path;
pub mod database;
pub mod debt;
pub mod degradation;
pub mod demand;
pub mod disk_waits;
pub mod disks;
pub mod distribution;
pub mod disturbance;
pub mod episodes;
pub mod evidence;
pub mod flows;
pub mod full_disk;
pub mod gains;
pub mod index_builds;
pub mod latency;
pub mod limit_shares;
pub mod limits;
pub mod memory;
pub mod memory_setting;
pub mod mix;
pub mod mounts;
pub mod network_limits;
pub mod objectives;
pub mod operations;
pub mod plans;
pub mod plateau;
pub mod pooler;
pub mod ports;
pub mod processes;
pub mod runtime;
pub mod server_waits;
pub mod sessions;
pub mod slowed_operations;
pub mod spans;
pub mod stretches;
pub mod tables;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
pub mod throttle;
pub mod timing;
pub mod traced;
pub mod useful_reads;
pub mod vacuum;
pub mod validity;
pub mod view;
pub mod warm_up;
pub mod written;
pub mod yardstick;

pub use blockers::{Blockers, Holder};
pub use client::ClientView;
pub use database::DigestUse;
pub use degradation::Degradation;
pub use disks::{Disk, Disks, Transfers};
pub use distribution::Distribution;
pub use evidence::Evidence;
pub use memory::Memory;
pub use mounts::Mount;
pub use plateau::Plateau;
pub use sessions::{Busy, SessionGroup};
pub use threads::{Asleep, Place};
pub use validity::Validity;
pub use view::{Counter, Gauge, Growth, Mean, View};
pub use warm_up::WarmUp;

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
    pub fn calm(what_for: &str) -> Self {
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
