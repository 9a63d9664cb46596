//! What the engine tells of a step that it played.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One step as it was played: a constant offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rate that was wanted, requests per second.
    pub offered: f64,
    /// Its start, since the start of the load. A whole second of it: `seconds[0]` begins here.
    pub from: Duration,
    /// Its end, since the start of the load.
    pub to: Duration,
    /// So much of its start is left out of means, as [`crate::Move::Offer`] said.
    pub settle: Duration,
    /// What it was played for, as [`crate::Move::Offer`] said.
    pub purpose: Purpose,
    /// Its whole seconds, in order, without holes.
    pub seconds: Vec<Second>,
    /// The generator did not offer what it should have: nothing is concluded about the service from this step.
    pub is_generator_limited: bool,
    /// Why, if so: a fragment for people.
    pub why_limited: Option<String>,
}

/// One second of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Requests that became due in it.
    pub due: u64,
    /// Requests that ended well in it, whenever they were due.
    pub completed: u64,
    /// Requests that failed in it: errors, timeouts, never sent.
    pub failed: u64,
    /// At its end: sent and not answered, plus due and waiting for a connection.
    pub in_system_end: u64,
    /// Response times (from when they were due) of those that *ended well* in it. Failures are counted, never timed here:
    /// a fast error would look like a fast service, one timeout like a slow one.
    pub response: Summary,
    /// Service times (from the send) of the same requests.
    pub service: Summary,
    /// The machine itself is known to have stood still in it (stolen time, the generator's own lag): left out of means.
    pub is_disturbed: bool,
}

/// A distribution in short, nanoseconds. All are 0 when `count` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// 50th percentile.
    pub p50_ns: f64,
    /// 95th percentile.
    pub p95_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
}

/// What a step is played for. It decides nothing in [`crate::judge`] except that hysteresis is looked for after `Overload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Larger and larger rates, until the service does not follow.
    Explore,
    /// Between a rate that held and one that did not.
    Refine,
    /// A rate again, to see whether the answer is the same.
    Confirm,
    /// More than it can do, on purpose.
    Overload,
    /// A rate that was fine, straight after an overload.
    Recover,
    /// A rate for the shape of the curve.
    Curve,
}

impl Purpose {
    /// All, in the order in which they come.
    pub const ALL: [Self; 6] = [Self::Explore, Self::Refine, Self::Confirm, Self::Overload, Self::Recover, Self::Curve];

    /// Its name in recordings and views.
    pub fn name(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Refine => "refine",
            Self::Confirm => "confirm",
            Self::Overload => "overload",
            Self::Recover => "recover",
            Self::Curve => "curve",
        }
    }

    /// The purpose of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.name() == name)
    }
}
