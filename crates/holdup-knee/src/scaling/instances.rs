//! How many instances a load needs, and how many a budget of connections allows.

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// Tolerance for whole numbers that result from a division.
const HAIR: f64 = 1e-9;

/// Instances needed for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceCount {
    /// By the best single figure.
    pub instances: u32,
    /// If each were as good as the upper end of its interval.
    pub fewest: u32,
    /// If each were as bad as the lower end.
    pub most: u32,
}

/// Instances needed for `rate`, if each carries `each` minus a share of `headroom` (0-1), and no
/// shared resource is the limit.
pub fn instances(rate: f64, each: &Estimate, headroom: f64) -> InstanceCount {
    let share = (1.0 - headroom).max(1e-6);
    let of = |each: f64| (rate / (each * share).max(1e-9) - HAIR).ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
    InstanceCount { instances: of(each.value), fewest: of(each.high), most: of(each.low) }
}

/// What a budget of connections allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Connections that the instances open.
    pub connections: f64,
    /// Allowed connections.
    pub allowed: f64,
    /// Instances that fit in.
    pub instances: u32,
    /// Whether the needed ones fit in.
    pub fits: bool,
}

/// Checks `needed` instances that open `each` connections against `allowed`.
pub fn budget(needed: u32, each: f64, allowed: f64) -> Budget {
    let instances = (allowed / each.max(1e-9) + HAIR).floor().clamp(0.0, f64::from(u32::MAX)) as u32;
    Budget { connections: f64::from(needed) * each, allowed, instances, fits: needed <= instances }
}
