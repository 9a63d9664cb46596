//! When each request is due, as a pure function of its number. Nothing about the system under test
//! can move it, and the same scenario always gives the same schedule. So processes can take shares
//! of it without coordination.
//!
//! With the offered rate r(t), the k-th request (from 0) is due when the integral of r reaches k.
//! With Poisson arrivals it is due when the integral reaches the sum of the first k + 1 of a
//! sequence of unit exponentials that a seed determines. Requests in a group are all due when its
//! first is. A replayed log gives the times itself. The schedule does not know what is sent.

mod arrivals;
mod curve;
mod exponential;
mod groups;
mod live;
mod place;
pub mod played;
mod profiles;
mod replay;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use arrivals::Arrivals;
pub use live::{Live, LiveStretch};
pub use played::RecordedMix;
pub use replay::{Replay, ReplayedRequest};

use curve::{Curve, REQUEST};

/// A part of the schedule, recorded as a phase with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Name of the phase.
    pub name: String,
    /// How long.
    pub length: Duration,
    /// Requests per second at its start, to a millionth.
    pub rate_from: f64,
    /// Requests per second at its end. In between the rate changes evenly, except within a period
    /// of a sine.
    pub rate_to: f64,
}

/// A part of the schedule: the requests whose number leaves `index` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 0, below `of`.
    pub index: u32,
    /// Number of shares.
    pub of: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The `index`-th (from 0) of `of` equal parts of this share, e.g. of the loops of one process.
    #[must_use]
    pub fn part(self, index: u32, of: u32) -> Self {
        Self { index: self.index + index * self.of, of: self.of * of }
    }

    /// How many of `count` items, numbered from 0, are in this share.
    pub fn count(self, count: u64) -> u64 {
        count.saturating_sub(u64::from(self.index)).div_ceil(u64::from(self.of.max(1)))
    }
}

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the whole schedule, from 0.
    pub number: u64,
    /// When it is due, nanoseconds from the start of the schedule.
    pub due_ns: i64,
    /// Index of its stretch.
    pub phase: u32,
    /// Index into [`Replay::requests`]: what to send. None if the scenario's operations are sent by
    /// their weights.
    pub request: Option<u32>,
}

/// The whole schedule. A clone shares its state.
#[derive(Clone, Debug)]
pub struct Schedule {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    stretches: Vec<Stretch>,
    /// One segment per stretch.
    curve: Curve,
    timing: Timing,
    /// The total of Poisson arrivals, which have to be counted one by one.
    total: OnceLock<u64>,
}

/// What determines the times of arrivals.
#[derive(Clone, Debug)]
enum Timing {
    /// Requests come `group` at a time, evenly spaced.
    Even {
        group: u32,
    },
    /// The same at random times.
    Poisson {
        seed: u64,
        group: u32,
    },
    Replay(Replay),
    Live(Live),
    Played(RecordedMix),
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        let same_timing = match (&a.timing, &b.timing) {
            (Timing::Even { group: a }, Timing::Even { group: b }) => a == b,
            (Timing::Poisson { seed: a, group: g }, Timing::Poisson { seed: b, group: h }) => (a, g) == (b, h),
            (Timing::Replay(a), Timing::Replay(b)) => a == b,
            (Timing::Live(a), Timing::Live(b)) => a.stretches() == b.stretches(),
            (Timing::Played(a), Timing::Played(b)) => a.is_same(b),
            _ => false,
        };
        same_timing && (&a.stretches, &a.curve) == (&b.stretches, &b.curve)
    }
}

impl Schedule {
    fn from_parts(stretches: Vec<Stretch>, curve: Curve, timing: Timing) -> Self {
        Self { inner: Arc::new(Inner { stretches, curve, timing, total: OnceLock::new() }) }
    }

    /// A schedule that is made while it is played: see [`Self::as_live`].
    pub fn live(longest: Duration, most: f64) -> Self {
        Self::from_parts(Vec::new(), Curve::default(), Timing::Live(Live::new(longest, most, None)))
    }

    /// The handle to add stretches with, if it is made while it is played.
    pub fn as_live(&self) -> Option<&Live> {
        match &self.inner.timing {
            Timing::Live(live) => Some(live),
            _ => None,
        }
    }

    /// The same rates with the arrivals of a Poisson process, which are independent of each other
    /// like those of many users. The same `seed` gives the same arrivals. A replayed log keeps its
    /// own arrivals.
    #[must_use]
    pub fn poisson(self, seed: u64) -> Self {
        match &self.inner.timing {
            Timing::Replay(_) | Timing::Played(_) => return self,
            Timing::Live(live) => {
                return Self::from_parts(Vec::new(), Curve::default(), Timing::Live(live.with_seed(seed)));
            }
            Timing::Even { .. } | Timing::Poisson { .. } => {}
        }
        self.with_timing(Timing::Poisson { seed, group: self.group() })
    }

    /// The same rates with arrivals in groups: `group` requests are due at the same instant. Evenly
    /// spaced groups begin anew in each stretch, and its last is smaller if the stretch has no more
    /// requests. Replayed logs and searches stay as they are.
    #[must_use]
    pub fn in_groups(self, group: u32) -> Self {
        match self.inner.timing {
            Timing::Even { .. } => self.with_timing(Timing::Even { group }),
            Timing::Poisson { seed, .. } => self.with_timing(Timing::Poisson { seed, group }),
            Timing::Replay(_) | Timing::Live(_) | Timing::Played(_) => self,
        }
    }

    fn with_timing(&self, timing: Timing) -> Self {
        Self::from_parts(self.inner.stretches.clone(), self.inner.curve.clone(), timing)
    }

    /// How many requests are due at the same instant; 1 unless they come in groups.
    pub fn group(&self) -> u32 {
        match self.inner.timing {
            Timing::Even { group } | Timing::Poisson { group, .. } => group,
            Timing::Replay(_) | Timing::Live(_) | Timing::Played(_) => 1,
        }
    }

    /// A replayed log as one stretch called `name`.
    pub fn replayed(replay: Replay, name: String, length: Duration) -> Self {
        Self::logged(name, length, replay.len() as u64, Timing::Replay(replay))
    }

    /// A recorded mix as one stretch called `name`.
    pub fn played(played: RecordedMix, name: String) -> Self {
        Self::logged(name, played.length(), played.total(), Timing::Played(played))
    }

    /// A log of so many arrivals as one stretch.
    fn logged(name: String, length: Duration, total: u64, timing: Timing) -> Self {
        let rate = total as f64 / length.as_secs_f64().max(1e-9);
        let mut curve = Curve::default();
        curve.push(curve::line(length, rate, rate));
        Self::from_parts(vec![Stretch { name, length, rate_from: rate, rate_to: rate }], curve, timing)
    }

    /// The recorded mix, if it is one.
    pub fn as_recorded_mix(&self) -> Option<&RecordedMix> {
        match &self.inner.timing {
            Timing::Played(played) => Some(played),
            _ => None,
        }
    }

    /// The stretches in order.
    pub fn stretches(&self) -> &[Stretch] {
        &self.inner.stretches
    }

    /// The replayed log, if it is one: [`Arrival::request`] is an index into it.
    pub fn replay(&self) -> Option<&Replay> {
        match &self.inner.timing {
            Timing::Replay(replay) => Some(replay),
            Timing::Even { .. } | Timing::Poisson { .. } | Timing::Live(_) | Timing::Played(_) => None,
        }
    }

    /// The seed of Poisson arrivals; none if arrivals follow from the rates alone or from a log.
    pub fn seed(&self) -> Option<u64> {
        match self.inner.timing {
            Timing::Poisson { seed, .. } => Some(seed),
            Timing::Live(ref live) => live.seed(),
            Timing::Even { .. } | Timing::Replay(_) | Timing::Played(_) => None,
        }
    }

    /// The arrivals of `share` in order. All shares together are exactly [`Share::WHOLE`], to the
    /// nanosecond; `due_ns` never decreases. Poisson arrivals of the other shares have to be
    /// computed on the way.
    pub fn arrivals(&self, share: Share) -> Arrivals {
        Arrivals::new(self.clone(), share)
    }

    /// How long it takes.
    pub fn length(&self) -> Duration {
        if let Timing::Live(live) = &self.inner.timing {
            return live.longest();
        }
        Duration::from_nanos(self.inner.curve.length_ns())
    }

    /// Total number of requests, exactly. Poisson arrivals are counted one by one the first time,
    /// at some 100 million a second.
    pub fn total(&self) -> u64 {
        match &self.inner.timing {
            Timing::Even { .. } => self.inner.curve.area().div_ceil(REQUEST) as u64,
            Timing::Poisson { .. } => *self.inner.total.get_or_init(|| self.arrivals(Share::WHOLE).count() as u64),
            Timing::Replay(replay) => replay.len() as u64,
            Timing::Live(_) => self.arrivals(Share::WHOLE).count() as u64,
            Timing::Played(played) => played.total(),
        }
    }

    /// The highest rate, requests per second. For a replayed log: its busiest second.
    pub fn peak_rate(&self) -> f64 {
        match &self.inner.timing {
            Timing::Even { .. } | Timing::Poisson { .. } => self.inner.curve.peak_rate(),
            Timing::Replay(replay) => replay.peak_rate(),
            Timing::Live(live) => live.most(),
            Timing::Played(played) => played.peak_rate(),
        }
    }

    /// Requests per second that are offered at `t` from the start; 0 after the end. For a replayed
    /// log: its arrivals within half a second of `t`.
    pub fn rate_at(&self, t: Duration) -> f64 {
        let at_ns = u64::try_from(t.as_nanos()).unwrap_or(u64::MAX);
        match &self.inner.timing {
            Timing::Even { .. } | Timing::Poisson { .. } => self.inner.curve.rate_at(at_ns),
            Timing::Replay(replay) => replay.rate_at(at_ns),
            Timing::Live(live) => live.at(t).1,
            Timing::Played(played) => played.rate_at(t),
        }
    }

    /// Index of the stretch at `t` from the start; the last one at the end and beyond.
    pub fn phase_at(&self, t: Duration) -> usize {
        if let Timing::Live(live) = &self.inner.timing {
            return live.at(t).0;
        }
        self.inner.curve.segment_at(u64::try_from(t.as_nanos()).unwrap_or(u64::MAX))
    }
}

fn pretty(rate: f64) -> String {
    let text = format!("{rate:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
