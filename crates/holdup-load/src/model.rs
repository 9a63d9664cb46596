//! How much load: an open model, in which a schedule says when each request is due whatever the service does,
//! or a closed one, in which a fixed number of users each wait for the response before they go on.

use std::time::Duration;

use holdup_recording::manifest::{self, Phase};

use crate::schedule::Schedule;

/// The demand that is put on the service.
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
    /// Users, each with one request in flight at most.
    pub users: u32,
    /// What each waits after a response before it asks again.
    pub think: Duration,
    /// How long they go on.
    pub length: Duration,
    /// Sessions after which all is over; without sessions, requests. None for as many as fit into the time.
    pub iterations: Option<u64>,
    /// They start spread evenly over this time.
    pub ramp_up: Duration,
}

impl Closed {
    /// Name of its only phase.
    pub fn name(&self) -> String {
        format!("{} users", self.users)
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
            Self::Closed(closed) => vec![closed.name()],
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
            Self::Closed(closed) => vec![phase(closed.name(), closed.length, 0.0, 0.0)],
        }
    }

    /// What it is called in a recording.
    pub fn model(&self) -> manifest::Model {
        match self {
            Self::Open(_) => manifest::Model::Open,
            Self::Closed(_) => manifest::Model::Closed,
        }
    }
}
