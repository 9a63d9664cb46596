//! The shares that decide whether a cause matters.

/// A cause that accounts for a smaller share of the excess than this does not matter here.
pub const MATTERS: f64 = 0.10;

/// A service whose requests take this many times what they take unloaded is slow itself; that its slow requests then
/// use up the generator's connections is its doing, not the generator's.
pub const SERVICE_SLOWED: f64 = 2.0;
