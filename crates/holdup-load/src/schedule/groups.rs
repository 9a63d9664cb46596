//! Evenly spaced groups of arrivals: every request of a group is due when its first would be due
//! alone. So a stretch has exactly as many requests as without groups, and begins with a group.

use super::Schedule;
use super::curve::REQUEST;
use super::place::Place;

/// A walk along the groups. See the module.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    size: u64,
    /// Numbers of the present stretch's first request, and of the next stretch's.
    from: u64,
    until: u64,
    place: Place,
    /// Number of the present group's first request, and when that is due.
    first: Option<u64>,
    due_ns: u64,
}

impl Groups {
    /// Before the first group; each has `size` requests.
    pub fn new(size: u32) -> Self {
        Self { size: u64::from(size.max(1)), from: 0, until: 0, place: Place::new(), first: None, due_ns: 0 }
    }

    /// When request `number` is due, and the index of its stretch; none at the end of the schedule.
    /// Numbers must not decrease.
    pub fn arrival(&mut self, schedule: &Schedule, number: u64) -> Option<(u64, usize)> {
        if number >= self.until {
            let curve = &schedule.inner.curve;
            let stretch = &curve.segments[curve.segment_of(u128::from(number) * REQUEST)?];
            self.from = stretch.before.div_ceil(REQUEST) as u64;
            self.until = (stretch.before + stretch.area).div_ceil(REQUEST) as u64;
        }
        let first = number - (number - self.from) % self.size;
        if self.first != Some(first) {
            let area = u128::from(first) * REQUEST;
            self.place.advance(schedule, area)?;
            let (within, now) = (area - self.place.before, &self.place.now);
            // A constant rate divides exactly, as it does without groups.
            let moment = if now.rate_from == now.rate_to && now.rate_from > 0 {
                (within / (2 * u128::from(now.rate_from))) as u64
            } else {
                now.moment(within)
            };
            (self.first, self.due_ns) = (Some(first), self.place.start_ns + moment);
        }
        Some((self.due_ns, self.place.segment))
    }
}
