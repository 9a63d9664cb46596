//! A world for tests: services whose knee is known, under load step by step, by discrete-event simulation.

mod searches;
mod server;
mod sweeps;
mod truth;

use std::time::Duration;

use crate::statistics::Random;
use crate::{Config, Finding, Move, Purpose, Search, Second, Step, Summary, judge};

pub(crate) use server::{Length, Metastable, Server, Service, Stalls};
pub(crate) use truth::erlang_c;

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrivals {
    Even,
    Poisson,
}

/// A service under load.
pub(crate) struct World {
    server: Server,
    arrivals: Arrivals,
    /// Most requests per second that the generator sends.
    generator_most: f64,
    random: Random,
    now: f64,
    in_system: u64,
}

/// A request that ended: when, its response time, whether well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub at: f64,
    pub response: f64,
    pub is_well: bool,
}

impl World {
    pub fn new(service: Service, arrivals: Arrivals, seed: u64) -> Self {
        let random = Random::new(seed ^ 0x5eed);
        Self { server: Server::new(service, seed), arrivals, generator_most: f64::MAX, random, now: 0.0, in_system: 0 }
    }

    pub fn with_generator_most(mut self, most: f64) -> Self {
        self.generator_most = most;
        self
    }

    /// Plays a whole search and returns what it found, its steps and how long it took.
    pub fn search(mut self, config: &Config) -> (Finding, Vec<Step>, f64) {
        let mut search = Search::new(config.clone());
        let mut last = None;
        for _ in 0..500 {
            match search.next(Duration::from_secs_f64(self.now), last.take().as_ref()) {
                Move::Offer { rate, length, settle, purpose } => {
                    assert!(rate > 0.0 && rate <= config.most && length.subsec_nanos() == 0 && settle < length);
                    let gap = 0.3 + 0.7 * self.random.uniform();
                    self.pass(gap, &mut Vec::new());
                    last = Some(self.play(rate, length.as_secs(), settle, purpose));
                }
                Move::Drain { most } => self.drain(most.as_secs_f64()),
                Move::Done => break,
            }
        }
        // An engine waits for the requests in flight.
        self.drain(config.timeout.as_secs_f64());
        (judge(search.steps(), config), search.steps().to_vec(), self.now)
    }

    pub fn play(&mut self, rate: f64, length: u64, settle: Duration, purpose: Purpose) -> Step {
        let from = self.now;
        let sent = rate.min(self.generator_most);
        let mut due = from;
        let mut seconds = Vec::new();
        let mut ends = Vec::new();
        for index in 0..length {
            let until = from + (index + 1) as f64;
            let mut second = Second::default();
            ends.clear();
            while due < until {
                self.server.advance(due, &mut ends);
                self.server.arrive(due, &mut ends);
                second.due += 1;
                due += match self.arrivals {
                    Arrivals::Even => 1.0 / sent,
                    Arrivals::Poisson => -(1.0 - self.random.uniform()).ln() / sent,
                };
            }
            self.server.advance(until, &mut ends);
            self.in_system += second.due;
            assert!(ends.iter().all(|end| end.at <= until));
            self.in_system -= ends.len() as u64;
            second.completed = ends.iter().filter(|end| end.is_well).count() as u64;
            second.failed = ends.len() as u64 - second.completed;
            second.in_system_end = self.in_system;
            second.response = summary(&ends);
            second.service = second.response;
            seconds.push(second);
        }
        self.now = from + length as f64;
        let is_limited = rate > self.generator_most;
        Step {
            offered: rate,
            from: Duration::from_secs_f64(from),
            to: Duration::from_secs_f64(self.now),
            settle,
            purpose,
            seconds,
            is_generator_limited: is_limited,
            why_limited: is_limited.then(|| "its loop was busy".to_owned()),
        }
    }

    fn pass(&mut self, seconds: f64, ends: &mut Vec<End>) {
        ends.clear();
        self.now += seconds;
        self.server.advance(self.now, ends);
        self.in_system -= ends.len() as u64;
    }

    fn drain(&mut self, most: f64) {
        let until = self.now + most;
        let mut ends = Vec::new();
        while self.in_system > 0 && self.now < until {
            self.pass(0.1_f64.min(until - self.now), &mut ends);
        }
    }
}

fn summary(ends: &[End]) -> Summary {
    let mut times: Vec<f64> = ends.iter().filter(|end| end.is_well).map(|end| end.response * 1e9).collect();
    if times.is_empty() {
        return Summary::default();
    }
    let mut at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share).round() as usize;
        *times.select_nth_unstable_by(index, f64::total_cmp).1
    };
    let (p50_ns, p95_ns, p99_ns) = (at(0.5), at(0.95), at(0.99));
    let mean_ns = times.iter().sum::<f64>() / times.len() as f64;
    Summary { count: times.len() as u64, mean_ns, p50_ns, p95_ns, p99_ns }
}

#[test]
fn the_simulated_queues_have_the_response_times_of_theory() {
    for (workers, capacity, rate) in [(1, 30.0, 10.0), (4, 100.0, 80.0)] {
        let seconds = workers as f64 / capacity;
        let (mut sum, mut count) = (0.0, 0.0);
        for seed in 0..20 {
            let service = Service::new(workers, seconds, Length::Exponential);
            let mut world = World::new(service, Arrivals::Poisson, seed * 7919 + 1);
            for second in world.play(rate, 60, Duration::ZERO, Purpose::Curve).seconds {
                sum += second.response.mean_ns * 1e-9 * second.response.count as f64;
                count += second.response.count as f64;
            }
        }
        let theory = seconds + erlang_c(workers, rate * seconds) / (capacity - rate);
        assert!((sum / count / theory - 1.0).abs() < 0.1, "{} against {theory}", sum / count);
    }
}
