//! What the engine reports about a step that it played.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One step as it was played: a constant offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The intended rate, requests per second.
    pub offered: f64,
    /// Its start, since the start of the load. It is the start of a whole second: `seconds[0]`
    /// begins here.
    pub from: Duration,
    /// Its end, since the start of the load.
    pub to: Duration,
    /// How much of its start is left out of means, from [`crate::Move::Offer`].
    pub settle: Duration,
    /// Its purpose, from [`crate::Move::Offer`].
    pub purpose: Purpose,
    /// Its whole seconds, in order, without holes.
    pub seconds: Vec<Second>,
    /// The generator did not offer the intended load: this step says nothing about the service.
    pub is_generator_limited: bool,
    /// Why, if so: a phrase for people.
    pub why_limited: Option<String>,
}

/// One second of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Requests that became due in it.
    pub due: u64,
    /// Requests that succeeded in it, whenever they were due.
    pub completed: u64,
    /// Requests that failed in it: errors, timeouts, never sent.
    pub failed: u64,
    /// At its end: sent and not answered, plus due and waiting for a connection.
    pub in_system_end: u64,
    /// Response times (from when they were due) of requests that *succeeded* in it. Failures are
    /// counted, never timed here: a fast error would look like a fast service, one timeout like a
    /// slow one.
    pub response: Summary,
    /// Service times (from the send) of the same requests.
    pub service: Summary,
    /// The machine itself stood still in it (stolen time, the generator's own lag): left out of
    /// means.
    pub is_disturbed: bool,
}

/// Summary of a distribution, nanoseconds. All are 0 when `count` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
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

/// Why a step is played. [`crate::judge`] uses it only to look for hysteresis after `Overload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Larger and larger rates, until the service does not keep up.
    Explore,
    /// Between a rate that held and one that did not.
    Refine,
    /// A rate again, to see whether the result is the same.
    Confirm,
    /// Deliberately more than the service can do.
    Overload,
    /// A rate that held, directly after an overload.
    Recover,
    /// A rate for the shape of the curve.
    Curve,
}

impl Purpose {
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
}
