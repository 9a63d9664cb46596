//! Converts times: the kernel stamps arriving data with the wall clock; the loop uses the monotonic
//! clock.

use crate::sys;

/// The offset between wall clock and monotonic clock.
#[derive(Default)]
pub struct Clock {
    offset: i64,
    read_at: i64,
}

/// The offset is read again after this long: a slewed clock drifts by at most 500 ppm (adjtimex), 5 us.
const CLOCK_STALE_NS: i64 = 10_000_000;

/// Two clock readings this close together count as simultaneous.
const AT_ONCE_NS: i64 = 500;

/// Most attempts to get there: when the loop loses its CPU between two readings, the offset is
/// wrong by that time.
const READINGS: u32 = 5;

/// Wall clock minus monotonic clock.
fn offset() -> i64 {
    let (mut offset, mut shortest) = (0, i64::MAX);
    for _ in 0..READINGS {
        let before = sys::monotonic_ns();
        let wall = sys::wall_ns();
        let took = sys::monotonic_ns() - before;
        if took < shortest {
            (offset, shortest) = (wall - before - took / 2, took);
        }
        if took <= AT_ONCE_NS {
            break;
        }
    }
    offset
}

impl Clock {
    /// Reads both clocks again if the last time was long ago. `now` is in the
    /// monotonic clock's time.
    pub fn refresh(&mut self, now: i64) {
        if now - self.read_at > CLOCK_STALE_NS {
            self.offset = offset();
            self.read_at = now;
        }
    }

    /// The time at which data was received. It cannot be before `earliest`: an impossible stamp,
    /// after a jump of the wall clock, is ignored.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_moment_it_was_made() {
        let mut clock = Clock::default();
        let mut off = 0;
        for _ in 0..2_000 {
            clock.read_at = 0;
            let before = sys::monotonic_ns();
            clock.refresh(before);
            let stamp = sys::wall_ns();
            let after = sys::monotonic_ns();
            let at = clock.moment(Some(stamp), before);
            // Accurate to a microsecond, even if the CPU was lost between two readings of the
            // clocks.
            off += u32::from(at < before || at > after + 1_000);
        }
        assert!(off <= 2, "{off} of 2,000 stamps were read as another moment");
        let now = sys::monotonic_ns();
        assert!(clock.moment(Some(0), now) >= now, "a stamp that can't be right is not believed");
    }
}
