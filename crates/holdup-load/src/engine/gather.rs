//! Merges what the loops report: the seconds of the load, samples of the generator itself, exact
//! totals, and the live view. It runs beside the loops and gives them no work. Outputs decide what
//! to do with the seconds.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hdrhistogram::Histogram;
use holdup_recording::metrics::Metric;
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Labels, metrics};

use super::books::{self, Tally};
use super::outcome::Outcome;
use super::own::Throttling;
use super::plan::Plan;
use super::{LoadError, OperationSummary, Outputs};
use crate::model::Load;
use crate::stats::{Latencies, OperationSecond, SLICE, Second, Snapshot, histogram};

/// State of a loop. Counts and times are from its start.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    /// CPU time, nanoseconds.
    pub cpu_ns: i64,
    /// Time not asleep, nanoseconds.
    pub busy_ns: i64,
    /// Time in which it was runnable and had no CPU, nanoseconds; none where the kernel does not
    /// say.
    pub run_queue_ns: Option<i64>,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that found every slot taken when they were due.
    pub capped: u64,
    /// Requests that were sent a second time.
    pub resent: u64,
    /// Requests in a slot.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub waiting: usize,
    /// Slots.
    pub slots: usize,
}

/// A message of a loop.
pub enum Report {
    /// The loop begins, with its initial counters.
    Begun {
        /// Which loop.
        index: usize,
        /// When, nanoseconds of the monotonic clock.
        at: i64,
        /// Its counters.
        counters: Counters,
    },
    /// An update of the counters.
    Counters {
        /// Which loop.
        index: usize,
        /// Time since the start.
        elapsed: Duration,
        /// Its counters.
        counters: Counters,
    },
    /// A slice ended.
    Slice {
        /// Which loop.
        index: usize,
        /// When, nanoseconds of the monotonic clock.
        at: i64,
        /// Start of the slice, from the start of the load.
        from: Duration,
        /// Its end.
        to: Duration,
        /// Times and outcomes by operation.
        latencies: Vec<Latencies>,
        /// Its counters.
        counters: Counters,
    },
    /// The loop ended.
    Ended {
        /// Which loop.
        index: usize,
        /// Exact counts by operation, or the error that ended the loop.
        result: Result<Vec<Tally>, LoadError>,
        /// Whether it was stopped before its end.
        interrupted: bool,
    },
}

/// A slice with the reports received so far.
struct Slice {
    to: Duration,
    in_flight: usize,
    waiting: usize,
    latencies: Vec<Latencies>,
}

/// See the module.
pub struct Gather<'a> {
    plan: &'a Plan<'a>,
    outputs: &'a Outputs,
    throttling: Throttling,
    unix_offset: i64,
    /// Start of the load, nanoseconds since the Unix epoch.
    started_at: i64,
    counters: Vec<Counters>,
    /// The end of the last slice received, for each loop.
    reached: Vec<Duration>,
    /// Slices that some loop has not reported yet, by their start.
    open: BTreeMap<Duration, Slice>,
    totals: Vec<Latencies>,
    tallies: Vec<Tally>,
    shown: (Option<f64>, Option<f64>),
    interrupted: bool,
}

/// The results of all loops.
pub struct RunTotals {
    /// Counts and latencies by operation.
    pub operations: Vec<OperationSummary>,
    /// CPU time of all loops, nanoseconds.
    pub cpu_ns: i64,
    /// Whether one of them was stopped before its end.
    pub interrupted: bool,
}

impl<'a> Gather<'a> {
    /// For `loops` loops.
    pub fn new(plan: &'a Plan<'a>, outputs: &'a Outputs, loops: usize, unix_offset: i64) -> Self {
        let operations = plan.operations.len();
        Self {
            plan,
            outputs,
            throttling: Throttling::for_this_process(),
            unix_offset,
            started_at: 0,
            counters: vec![Counters::default(); loops],
            reached: vec![Duration::ZERO; loops],
            open: BTreeMap::new(),
            totals: (0..operations).map(|_| Latencies::nothing()).collect(),
            tallies: vec![Tally::default(); operations],
            shown: (None, None),
            interrupted: false,
        }
    }

    /// Takes reports until the last loop has ended.
    ///
    /// # Errors
    /// The first error that ended a loop.
    pub fn run(mut self, reports: &Receiver<Report>) -> Result<RunTotals, LoadError> {
        let mut first_error = None;
        let mut now = Duration::ZERO;
        while let Ok(report) = reports.recv() {
            match report {
                Report::Begun { index, at, counters } => {
                    self.counters[index] = counters;
                    self.started_at = at + self.unix_offset;
                    self.sample(index, at, &[]);
                }
                Report::Counters { index, elapsed, counters } => {
                    self.counters[index] = counters;
                    now = now.max(elapsed);
                }
                Report::Slice { index, at, from, to, latencies, counters } => {
                    self.counters[index] = counters;
                    now = now.max(to);
                    self.sample(index, at, &latencies);
                    self.slice(index, from, to, latencies);
                }
                Report::Ended { index, result, interrupted } => {
                    self.interrupted |= interrupted;
                    self.reached[index] = Duration::MAX;
                    match result {
                        Ok(tallies) => self.tallies.iter_mut().zip(&tallies).for_each(|(a, b)| a.add(b)),
                        Err(error) => {
                            first_error.get_or_insert(error);
                        }
                    }
                    self.pass_on();
                }
            }
            self.show(now);
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        let parts = self.plan.operations.iter().zip(self.tallies).zip(self.totals);
        let parts = parts.zip(&self.plan.measured).filter(|(_, measured)| **measured).map(|(part, _)| part);
        Ok(RunTotals {
            operations: parts
                .map(|((name, tally), latencies)| OperationSummary {
                    operation: name.clone(),
                    offered: tally.offered,
                    completed: tally.completed(),
                    errors: tally.failed(),
                    failures: tally.failures(),
                    latencies,
                })
                .collect(),
            cpu_ns: self.counters.iter().map(|c| c.cpu_ns).sum(),
            interrupted: self.interrupted,
        })
    }

    fn slice(&mut self, index: usize, from: Duration, to: Duration, latencies: Vec<Latencies>) {
        self.reached[index] = to;
        let Counters { in_flight, waiting, .. } = self.counters[index];
        match self.open.get_mut(&from) {
            Some(slice) => {
                slice.to = slice.to.max(to);
                slice.in_flight += in_flight;
                slice.waiting += waiting;
                slice.latencies.iter_mut().zip(&latencies).for_each(|(a, b)| a.add(b));
            }
            None => {
                self.open.insert(from, Slice { to, in_flight, waiting, latencies });
            }
        }
        self.pass_on();
    }

    /// Passes on every slice that all loops have reported.
    fn pass_on(&mut self) {
        let reached = self.reached.iter().min().copied().unwrap_or_default();
        while let Some(entry) = self.open.first_entry().filter(|e| *e.key() < reached) {
            let (from, slice) = entry.remove_entry();
            let mut all = histogram();
            for (total, latencies) in self.totals.iter_mut().zip(&slice.latencies) {
                total.add(latencies);
                let _ = all.add(&latencies.response);
            }
            let ms = |q: f64| (!all.is_empty()).then(|| all.value_at_quantile(q) as f64 / 1e6);
            self.shown = (ms(0.5), ms(0.99));
            if let Some(sender) = &self.outputs.seconds {
                // The load goes on even without a receiver.
                let _ = sender.send(self.second(from, slice));
            }
        }
    }

    fn second(&self, from: Duration, slice: Slice) -> Second {
        let (rate, phase) = self.offered_at(from, Duration::ZERO);
        let operations = self.plan.operations.iter().zip(slice.latencies).zip(&self.plan.measured);
        let operations = operations.filter(|(_, measured)| **measured).map(|((name, latencies), _)| OperationSecond {
            name: name.clone(),
            completed: latencies.outcomes.get(Outcome::Ok as usize).copied().unwrap_or(0),
            failures: books::failures(&latencies.outcomes),
            latencies,
        });
        Second {
            from,
            to: slice.to,
            started_at: self.started_at + from.as_nanos() as i64,
            phase,
            rate,
            in_flight: slice.in_flight,
            waiting: slice.waiting,
            operations: operations.collect(),
        }
    }

    /// The rate that this process offers at `elapsed`, and the name of that phase. The last phase
    /// counts for `slack` longer.
    fn offered_at(&self, elapsed: Duration, slack: Duration) -> (f64, String) {
        let scenario = self.plan.scenario;
        let waiting = || "waiting for the last responses".to_owned();
        if elapsed >= scenario.load.length() + slack {
            return (0.0, waiting());
        }
        let (rate, phase) = match &scenario.load {
            Load::Open(schedule) => (schedule.rate_at(elapsed), schedule.phase_at(elapsed)),
            Load::Closed(closed) => (0.0, closed.phase_at(elapsed)),
        };
        (rate / f64::from(scenario.shard.of), self.plan.phase(phase).unwrap_or_else(waiting))
    }

    /// A sample of the generator itself: its CPU, its wait for a CPU, its queue.
    fn sample(&self, index: usize, at: i64, latencies: &[Latencies]) {
        let c = &self.counters[index];
        let seconds = |ns: i64| ns as f64 / 1e9;
        let mut lag: Histogram<u64> = histogram();
        latencies.iter().for_each(|l| {
            let _ = lag.add(&l.send_lag);
        });
        let mut values = vec![
            (metrics::load::CPU, seconds(c.cpu_ns)),
            (metrics::load::BUSY, seconds(c.busy_ns)),
            (metrics::load::REQUESTS_OFFERED, c.offered as f64),
            (metrics::load::REQUESTS_COMPLETED, c.completed as f64),
            (metrics::load::REQUESTS_FAILED, c.failed as f64),
            (metrics::load::REQUESTS_CAPPED, c.capped as f64),
            (metrics::load::REQUESTS_RESENT, c.resent as f64),
            (metrics::load::REQUESTS_IN_FLIGHT, c.in_flight as f64),
            (metrics::load::REQUESTS_WAITING, c.waiting as f64),
            (metrics::load::CONNECTIONS_MAX, c.slots as f64),
        ];
        values.extend(c.run_queue_ns.map(|ns| (metrics::load::RUN_QUEUE, seconds(ns))));
        if !lag.is_empty() {
            values.push((metrics::load::SEND_LAG_P99, lag.value_at_quantile(0.99) as f64 / 1e9));
        }
        let own = Labels::new([("loop", index.to_string())]);
        self.push(at, values.into_iter().map(|(metric, value)| (metric, own.clone(), value)).collect());
        if index == 0 {
            self.sample_throttling(at);
        }
    }

    fn sample_throttling(&self, at: i64) {
        let Some(throttled) = self.throttling.read() else { return };
        let values =
            [(metrics::load::THROTTLED, throttled.seconds), (metrics::load::THROTTLED_PERIODS, throttled.periods)];
        self.push(at, values.into_iter().map(|(metric, value)| (metric, Labels::none(), value)).collect());
    }

    fn push(&self, at: i64, samples: Vec<(Metric, Labels, f64)>) {
        let Some(rows) = &self.outputs.rows else { return };
        let mut batch = Batch::default();
        batch.samples.extend(samples.into_iter().map(|(metric, labels, value)| Sample {
            observed_at: at + self.unix_offset,
            window_ns: 0,
            source: "holdup".to_owned(),
            metric: metric.name.to_owned(),
            labels,
            value,
        }));
        rows.push(batch);
    }

    fn show(&self, elapsed: Duration) {
        let sum = |f: fn(&Counters) -> u64| self.counters.iter().map(f).sum::<u64>();
        // The loops are slightly ahead of their reports.
        let (rate, phase) = self.offered_at(elapsed, SLICE);
        self.outputs.live.set(Snapshot {
            elapsed,
            phase,
            doing: self.plan.doing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            rate,
            offered: sum(|c| c.offered),
            completed: sum(|c| c.completed),
            errors: sum(|c| c.failed),
            in_flight: self.counters.iter().map(|c| c.in_flight).sum(),
            waiting: self.counters.iter().map(|c| c.waiting).sum(),
            slots: self.counters.iter().map(|c| c.slots).sum(),
            p50_ms: self.shown.0,
            p99_ms: self.shown.1,
        });
    }
}
