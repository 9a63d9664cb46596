//! Walks along a schedule or one share of it. It does not compute an arrival from the one before:
//! each is a function of its number alone, and the walk only remembers its place on the curve.

use super::curve::REQUEST;
use super::exponential::Exponentials;
use super::groups::Groups;
use super::place::Place;
use super::{Arrival, Schedule, Share, Timing, live};

/// The arrivals of a share in order. See [`Schedule::arrivals`].
#[derive(Clone, Debug)]
pub struct Arrivals {
    schedule: Schedule,
    share: Share,
    /// Number of the next arrival.
    number: u64,
    walk: Walk,
}

#[derive(Clone, Debug)]
enum Walk {
    Even(Even),
    Groups(Groups),
    Poisson { gaps: Exponentials, area: u128, place: Place, group: u64 },
    Replay,
    Live(live::Walk),
}

/// Evenly spaced arrivals. Where the rate is constant, the next time is the last one plus a whole
/// number of nanoseconds; the remainder is carried exactly, so the result is the same as with a
/// division for each.
#[derive(Clone, Debug)]
struct Even {
    place: Place,
    area: u128,
    /// The time in the piece, and the rounded-off remainder in parts of `divisor`.
    moment: u64,
    rest: u64,
    divisor: u64,
    step: u64,
    step_rest: u64,
}

impl Even {
    fn next(&mut self, schedule: &Schedule, step: u128) -> Option<(u64, usize)> {
        if self.place.advance(schedule, self.area)? {
            let now = &self.place.now;
            self.divisor = if now.rate_from == now.rate_to { 2 * now.rate_from } else { 0 };
            if self.divisor > 0 {
                let divisor = u128::from(self.divisor);
                let within = self.area - self.place.before;
                (self.moment, self.rest) = ((within / divisor) as u64, (within % divisor) as u64);
                // A step can be longer than any piece: then it only has to lead out of this one.
                self.step = u64::try_from(step / divisor).unwrap_or(u64::MAX / 4);
                self.step_rest = (step % divisor) as u64;
            }
        }
        let moment = if self.divisor > 0 {
            let moment = self.moment;
            self.moment += self.step;
            self.rest += self.step_rest;
            if self.rest >= self.divisor {
                self.rest -= self.divisor;
                self.moment += 1;
            }
            moment
        } else {
            self.place.now.moment(self.area - self.place.before)
        };
        self.area += step;
        Some((self.place.start_ns + moment, self.place.segment))
    }
}

impl Arrivals {
    pub(super) fn new(schedule: Schedule, share: Share) -> Self {
        let first = u64::from(share.index);
        let walk = match &schedule.inner.timing {
            Timing::Even { group } if *group > 1 => Walk::Groups(Groups::new(*group)),
            Timing::Even { .. } => Walk::Even(Even {
                place: Place::new(),
                area: u128::from(first) * REQUEST,
                moment: 0,
                rest: 0,
                divisor: 0,
                step: 0,
                step_rest: 0,
            }),
            Timing::Poisson { seed, group } => {
                let mut gaps = Exponentials::new(*seed);
                let group = u64::from(*group).max(1);
                let area = u128::from(gaps.next()) * u128::from(group);
                Walk::Poisson { gaps, area, place: Place::new(), group }
            }
            // A recorded mix is read, not computed.
            Timing::Replay(_) | Timing::Played(_) => Walk::Replay,
            Timing::Live(live) => Walk::Live(live::Walk::new(live.clone())),
        };
        let mut arrivals = Self { schedule, share, number: 0, walk };
        arrivals.skip_to(first);
        arrivals
    }

    /// Makes `number` the next one.
    fn skip_to(&mut self, number: u64) {
        if let Walk::Poisson { gaps, area, group, .. } = &mut self.walk {
            for _ in self.number / *group..number / *group {
                *area += u128::from(gaps.next()) * u128::from(*group);
            }
        }
        self.number = number;
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        let number = self.number;
        let of = u64::from(self.share.of.max(1));
        let (due_ns, phase, request) = match &mut self.walk {
            Walk::Live(walk) => return walk.next(self.share),
            Walk::Even(even) => {
                let (due, phase) = even.next(&self.schedule, u128::from(of) * REQUEST)?;
                (due, phase, None)
            }
            Walk::Groups(groups) => {
                let (due, phase) = groups.arrival(&self.schedule, number)?;
                (due, phase, None)
            }
            Walk::Poisson { area, place, .. } => {
                place.advance(&self.schedule, *area)?;
                (place.start_ns + place.now.moment(*area - place.before), place.segment, None)
            }
            Walk::Replay => {
                let Timing::Replay(replay) = &self.schedule.inner.timing else { return None };
                let (due, request) = replay.arrival(number)?;
                (due, 0, request)
            }
        };
        self.skip_to(number.saturating_add(of));
        Some(Arrival { number, due_ns: due_ns as i64, phase: phase as u32, request })
    }
}
