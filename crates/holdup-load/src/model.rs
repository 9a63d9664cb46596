//! How much load: an open model, in which a schedule says when each request is due whatever the
//! service does, or a closed one, in which a fixed number of users each wait for the response
//! before they go on.

use std::time::Duration;

use holdup_recording::manifest::{self, Phase};

use crate::schedule::Schedule;

/// The load on the service.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Requests are due when the schedule says.
    Open(Schedule),
    /// Users who each wait for the response, and then think.
    Closed(Closed),
}

/// A closed model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Closed {
    /// Most users, each with at most one request in flight.
    pub users: u32,
    /// How many users there are when; empty for all of them all the time.
    pub stages: Vec<Stage>,
    /// Think time after each response.
    pub think: Duration,
    /// How long they go on.
    pub length: Duration,
    /// Number of sessions after which the load ends (of requests, without sessions). None for as
    /// many as fit into the time.
    pub iterations: Option<u64>,
    /// They start spread evenly over this time.
    pub ramp_up: Duration,
}

/// A part of a closed model in which the number of users stays the same or changes evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Name of the phase.
    pub name: String,
    /// How long.
    pub length: Duration,
    /// Users at its start.
    pub from: u32,
    /// Users at its end.
    pub to: u32,
}

impl Closed {
    /// Its phases: name and length.
    fn phases(&self) -> Vec<(String, Duration)> {
        if self.stages.is_empty() {
            return vec![(format!("{} users", self.users), self.length)];
        }
        self.stages.iter().map(|stage| (stage.name.clone(), stage.length)).collect()
    }

    /// Index of the phase at `t` from the start; the last one at the end and beyond.
    pub fn phase_at(&self, t: Duration) -> usize {
        let mut end = Duration::ZERO;
        let after = |stage: &Stage| {
            end += stage.length;
            t < end
        };
        self.stages.iter().position(after).unwrap_or(self.stages.len().saturating_sub(1))
    }

    /// The first time from `t` on (both nanoseconds from the start) at which user number `user`,
    /// from 0, takes part: there are more than `user` users. None if that never happens again.
    pub fn next_part(&self, user: u64, t: i64) -> Option<i64> {
        if self.stages.is_empty() {
            return Some(t);
        }
        let mut begin = 0;
        for Stage { length, from, to, .. } in &self.stages {
            let length = length.as_nanos() as i64;
            let end = begin + length;
            let (from, to, wanted) = (f64::from(*from), f64::from(*to), user as f64 + 1.0);
            let at = t.max(begin);
            if at < end {
                let users_at = |t: i64| from + (to - from) * (t - begin) as f64 / length.max(1) as f64;
                if users_at(at) >= wanted {
                    return Some(at);
                }
                if to >= wanted {
                    let reached = begin + ((wanted - from) / (to - from) * length as f64).ceil() as i64;
                    if reached < end {
                        return Some(reached.max(at));
                    }
                }
            }
            begin = end;
        }
        None
    }
}

impl Load {
    /// How long it takes.
    pub fn length(&self) -> Duration {
        match self {
            Self::Open(schedule) => schedule.length(),
            Self::Closed(closed) => closed.length,
        }
    }

    /// Names of its phases in order.
    pub fn phase_names(&self) -> Vec<String> {
        match self {
            Self::Open(schedule) => schedule.stretches().iter().map(|s| s.name.clone()).collect(),
            Self::Closed(closed) => closed.phases().into_iter().map(|(name, _)| name).collect(),
        }
    }

    /// Its phases if it starts at `started_at`, nanoseconds since the Unix epoch. A closed model offers no rate: 0.
    pub fn phases(&self, started_at: i64) -> Vec<Phase> {
        let mut from = started_at;
        let mut phase = |name: String, length: Duration, rate_from: f64, rate_to: f64| {
            let to = from + length.as_nanos() as i64;
            let phase = Phase { name, from, to, rate_from, rate_to };
            from = to;
            phase
        };
        if let Self::Open(schedule) = self
            && let Some(live) = schedule.as_live()
        {
            let at = |t: Duration| started_at + t.as_nanos() as i64;
            let phase = |s: crate::schedule::LiveStretch| Phase {
                from: at(s.from),
                to: at(s.from + s.length),
                name: s.name,
                rate_from: s.rate,
                rate_to: s.rate,
            };
            return live.stretches().into_iter().map(phase).collect();
        }
        match self {
            Self::Open(schedule) => {
                schedule.stretches().iter().map(|s| phase(s.name.clone(), s.length, s.rate_from, s.rate_to)).collect()
            }
            Self::Closed(closed) => {
                closed.phases().into_iter().map(|(name, length)| phase(name, length, 0.0, 0.0)).collect()
            }
        }
    }

    /// Its name in a recording.
    pub fn model(&self) -> manifest::Model {
        match self {
            Self::Open(_) => manifest::Model::Open,
            Self::Closed(_) => manifest::Model::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(length_s: u64, from: u32, to: u32) -> Stage {
        Stage { name: String::new(), length: Duration::from_secs(length_s), from, to }
    }

    #[test]
    fn users_take_part_when_there_are_so_many() {
        let stages = vec![stage(10, 0, 10), stage(5, 10, 10), stage(10, 10, 0), stage(5, 0, 2)];
        let closed = Closed { users: 10, stages, ..Closed::default() };
        let part = |user: u64, t_ms: i64| closed.next_part(user, t_ms * 1_000_000).map(|t| t / 1_000_000);
        assert_eq!((part(0, 0), part(4, 0), part(9, 0)), (Some(1_000), Some(5_000), Some(10_000)));
        assert_eq!((part(4, 7_000), part(9, 15_000)), (Some(7_000), Some(15_000)));
        // The last to come goes first, and the first two come again.
        assert_eq!((part(9, 15_200), part(4, 19_000), part(4, 21_000)), (None, Some(19_000), None));
        assert_eq!((part(0, 24_500), part(1, 24_500), part(0, 29_999)), (Some(27_500), None, Some(29_999)));
        let names = |t| closed.phase_at(Duration::from_secs(t));
        assert_eq!((names(0), names(10), names(26), names(99)), (0, 1, 3, 3));
    }
}
