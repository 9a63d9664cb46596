//! Plays a search: asks the controller for the next rate, puts that on the schedule, and tells it
//! what the seconds of the step showed. `holdup-knee` draws the conclusions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use hdrhistogram::Histogram;
use holdup_knee::{Config, Finding, Move, Purpose, Search, Step, Summary};
use serde::{Deserialize, Serialize};

use super::own::{StolenTime, Throttling};
use super::plan::Plan;
use crate::model::Load;
use crate::schedule::{Live, LiveStretch};
use crate::stats::{Second, histogram};
use crate::sys::monotonic_ns;

/// A step begins at least this long after the decision: the loops read the schedule this often.
const AHEAD: Duration = Duration::from_millis(120);

/// How long to wait for the last second of a step beyond its end.
const LATEST: Duration = Duration::from_secs(3);

/// A second in which this share of CPU time was stolen, or of the process's time went to waiting
/// for a CPU, counts as disturbed.
const DISTURBED_RATIO: f64 = 0.15;

/// Most of the mean response time that the generator's own delay may make up.
const LAG_RATIO_MOST: f64 = 0.2;

/// The generator's delay is ignored below this, nanoseconds.
const LAG_LEAST_NS: f64 = 300_000.0;

/// If service time is below this multiple of the unloaded one, requests that wait for a connection
/// wait for holdup, not for the service.
const SERVICE_RATIO_FAST: f64 = 1.3;

/// A search as it was played.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlayedSearch {
    /// Its settings.
    pub config: Config,
    /// Every step.
    pub steps: Vec<Step>,
}

impl PlayedSearch {
    /// What the steps show.
    pub fn finding(&self) -> Finding {
        holdup_knee::judge(&self.steps, &self.config)
    }
}

/// What a search needs to be played.
pub struct SearchSetup<'a> {
    /// Its settings.
    pub config: Config,
    /// The schedule.
    pub live: &'a Live,
    /// Start of the load, nanoseconds of the monotonic clock.
    pub started: i64,
    /// Most requests in flight.
    pub slots: u64,
    /// Seconds of the load, as they end.
    pub seconds: Receiver<Second>,
    /// Another receiver of the seconds.
    pub forward: Option<Sender<Second>>,
    /// Where to say what is going on.
    pub plan: &'a Plan<'a>,
    /// Set when the user stops the run.
    pub stop: &'a AtomicBool,
}

/// A second, and the state of the machine during it.
struct ObservedSecond {
    second: Second,
    stolen_ratio: f64,
    throttled_ratio: f64,
}

struct Player<'a> {
    setup: SearchSetup<'a>,
    observed: Vec<ObservedSecond>,
    is_closed: bool,
    stolen: StolenTime,
    throttling: Throttling,
    throttled_s: f64,
    /// Mean service time of the first step, nanoseconds.
    baseline_ns: Option<f64>,
}

/// Plays it to its end.
pub fn play(setup: SearchSetup<'_>) -> PlayedSearch {
    let scenario = setup.plan.scenario;
    let is_random = matches!(&scenario.load, Load::Open(schedule) if schedule.seed().is_some());
    let config = Config {
        timeout: scenario.timeout,
        arrivals_variation: if is_random { 1.0 } else { 0.0 },
        ..setup.config.clone()
    };
    let mut player = Player {
        setup,
        observed: Vec::new(),
        is_closed: false,
        stolen: StolenTime::new(),
        throttling: Throttling::for_this_process(),
        throttled_s: 0.0,
        baseline_ns: None,
    };
    player.throttled_s = player.throttling.read().map_or(0.0, |t| t.seconds);
    let mut search = Search::new(config.clone());
    let mut last: Option<Step> = None;
    loop {
        let next = search.next(player.now(), last.as_ref());
        last = None;
        *player.setup.plan.doing.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            search.progress().to_owned();
        if player.is_stopped() {
            break;
        }
        match next {
            Move::Done => break,
            Move::Drain { most } => player.drain(most),
            Move::Offer { rate, length, settle, purpose } => {
                last = player.offer(search.steps().len(), rate, length, settle, purpose);
                if last.is_none() {
                    break;
                }
            }
        }
    }
    player.setup.live.end();
    let steps = search.steps().to_vec();
    // The loops end when their last requests have; until then, pass on their seconds.
    while !player.is_closed {
        player.receive(Duration::from_millis(200));
    }
    PlayedSearch { config, steps }
}

impl Player<'_> {
    fn now(&self) -> Duration {
        Duration::from_nanos((monotonic_ns() - self.setup.started).max(0) as u64)
    }

    fn is_stopped(&self) -> bool {
        self.is_closed || self.setup.stop.load(Ordering::Relaxed)
    }

    fn receive(&mut self, longest: Duration) {
        match self.setup.seconds.recv_timeout(longest) {
            Ok(second) => {
                if let Some(forward) = &self.setup.forward {
                    let _ = forward.send(second.clone());
                }
                let length = second.to.saturating_sub(second.from).as_secs_f64().max(1e-3);
                let throttled = self.throttling.read().map_or(self.throttled_s, |t| t.seconds);
                let throttled_ratio = (throttled - self.throttled_s) / length;
                self.throttled_s = throttled;
                let stolen_ratio = self.stolen.since_last().unwrap_or(0.0);
                self.observed.push(ObservedSecond { second, stolen_ratio, throttled_ratio });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_closed = true,
        }
    }

    /// Offers nothing until nothing is in flight.
    fn drain(&mut self, most: Duration) {
        let until = self.now() + most;
        while self.now() < until && !self.is_stopped() {
            self.receive(Duration::from_millis(100));
            if self.observed.last().is_some_and(|s| s.second.in_flight + s.second.waiting == 0) {
                break;
            }
        }
    }

    /// Plays a step; none if it was cut off.
    fn offer(
        &mut self,
        number: usize,
        rate: f64,
        length: Duration,
        settle: Duration,
        purpose: Purpose,
    ) -> Option<Step> {
        let from = Duration::from_secs((self.now() + AHEAD).as_secs() + 1);
        let to = from + length;
        let name = format!("step {}: {} {}/s", number + 1, purpose.name(), holdup_knee::figure(rate));
        self.setup.live.push(LiveStretch { name, from, length, rate });
        while self.observed.last().is_none_or(|s| s.second.to < to) && self.now() < to + LATEST {
            self.receive(Duration::from_millis(100));
            if self.is_stopped() {
                return None;
            }
        }
        let first = self.observed.iter().position(|s| s.second.from >= from || s.second.to > from)?;
        let own: Vec<&ObservedSecond> = self.observed[first..].iter().filter(|s| s.second.from < to).collect();
        let mut seconds = Vec::new();
        for observed in &own {
            // A loop that stood still for longer than a second reports that time as one second.
            let parts = (observed.second.to.saturating_sub(observed.second.from).as_secs_f64().round() as u64).max(1);
            for part in 0..parts {
                seconds.push(second(observed, rate, from, parts, part));
            }
        }
        seconds.truncate(length.as_secs() as usize);
        let limited = self.limit(&own);
        self.baseline_ns = self.baseline_ns.or_else(|| mean_of(&own, |o| &o.latencies.service));
        Some(Step {
            offered: rate,
            from,
            to,
            settle,
            purpose,
            seconds,
            is_generator_limited: limited.is_some(),
            why_limited: limited,
        })
    }

    /// Why the step says nothing about the service, if it does not.
    fn limit(&self, own: &[&ObservedSecond]) -> Option<String> {
        let half = own.len().div_ceil(2);
        let throttled = own.iter().filter(|s| s.throttled_ratio > DISTURBED_RATIO).count();
        if throttled >= half {
            return Some("holdup's own CPU quota throttled it".to_owned());
        }
        let lagging = own.iter().filter(|observed| {
            let of = |times: fn(&crate::stats::OperationSecond) -> &Histogram<u64>| {
                mean_of(&[**observed], times).unwrap_or(0.0)
            };
            let lag = of(|o| &o.latencies.send_lag);
            lag > LAG_LEAST_NS && lag > LAG_RATIO_MOST * of(|o| &o.latencies.response)
        });
        if lagging.count() >= half {
            return Some("holdup sent late: it had too little CPU".to_owned());
        }
        let is_short = |s: &&&ObservedSecond| s.second.waiting > 0 && s.second.in_flight as u64 >= self.setup.slots;
        let service = mean_of(own, |o| &o.latencies.service)?;
        let is_fast = self.baseline_ns.is_some_and(|baseline| service < SERVICE_RATIO_FAST * baseline);
        (own.iter().filter(is_short).count() >= half && is_fast).then(|| {
            format!(
                "all {} connections were in use while the service was still fast: raise \"connections\"",
                self.setup.slots
            )
        })
    }
}

/// One second of a step for the controller; a second that stands for several is split into parts.
fn second(observed: &ObservedSecond, rate: f64, from: Duration, parts: u64, part: u64) -> holdup_knee::Second {
    let s = &observed.second;
    let failed: u64 = s.operations.iter().flat_map(|o| o.failures.values()).sum();
    let completed: u64 = s.operations.iter().map(|o| o.completed).sum();
    // At a constant rate from `from` on, the requests due up to t are those numbered below rate *
    // t, rounded up.
    let due_until = |t: Duration| (t.saturating_sub(from).as_secs_f64() * rate).ceil() as u64;
    let (begin, end) = (s.from + Duration::from_secs(part), s.from + Duration::from_secs(part + 1));
    let share = |n: u64| n / parts + u64::from(part < n % parts);
    holdup_knee::Second {
        due: due_until(end) - due_until(begin),
        completed: share(completed),
        failed: share(failed),
        in_system_end: (s.in_flight + s.waiting) as u64,
        response: summary(&merged(s, |o| &o.latencies.response), completed, parts),
        service: summary(&merged(s, |o| &o.latencies.service), completed, parts),
        is_disturbed: parts > 1
            || observed.stolen_ratio > DISTURBED_RATIO
            || observed.throttled_ratio > DISTURBED_RATIO,
    }
}

fn merged(second: &Second, times: impl Fn(&crate::stats::OperationSecond) -> &Histogram<u64>) -> Histogram<u64> {
    let mut all = histogram();
    for operation in &second.operations {
        // It resizes itself: adding can't fail.
        let _ = all.add(times(operation));
    }
    all
}

/// Summary of the times of successes. Requests that were given up are among them with their age,
/// which is longer than any response took: so only the shortest `good` count.
fn summary(all: &Histogram<u64>, good: u64, parts: u64) -> Summary {
    let count = all.len().min(good);
    if count == 0 {
        return Summary::default();
    }
    let rank = |quantile: f64| ((quantile * count as f64).ceil() as u64).clamp(1, count);
    let mut at = [(rank(0.5), 0.0), (rank(0.95), 0.0), (rank(0.99), 0.0)];
    let (mut observed, mut sum) = (0, 0.0);
    for value in all.iter_recorded() {
        let here = value.count_at_value().min(count - observed);
        sum += here as f64 * all.median_equivalent(value.value_iterated_to()) as f64;
        for (rank, time) in at.iter_mut().filter(|(rank, _)| observed < *rank && observed + here >= *rank) {
            *time = if *rank == all.len() { all.max() as f64 } else { value.value_iterated_to() as f64 };
        }
        observed += here;
        if observed >= count {
            break;
        }
    }
    Summary {
        count: count.div_ceil(parts),
        mean_ns: sum / count as f64,
        p50_ns: at[0].1,
        p95_ns: at[1].1,
        p99_ns: at[2].1,
    }
}

fn mean_of(
    observed: &[&ObservedSecond],
    times: impl Fn(&crate::stats::OperationSecond) -> &Histogram<u64>,
) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for second in observed {
        let all = merged(&second.second, &times);
        sum += all.mean() * all.len() as f64;
        count += all.len();
    }
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ms: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut all = histogram();
        ms.into_iter().for_each(|ms| all.record(ms * 1_000_000).unwrap());
        all
    }

    #[test]
    fn what_was_given_up_is_no_answer() {
        let answered = summary(&times(1..=100), 100, 1);
        assert_eq!(answered.count, 100);
        assert!((answered.mean_ns / 50.5e6 - 1.0).abs() < 1e-3, "{answered:?}");
        for (ns, ms) in [(answered.p50_ns, 50.0), (answered.p95_ns, 95.0), (answered.p99_ns, 99.0)] {
            assert!((ns / 1e6 - ms).abs() < 0.1 * ms / 50.0, "{answered:?}");
        }
        // Forty more that waited for ten seconds in vain.
        let given_up = summary(&times((1..=100).chain([10_000; 40])), 100, 1);
        assert_eq!(given_up, answered);
        assert_eq!(summary(&times([10_000; 3]), 0, 1), Summary::default());
        assert_eq!(summary(&times([]), 5, 1), Summary::default());
    }

    #[test]
    fn a_second_that_stands_for_several_is_told_in_parts() {
        let half = summary(&times([5; 7]), 7, 2);
        assert_eq!(half.count, 4);
        assert!((half.mean_ns / 5e6 - 1.0).abs() < 1e-3);
    }
}
