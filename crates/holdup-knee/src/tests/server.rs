//! The simulated servers: a queue with c workers, and one that slows down with the number of its
//! requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::End;
use crate::statistics::Random;

/// How long requests take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Constant,
    Exponential,
}

/// Stalls of the machine: nothing moves for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    pub per_second: f64,
    pub shortest: f64,
    pub longest: f64,
}

/// Slow after an overload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metastable {
    /// With this many requests in it, it becomes slow.
    pub in_system: usize,
    /// This many times slower.
    pub factor: f64,
    /// Until it was idle for this long, seconds.
    pub idle: f64,
}

/// A service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    pub workers: usize,
    /// Mean time of a request in a worker, seconds.
    pub seconds: f64,
    pub length: Length,
    /// Further requests are refused with a fast error.
    pub most_in_system: usize,
    pub error_ratio: f64,
    pub never_ratio: f64,
    pub stalls: Option<Stalls>,
    pub metastable: Option<Metastable>,
    /// Contention and coherency of the Universal Scalability Law: instead of workers, all requests share the server.
    pub usl: Option<(f64, f64)>,
    /// When the client gives up, seconds.
    pub timeout: f64,
}

impl Service {
    pub fn new(workers: usize, seconds: f64, length: Length) -> Self {
        Self {
            workers,
            seconds,
            length,
            most_in_system: usize::MAX,
            error_ratio: 0.0,
            never_ratio: 0.0,
            stalls: None,
            metastable: None,
            usl: None,
            timeout: 10.0,
        }
    }

    pub fn capacity(&self) -> f64 {
        self.workers as f64 / self.seconds
    }

    /// Throughput with `n` requests in it, by the Universal Scalability Law.
    pub fn usl_rate(&self, n: f64) -> f64 {
        let (alpha, beta) = self.usl.unwrap_or((0.0, 0.0));
        n / self.seconds / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct At(f64);
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A service while it runs.
pub(crate) struct Server {
    service: Service,
    random: Random,
    stalls: Vec<(f64, f64)>,
    /// When each worker is free, in time without stalls.
    free: BinaryHeap<Reverse<At>>,
    /// When the server is done with requests.
    leaving: BinaryHeap<Reverse<At>>,
    /// What clients will see, by time.
    ends: BinaryHeap<Reverse<(At, At, bool)>>,
    is_slow: bool,
    idle_since: f64,
    /// For the shared server: attained service, which is its virtual time.
    attained: f64,
    clock: f64,
    sharing: BinaryHeap<Reverse<(At, usize)>>,
    deadlines: VecDeque<(f64, usize)>,
    arrived: Vec<f64>,
}

impl Server {
    pub fn new(service: Service, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut stalls = Vec::new();
        if let Some(Stalls { per_second, shortest, longest }) = service.stalls {
            let mut at = 0.0;
            while at < 400.0 {
                at += -(1.0 - random.uniform()).ln() / per_second;
                let length = shortest + (longest - shortest) * random.uniform();
                stalls.push((at, length));
                at += length;
            }
        }
        Self {
            service,
            random,
            stalls,
            free: (0..service.workers).map(|_| Reverse(At(0.0))).collect(),
            leaving: BinaryHeap::new(),
            ends: BinaryHeap::new(),
            is_slow: false,
            idle_since: 0.0,
            attained: 0.0,
            clock: 0.0,
            sharing: BinaryHeap::new(),
            deadlines: VecDeque::new(),
            arrived: Vec::new(),
        }
    }

    /// Time without the stalls before it.
    fn running(&self, at: f64) -> f64 {
        let mut lost = 0.0;
        for (from, length) in &self.stalls {
            if *from >= at {
                break;
            }
            lost += length.min(at - from);
        }
        at - lost
    }

    /// The moment at which so much time without stalls has passed.
    fn moment(&self, running: f64) -> f64 {
        let mut at = running;
        for (from, length) in &self.stalls {
            if *from > at {
                break;
            }
            at += length;
        }
        at
    }

    pub fn arrive(&mut self, now: f64, ends: &mut Vec<End>) {
        let work = match self.service.length {
            Length::Constant => self.service.seconds,
            Length::Exponential => -(1.0 - self.random.uniform()).ln() * self.service.seconds,
        };
        if self.service.error_ratio > 0.0 && self.random.uniform() < self.service.error_ratio {
            ends.push(End { at: now, response: 1e-4, is_well: false });
            return;
        }
        if self.service.usl.is_some() {
            if self.sharing.len() >= self.service.most_in_system {
                ends.push(End { at: now, response: 1e-4, is_well: false });
                return;
            }
            let id = self.arrived.len();
            self.arrived.push(now);
            self.sharing.push(Reverse((At(self.attained + work / self.service.seconds), id)));
            self.deadlines.push_back((now + self.service.timeout, id));
            return;
        }
        if self.leaving.len() >= self.service.most_in_system {
            ends.push(End { at: now, response: 1e-4, is_well: false });
            return;
        }
        if let Some(Metastable { in_system, factor: _, idle }) = self.service.metastable {
            if self.leaving.is_empty() && now - self.idle_since > idle {
                self.is_slow = false;
            }
            self.is_slow |= self.leaving.len() > in_system;
        }
        let work = if self.is_slow { work * self.service.metastable.map_or(1.0, |slow| slow.factor) } else { work };
        let Reverse(At(free)) = self.free.pop().expect("a worker");
        let leaves = free.max(self.running(now)) + work;
        self.free.push(Reverse(At(leaves)));
        let leaves = self.moment(leaves);
        self.leaving.push(Reverse(At(leaves)));
        let is_lost = self.service.never_ratio > 0.0 && self.random.uniform() < self.service.never_ratio;
        let is_well = !is_lost && leaves - now <= self.service.timeout;
        let end = if is_well { leaves } else { now + self.service.timeout };
        self.ends.push(Reverse((At(end), At(end - now), is_well)));
    }

    pub fn advance(&mut self, until: f64, ends: &mut Vec<End>) {
        if self.service.usl.is_some() {
            return self.advance_shared(until, ends);
        }
        while self.leaving.peek().is_some_and(|Reverse(At(at))| *at <= until) {
            if let Some(Reverse(At(at))) = self.leaving.pop() {
                self.idle_since = at;
            }
        }
        while self.ends.peek().is_some_and(|Reverse((At(at), _, _))| *at <= until) {
            if let Some(Reverse((At(at), At(response), is_well))) = self.ends.pop() {
                ends.push(End { at, response, is_well });
            }
        }
    }

    fn advance_shared(&mut self, until: f64, ends: &mut Vec<End>) {
        let running = self.running(until);
        while self.clock < running {
            let Some(&Reverse((At(goal), id))) = self.sharing.peek() else {
                self.clock = running;
                break;
            };
            let n = self.sharing.len() as f64;
            // Each of n requests gets the n-th part of the throughput; work is counted in mean
            // requests.
            let speed = self.service.usl_rate(n) / n;
            let needs = (goal - self.attained).max(0.0) / speed;
            if self.clock + needs > running {
                self.attained += (running - self.clock) * speed;
                self.clock = running;
                break;
            }
            self.clock += needs;
            self.attained = goal;
            self.sharing.pop();
            let at = self.moment(self.clock);
            let response = at - self.arrived[id];
            if response <= self.service.timeout {
                ends.push(End { at, response, is_well: true });
                self.arrived[id] = f64::NAN;
            }
        }
        while let Some(&(deadline, id)) = self.deadlines.front() {
            if deadline > until {
                break;
            }
            self.deadlines.pop_front();
            if !self.arrived[id].is_nan() {
                ends.push(End { at: deadline, response: self.service.timeout, is_well: false });
                self.arrived[id] = f64::NAN;
            }
        }
    }
}
