//! Thresholds that decide whether a cause matters.

/// A cause that accounts for a smaller share (0-1) of the excess than this does not matter.
pub const MATTERS: f64 = 0.10;

/// A service whose requests take this many times their unloaded time is slow itself. If its slow
/// requests then use up the generator's connections, that is the service's doing, not the
/// generator's.
pub const SERVICE_SLOWED: f64 = 2.0;
