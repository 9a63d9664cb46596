//! When requests arise: by the schedule, or when a user has finished thinking. Times are
//! nanoseconds of the monotonic clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::player::Player;
use crate::model::{Closed, Load};
use crate::schedule::{Arrival, Arrivals, Live, Share};

/// See the module.
#[expect(clippy::large_enum_variant, reason = "there is one a loop")]
pub enum Demand {
    /// An open model.
    Open(ScheduleCursors),
    /// A closed model.
    Closed(Users),
    /// A recorded mix.
    Played(Box<Player>),
}

/// Two cursors into the schedule: up to what is due, and up to what has got a slot or was given up.
/// The requests between them wait, and take no memory.
pub struct ScheduleCursors {
    due: Lookahead,
    next: Lookahead,
    started: i64,
    /// While this says so, more arrivals may be added.
    live: Option<Live>,
    /// Waiting requests.
    pub waiting: u64,
}

/// Looks one arrival ahead. An empty schedule may fill again: a search keeps adding.
struct Lookahead {
    arrivals: Arrivals,
    head: Option<Arrival>,
}

impl Lookahead {
    fn new(arrivals: Arrivals) -> Self {
        Self { arrivals, head: None }
    }

    #[inline]
    fn peek(&mut self) -> Option<&Arrival> {
        if self.head.is_none() {
            self.head = self.arrivals.next();
        }
        self.head.as_ref()
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        self.peek();
        self.head.take()
    }
}

/// Users who each wait for a response, and then think.
pub struct Users {
    /// When each user's thinking ends, and the user's slot.
    thinking: BinaryHeap<Reverse<(i64, u32)>>,
    /// Think time, nanoseconds.
    pub think_ns: i64,
    /// When they stop sending.
    pub until: i64,
    share: Share,
    made: u64,
    /// Sessions (or requests) that may still begin; none for no limit but time.
    left: Option<u64>,
    /// When each user takes part.
    closed: Closed,
    /// Start of the load.
    started: i64,
}

impl Demand {
    /// This share's part of `load`.
    pub fn new(load: &Load, share: Share) -> Self {
        match load {
            Load::Open(schedule) if schedule.as_recorded_mix().is_some() => Self::Played(Box::default()),
            Load::Open(schedule) => Self::Open(ScheduleCursors {
                due: Lookahead::new(schedule.arrivals(share)),
                next: Lookahead::new(schedule.arrivals(share)),
                live: schedule.as_live().cloned(),
                started: 0,
                waiting: 0,
            }),
            Load::Closed(closed) => Self::Closed(Users {
                thinking: BinaryHeap::new(),
                think_ns: closed.think.as_nanos() as i64,
                until: closed.length.as_nanos() as i64,
                share,
                made: 0,
                left: closed.iterations.map(|n| share.count(n)),
                closed: closed.clone(),
                started: 0,
            }),
        }
    }

    /// Starts, with this many slots.
    pub fn start(&mut self, started: i64, slots: u32) {
        match self {
            Self::Open(due) => due.started = started,
            Self::Played(player) => player.started = started,
            Self::Closed(users) => {
                users.until += started;
                users.started = started;
                let ramp_up_ns = users.closed.ramp_up.as_nanos() as i64;
                for slot in 0..slots {
                    let begins = ramp_up_ns * i64::from(slot) / i64::from(slots.max(1));
                    if let Some(begins) = users.closed.next_part(users.user(slot), begins) {
                        users.thinking.push(Reverse((started + begins, slot)));
                    }
                }
            }
        }
    }

    /// Whether it is a closed model.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether each slot belongs to one user or session for as long as that lasts.
    pub fn has_owners(&self) -> bool {
        matches!(self, Self::Closed(_) | Self::Played(_))
    }

    /// Requests that are due and have no slot.
    pub fn waiting(&self) -> u64 {
        match self {
            Self::Open(due) => due.waiting,
            Self::Closed(_) => 0,
            Self::Played(player) => player.waiting,
        }
    }

    /// When the next timed event comes: a request is due, or one has waited for `timeout_ns` and is
    /// given up.
    pub fn next_moment(&mut self, timeout_ns: i64) -> i64 {
        match self {
            Self::Open(due) => {
                let comes = due.due.peek().map_or(i64::MAX, |a| due.started + a.due_ns);
                due.oldest().map_or(comes, |oldest| comes.min(oldest + timeout_ns))
            }
            Self::Closed(users) => {
                let next = users.thinking.peek().map_or(i64::MAX, |Reverse((due, _))| *due);
                if next < users.until { next } else { i64::MAX }
            }
            Self::Played(player) => player.next_moment(),
        }
    }

    /// Whether no more arrivals will come, and none waits.
    pub fn is_over(&mut self, now: i64) -> bool {
        match self {
            Self::Open(due) => {
                let may_come = due.live.as_ref().is_some_and(|live| !live.is_over());
                due.waiting == 0 && !may_come && due.due.peek().is_none()
            }
            Self::Closed(users) => {
                now >= users.until
                    || users.thinking.is_empty() && !users.closed.stages.is_empty()
                    || users.left == Some(0) && users.thinking.is_empty()
            }
            Self::Played(player) => player.is_over(),
        }
    }
}

impl ScheduleCursors {
    /// Takes the arrivals that have become due, and returns their number.
    pub fn admit(&mut self, now: i64) -> u64 {
        let before = self.waiting;
        while self.due.peek().is_some_and(|a| self.started + a.due_ns <= now) {
            self.due.head = None;
            self.waiting += 1;
        }
        self.waiting - before
    }

    /// When the oldest waiting request was due.
    pub fn oldest(&mut self) -> Option<i64> {
        if self.waiting == 0 {
            return None;
        }
        self.next.peek().map(|a| self.started + a.due_ns)
    }

    /// The oldest waiting request, and when it was due.
    pub fn take(&mut self) -> Option<(Arrival, i64)> {
        if self.waiting == 0 {
            return None;
        }
        let arrival = self.next.next()?;
        self.waiting -= 1;
        Some((arrival, self.started + arrival.due_ns))
    }
}

impl Users {
    /// The first user whose thinking has ended by `now`, and when it ended.
    pub fn next(&mut self, now: i64) -> Option<(i64, u32)> {
        let Reverse((due, slot)) =
            *self.thinking.peek().filter(|Reverse((due, _))| *due <= now && *due < self.until)?;
        self.thinking.pop();
        Some((due, slot))
    }

    /// The user of a slot thinks until `due`.
    pub fn think(&mut self, slot: u32, due: i64) {
        self.thinking.push(Reverse((due, slot)));
    }

    /// Number of a slot's user among those of all shares, from 0.
    fn user(&self, slot: u32) -> u64 {
        u64::from(self.share.index) + u64::from(slot) * u64::from(self.share.of)
    }

    /// Whether a slot's user takes part at `now`. If not, the user comes back when there are enough
    /// users again.
    pub fn takes_part(&mut self, slot: u32, now: i64) -> bool {
        if self.closed.stages.is_empty() {
            return true;
        }
        match self.closed.next_part(self.user(slot), now - self.started) {
            Some(t) if t <= now - self.started => true,
            Some(t) => {
                self.think(slot, self.started + t);
                false
            }
            None => false,
        }
    }

    /// Index of the phase at `now`.
    pub fn phase_at(&self, now: i64) -> u32 {
        self.closed.phase_at(Duration::from_nanos((now - self.started).max(0) as u64)) as u32
    }

    /// Whether one more session (or request) may begin; if so, it is counted.
    pub fn may_begin(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Number of the next request, unique among all shares.
    pub fn number(&mut self) -> u64 {
        self.made += 1;
        u64::from(self.share.index) + (self.made - 1) * u64::from(self.share.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn due_requests_wait_in_order_and_expire_by_age() {
        let load = Load::Open(Schedule::constant(10.0, Duration::from_secs(1)));
        let mut demand = Demand::new(&load, Share::WHOLE);
        demand.start(1_000, 4);
        let Demand::Open(due) = &mut demand else { panic!("it is open") };
        assert_eq!((due.admit(250_001_000), due.oldest(), due.waiting), (3, Some(1_000), 3));
        assert_eq!(due.take().map(|(a, at)| (a.number, at)), Some((0, 1_000)));
        assert_eq!(due.oldest(), Some(100_001_000));
        assert_eq!(demand.next_moment(50_000_000), 150_001_000, "the second is given up before the fourth comes");
        assert_eq!(demand.next_moment(500_000_000), 300_001_000);
        assert!(!demand.is_over(i64::MAX));
    }

    #[test]
    fn users_think_and_stop_at_the_end() {
        let closed = Closed {
            users: 2,
            think: Duration::from_nanos(30),
            length: Duration::from_nanos(100),
            ..Closed::default()
        };
        let mut demand = Demand::new(&Load::Closed(closed), Share { index: 1, of: 3 });
        demand.start(1_000, 2);
        assert_eq!(demand.next_moment(1), 1_000);
        let Demand::Closed(users) = &mut demand else { panic!("it is closed") };
        assert_eq!((users.next(999), users.next(1_000), users.next(1_000)), (None, Some((1_000, 0)), Some((1_000, 1))));
        assert_eq!((users.number(), users.number()), (1, 4));
        users.think(0, 1_050);
        users.think(1, 1_100);
        assert_eq!((users.next(5_000), users.next(5_000)), (Some((1_050, 0)), None));
        assert!(demand.is_over(1_100) && demand.next_moment(1) == i64::MAX);
    }
}
