//! The kernel stamps what arrives with the wall clock; the loop keeps time by the monotonic one.

use crate::sys;

/// Wall clock and monotonic clock held together.
#[derive(Default)]
pub struct Clock {
    offset: i64,
    read_at: i64,
}

/// The offset is read again after this long: a slewed clock drifts by at most 500 ppm (adjtimex), 5 us.
const CLOCK_STALE_NS: i64 = 10_000_000;

impl Clock {
    /// Reads both clocks again if the last time was long ago. `now` is the monotonic clock's.
    pub fn refresh(&mut self, now: i64) {
        if now - self.read_at > CLOCK_STALE_NS {
            self.offset = sys::wall_ns() - sys::monotonic_ns();
            self.read_at = now;
        }
    }

    /// When something was received that could not have come before `earliest`. A stamp that can't be right,
    /// because the wall clock jumped, is not believed.
    pub fn moment(&self, stamp: Option<i64>, earliest: i64) -> i64 {
        let slack = CLOCK_STALE_NS / 2;
        match stamp.map(|s| s - self.offset) {
            Some(at) if at >= earliest => {
                if at <= self.read_at + 2 * CLOCK_STALE_NS {
                    at
                } else {
                    sys::monotonic_ns().min(at).max(earliest)
                }
            }
            Some(at) if at >= earliest - slack => earliest,
            _ => sys::monotonic_ns(),
        }
    }
}
