//! Checks one objective against the load, second by second. It needs memory for one window, or
//! without windows for the distinct values of the whole run.

use std::collections::VecDeque;
use std::time::Duration;

use super::sum::{Second, Sum};
use super::{Judgement, Metric, OperationOutcomes, State, Stretch};
use crate::threshold::Threshold;

/// The part of the load that an objective covers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// The warm-up, from the start of the load: windows begin after it. Without windows it is
    /// excluded from response times only, because counts cover the whole run.
    pub warm_up: Duration,
    /// End of the schedule, from the start of the load: no window of a rate ends later. None if
    /// unknown.
    pub due_until: Option<Duration>,
}

/// A window that missed an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    /// Its value.
    pub value: f64,
    /// The window.
    pub stretch: Stretch,
}

/// See the module.
pub struct Evaluation {
    threshold: Threshold,
    metric: Result<Metric, String>,
    extent: Extent,
    /// Length of the windows in seconds; none for the run as a whole.
    window: Option<u64>,
    /// The seconds in the window; empty without windows.
    ring: VecDeque<Second>,
    sum: Sum,
    /// Whole seconds inside a slice that could not be split: no window begins or ends there.
    cuts: VecDeque<u64>,
    /// The next whole second at which a window may end.
    next_end: u64,
    /// The end of the part of the load seen so far.
    reached: Duration,
    first: Option<Miss>,
    worst: Option<Miss>,
    windows: u64,
    windows_missed: u64,
    ending: Option<Miss>,
}

impl Evaluation {
    /// The evaluation of `threshold` over `extent`.
    pub fn new(threshold: &Threshold, extent: Extent) -> Self {
        let window = threshold.window_ns.map(|ns| (ns / 1_000_000_000).max(1) as u64);
        let begin = extent.warm_up.as_secs() + u64::from(extent.warm_up.subsec_nanos() > 0);
        Self {
            metric: Metric::parse(&threshold.metric),
            threshold: threshold.clone(),
            extent,
            next_end: begin + window.unwrap_or(0),
            window,
            ring: VecDeque::new(),
            sum: Sum::default(),
            cuts: VecDeque::new(),
            reached: Duration::ZERO,
            first: None,
            worst: None,
            windows: 0,
            windows_missed: 0,
            ending: None,
        }
    }

    /// Adds requests that ended between `from` and `to`, relative to the start of the load, in the
    /// order of `from`. That is one second, unless the generator was delayed for longer, or it is
    /// the last one. Seconds without requests may be left out.
    pub fn second(&mut self, from: Duration, to: Duration, operations: &[OperationOutcomes<'_>]) {
        let Ok(metric) = self.metric else { return };
        let mut second = Second { index: from.as_secs(), ..Second::default() };
        let is_measured = self.window.is_some() || from >= self.extent.warm_up;
        for ended in operations.iter().filter(|o| self.threshold.covers(o.operation)) {
            second.add(ended, metric.is_latency() && is_measured);
        }
        self.judge_until(second.index, metric);
        self.reached = self.reached.max(to);
        for cut in second.index + 1..whole_seconds_up(to) {
            if !self.cuts.contains(&cut) {
                self.cuts.push_back(cut);
            }
        }
        if let Some(window) = self.window {
            let next = second.index + 1;
            // No window contains seconds of the warm-up.
            if self.next_end <= second.index + window {
                self.sum.add(&second);
                self.ring.push_back(second);
            }
            if to >= Duration::from_secs(next) {
                self.judge_until(next, metric);
            }
        } else {
            self.sum.add(&second);
            if self.threshold.abort {
                self.judge_so_far(metric);
            }
        }
    }

    /// The miss that ends the run now, if there is one.
    pub fn ends_the_run(&self) -> Option<&Miss> {
        self.ending.as_ref()
    }

    /// The result, after the last second.
    pub fn result(&mut self) -> Judgement {
        let metric = match &self.metric {
            Ok(metric) => *metric,
            Err(why) => return self.judgement(Metric::Max, State::NotJudged, None, Some(why.clone())),
        };
        let Some(window) = self.window else {
            let value = self.so_far(metric);
            let Some(value) = value.filter(|_| self.reached > Duration::ZERO) else {
                return self.judgement(metric, State::NotJudged, None, Some("none of its requests ended".to_owned()));
            };
            let state = if metric.misses(value, self.threshold.below) { State::Missed } else { State::Met };
            return self.judgement(metric, state, Some(value), None);
        };
        // The last requests may lie in an incomplete second.
        let last = if metric == Metric::Rate { self.reached.as_secs() } else { whole_seconds_up(self.reached) };
        self.judge_until(last, metric);
        let state = match (self.windows, self.windows_missed) {
            (0, _) => State::NotJudged,
            (_, 0) => State::Met,
            _ => State::Missed,
        };
        let why = (self.windows == 0).then(|| self.why_no_window(window, metric));
        self.judgement(metric, state, self.worst.map(|miss| miss.value), why)
    }

    fn why_no_window(&self, window: u64, metric: Metric) -> String {
        let left = self.end(metric).saturating_sub(self.extent.warm_up).as_secs_f64();
        if left < window as f64 {
            let after = if self.extent.warm_up.is_zero() { "" } else { ", after the warm-up," };
            return format!("the run{after} was {left:.1} s long, but a window takes {window} s");
        }
        "none of its requests ended in a window".to_owned()
    }

    /// Latest end of a window.
    fn end(&self, metric: Metric) -> Duration {
        let due_until = self.extent.due_until.filter(|_| metric == Metric::Rate);
        due_until.map_or(self.reached, |until| until.min(self.reached))
    }

    fn judgement(&self, metric: Metric, state: State, value: Option<f64>, why: Option<String>) -> Judgement {
        Judgement {
            text: self.threshold.text.clone(),
            state,
            value,
            limit: self.threshold.below,
            unit: metric.unit(),
            first_window: self.first.map(|miss| miss.stretch),
            worst_window: self.worst.map(|miss| miss.stretch),
            windows: self.windows,
            windows_missed: self.windows_missed,
            left_out_ns: self.extent.warm_up.as_nanos() as i64,
            why,
        }
    }

    /// Judges every window that ends at `end` or before and has not been judged.
    fn judge_until(&mut self, end: u64, metric: Metric) {
        let Some(window) = self.window else { return };
        while self.next_end <= end {
            let (from, to) = (self.next_end - window, self.next_end);
            self.next_end += 1;
            self.slide_to(from);
            if self.cuts.contains(&from) || self.cuts.contains(&to) {
                continue;
            }
            let is_due = self.extent.due_until.is_none_or(|until| Duration::from_secs(to) <= until);
            if metric == Metric::Rate && !is_due {
                continue;
            }
            let Some(value) = self.sum.value(metric, window as f64) else { continue };
            let ns = |seconds: u64| (seconds * 1_000_000_000) as i64;
            self.record_miss(metric, Miss { value, stretch: Stretch { from_ns: ns(from), to_ns: ns(to) } });
        }
    }

    /// Drops seconds before `from`.
    fn slide_to(&mut self, from: u64) {
        while self.ring.front().is_some_and(|second| second.index < from) {
            if let Some(second) = self.ring.pop_front() {
                self.sum.remove(&second);
            }
        }
        self.cuts.retain(|cut| *cut >= from);
    }

    fn record_miss(&mut self, metric: Metric, found: Miss) {
        self.windows += 1;
        if self.worst.is_none_or(|worst| metric.is_worse(found.value, worst.value)) {
            self.worst = Some(found);
        }
        if !metric.misses(found.value, self.threshold.below) {
            return;
        }
        self.windows_missed += 1;
        self.first.get_or_insert(found);
        if self.threshold.abort && found.stretch.from_ns >= self.threshold.abort_after_ns {
            self.ending.get_or_insert(found);
        }
    }

    /// Whether the run so far is a reason to end it.
    fn judge_so_far(&mut self, metric: Metric) {
        let to_ns = self.reached.as_nanos() as i64;
        if self.ending.is_some() || to_ns < self.threshold.abort_after_ns {
            return;
        }
        let Some(value) = self.so_far(metric) else { return };
        if metric.misses(value, self.threshold.below) {
            self.ending = Some(Miss { value, stretch: Stretch { from_ns: 0, to_ns } });
        }
    }

    fn so_far(&self, metric: Metric) -> Option<f64> {
        self.sum.value(metric, self.reached.as_secs_f64())
    }
}

fn whole_seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
