//! The figures of one step: what was achieved, how fast, and whether requests piled up. Nothing
//! here compares steps with each other.

use crate::statistics::{deviation, line, mean, median, robust_deviation, share_low};
use crate::{Config, MissedRequirement, Purpose, Step, Summary};

/// Two-sided 95 % of a normal distribution.
pub(crate) const Z: f64 = 1.96;

/// A service that responds faster than this (seconds) reaches its steady number of requests within
/// the first second.
const FILLS_AT_ONCE: f64 = 0.2;

/// The figures of one step. Rates are per second, times in seconds, errors are standard errors.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// Index of the step.
    pub step: usize,
    pub offered: f64,
    pub due: f64,
    pub achieved: f64,
    pub achieved_error: f64,
    /// Completions of each second.
    pub completions: Vec<f64>,
    /// Growth of the requests in the system as a share of the offered rate: over the whole step,
    /// and by the median second.
    pub growth: f64,
    pub median_growth: f64,
    pub growth_error: f64,
    /// Growth of the response time, seconds per second.
    pub drift: f64,
    /// Share of the variance of response times that the drift explains.
    pub drift_share: f64,
    /// Mean response time of undisturbed seconds, and its relative standard error.
    pub response: Option<f64>,
    pub response_error: f64,
    /// Mean of the requests in the system.
    pub in_system: f64,
    /// Requests in the system at the end beyond those at the start, and how many of them chance can
    /// explain.
    pub gained: f64,
    pub gained_by_chance: f64,
    /// Mean response time over the fastest of all steps.
    pub slowed: f64,
    pub in_system_last: f64,
    pub failed: f64,
    pub ended: f64,
    /// The quantile of the objective, if there is one.
    pub objective: Option<f64>,
    /// Number of seconds that count.
    pub seconds: usize,
    pub is_limited: bool,
}

impl Visit {
    /// From a step; none without a whole second.
    pub fn from_step(index: usize, step: &Step, config: &Config) -> Option<Self> {
        let all = &step.seconds;
        if all.is_empty() {
            return None;
        }
        // Requests enter at once and leave one response time later, some much later: until then
        // their number grows without meaning.
        let answers =
            all.iter().filter(|second| second.response.count > 0).map(|second| second.response.mean_ns * 1e-9);
        let fastest = answers.fold(f64::MAX, f64::min);
        let filling = if fastest > FILLS_AT_ONCE { 3.0 * fastest } else { 0.0 };
        let settle = step.settle.as_secs_f64().max(filling.min(all.len() as f64)).ceil() as usize;
        let skip = settle.min(all.len().saturating_sub(if all.len() > 3 { 2 } else { 1 }));
        let seconds = &all[skip..];
        let count = seconds.len() as f64;
        let sum = |of: fn(&crate::Second) -> u64| seconds.iter().map(of).sum::<u64>() as f64;
        let due = sum(|second| second.due) / count;
        let (completed, failed) = (sum(|second| second.completed), sum(|second| second.failed));

        let first = if skip > 0 { all[skip - 1].in_system_end as f64 } else { 0.0 };
        let levels: Vec<f64> =
            std::iter::once(first).chain(seconds.iter().map(|second| second.in_system_end as f64)).collect();
        let last = levels.last().copied().unwrap_or(first);
        let rate = due.max(1e-9);
        let grown: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]) / rate).collect();
        let completions: Vec<f64> = seconds.iter().map(|second| second.completed as f64).collect();

        let (response, response_error, _) = level(seconds.iter().map(|s| (&s.response, s.is_disturbed)));
        // A short step is judged by all its seconds: growing response times grow from its start.
        let long = if seconds.len() < 3 { all } else { seconds };
        let times: Vec<(f64, f64)> = long
            .iter()
            .enumerate()
            .filter(|(_, second)| second.response.count > 0)
            .map(|(at, second)| (at as f64, second.response.mean_ns * 1e-9))
            .collect();
        let (drift, drift_share) = line(&times).unwrap_or_else(|| match (times.first(), times.last()) {
            (Some(from), Some(to)) if to.0 > from.0 => ((to.1 - from.1) / (to.0 - from.0), 0.5),
            _ => (0.0, 0.0),
        });
        Some(Self {
            step: index,
            offered: step.offered,
            due,
            achieved: completed / count,
            achieved_error: deviation(&completions) / count.sqrt() + 0.5 / count,
            completions,
            growth: (last - first) / (rate * count),
            median_growth: median(&grown),
            growth_error: 1.25 * robust_deviation(&grown) / count.sqrt(),
            drift,
            drift_share,
            response,
            response_error,
            in_system: mean(&levels),
            gained: last - first,
            gained_by_chance: gain_by_chance(due, fastest.min(all.len() as f64)),
            slowed: 1.0,
            in_system_last: last,
            failed,
            ended: completed + failed,
            // The first seconds after an overload still have its backlog.
            objective: config
                .objective
                .filter(|_| step.purpose != Purpose::Recover)
                .and_then(|objective| quantile_of(seconds, objective.quantile)),
            seconds: seconds.len(),
            is_limited: step.is_generator_limited,
        })
    }

    /// Adds the fastest response of all steps, which an overloaded step cannot show by itself.
    pub fn set_fastest(&mut self, fastest: f64) {
        self.gained_by_chance = self.gained_by_chance.min(gain_by_chance(self.due, fastest));
        self.slowed = self.response.map_or(1.0, |response| response / fastest);
    }

    /// Share of the ended requests that failed.
    pub fn error_ratio(&self) -> f64 {
        self.failed / self.ended.max(1.0)
    }

    /// Whether requests pile up: their number grows second after second, and so do response times.
    /// A stall of the machine grows in one second only; requests that are never answered grow
    /// without slower responses.
    pub fn piles_up(&self, leak: f64) -> bool {
        // Growth below 1 % may come from stolen CPU time; 25 % needs no second criterion.
        const LEAST: f64 = 0.01;
        const PLAIN: f64 = 0.25;
        let growth = self.growth - leak;
        let gained = self.gained - leak * self.due * self.seconds as f64;
        if growth > PLAIN {
            if self.seconds < 3 {
                // A stall at the end of a short step looks similar, but then the answered requests
                // were fast.
                let is_slow = self.slowed > 1.5 || self.drift > 0.3 * growth || self.achieved < 0.1 * self.due;
                return gained > self.gained_by_chance && is_slow;
            }
            let is_slower = self.slowed > 3.0 && self.drift > 0.3 * growth;
            return gained > self.gained_by_chance || (is_slower && gained > 4.0);
        }
        let one = 1.0 / (self.due.max(1e-9) * self.seconds as f64);
        // One stall can explain growth in one second, or two.
        let is_growing = self.seconds >= 3
            && growth > LEAST + one
            && self.median_growth - leak - 2.0 * self.growth_error > 0.5 * LEAST;
        is_growing && self.drift > 0.4 * growth && gained > 0.5 * self.gained_by_chance
    }

    /// Whether response times grow steadily though hardly anything piles up: the rate is just above
    /// the capacity, or the queue still fills. Such a mean does not describe a steady state.
    pub fn is_unsettled(&self) -> bool {
        let long = self.seconds as f64;
        self.seconds >= 4 && self.drift_share > 0.85 && self.response.is_some_and(|mean| self.drift * long > 0.5 * mean)
    }

    /// Whether requests clearly do not pile up.
    pub fn keeps_up(&self, leak: f64) -> bool {
        let one = 1.0 / (self.due.max(1e-9) * self.seconds as f64);
        let growth = self.growth.min(self.median_growth) - leak;
        let is_lucky = self.gained <= self.gained_by_chance.max(0.02 * self.due * self.seconds as f64);
        (growth < 0.02 + one && is_lucky) || (growth < 0.1 && self.seconds > 2 && self.drift < 0.2 * growth)
    }

    /// Whether certainly more than a share of `most` failed.
    pub fn fails_more_than(&self, most: f64) -> bool {
        // Two failures of ten requests may be chance; and there are many steps.
        const FEWEST: f64 = 5.0;
        self.failed >= FEWEST && share_low(self.failed, self.ended, 2.58) > most
    }

    /// The missed requirement, if any; the objective is judged separately.
    pub fn missed(&self, leak: f64, errors_most: f64) -> Option<MissedRequirement> {
        if self.piles_up(leak) {
            Some(MissedRequirement::AchievedBelowOffered)
        } else if self.fails_more_than(errors_most) {
            Some(MissedRequirement::Errors)
        } else {
            None
        }
    }
}

/// How many more requests than at the start may be in the system by chance: three standard
/// deviations of twice the number by Little's law, and a few.
fn gain_by_chance(due: f64, response: f64) -> f64 {
    4.0 + 3.0 * (2.0 * due * response).sqrt()
}

/// The quantile of all seconds together, nanoseconds: the time that the corresponding share of
/// their requests exceeds. Between and beyond its percentiles, the share of a second that exceeds a
/// time is assumed to fall exponentially. A median of the seconds' own quantiles would ignore the
/// bad seconds, which contain the slow requests.
fn pooled(seconds: &[&Summary], quantile: f64) -> Option<f64> {
    let total: f64 = seconds.iter().map(|second| second.count as f64).sum();
    let highest = seconds.iter().map(|second| second.p99_ns).reduce(f64::max)?;
    let beyond = |time: f64| -> f64 {
        seconds.iter().map(|second| second.count as f64 * exceeding(second, time)).sum::<f64>() / total
    };
    let (mut low, mut high) = (0.0, 10.0 * highest);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if beyond(middle) > 1.0 - quantile { low = middle } else { high = middle }
    }
    Some(high)
}

/// The share of a second's requests that take longer than `time`.
fn exceeding(second: &Summary, time: f64) -> f64 {
    let knots = [(0.0, 1.0_f64), (second.p50_ns, 0.5), (second.p95_ns, 0.05), (second.p99_ns, 0.01)];
    let mut share: f64 = 0.0;
    for pair in knots.windows(2) {
        let ((from, above), (to, below)) = (pair[0], pair[1]);
        // Two percentiles may have the same time; the last section continues beyond its end.
        let at = if to > from { (time - from) / (to - from) } else { f64::from(u8::from(time >= to)) * 2.0 };
        share = above.ln() + at.max(0.0) * (below / above).ln();
        if at < 1.0 {
            break;
        }
    }
    share.exp()
}

/// Mean response time over consistent seconds, its relative standard error, and how many seconds
/// were left out.
///
/// A stall of the machine raises the mean of its second and, close to the capacity, of those after
/// it. So this finds the densest half of the seconds (the "shorth" of D. F. Andrews et al., "Robust
/// Estimates of Location", 1972), and leaves out those above it by more than four times its spread
/// (and 20 %). If seconds vary by themselves, the spread is large and none is left out.
fn level<'a>(seconds: impl Iterator<Item = (&'a Summary, bool)>) -> (Option<f64>, f64, usize) {
    let all: Vec<(f64, f64, bool)> = seconds
        .filter(|(summary, _)| summary.count > 0 && summary.mean_ns > 0.0)
        .map(|(summary, is_disturbed)| (summary.mean_ns * 1e-9, summary.count as f64, is_disturbed))
        .collect();
    let total = all.len();
    let quiet: Vec<(f64, f64)> = all.iter().filter(|second| !second.2).map(|second| (second.0, second.1)).collect();
    let mut sorted: Vec<(f64, f64)> = match quiet.is_empty() {
        true => all.iter().map(|second| (second.0, second.1)).collect(),
        false => quiet,
    };
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    if sorted.len() >= 4 {
        let half = sorted.len() / 2 + 1;
        let start = (0..=sorted.len() - half)
            .min_by(|a, b| {
                let spread = |at: usize| sorted[at + half - 1].0 / sorted[at].0;
                spread(*a).total_cmp(&spread(*b))
            })
            .unwrap_or(0);
        let (low, high) = (sorted[start].0, sorted[start + half - 1].0);
        let fewest = sorted.iter().map(|second| second.1).fold(f64::MAX, f64::min);
        // The mean of few responses varies by chance alone.
        let luck = 4.0 / fewest.sqrt();
        let ceiling = high * (1.2_f64.ln() + 4.0 * (high / low).ln() + luck).exp();
        sorted.retain(|second| second.0 <= ceiling);
    }
    let weight: f64 = sorted.iter().map(|second| second.1).sum();
    if weight <= 0.0 {
        return (None, 0.0, 0);
    }
    let value = sorted.iter().map(|second| second.0 * second.1).sum::<f64>() / weight;
    let means: Vec<f64> = sorted.iter().map(|second| second.0 / value).collect();
    let count = means.len() as f64;
    // With few seconds their spread is itself an estimate: the factor is that of Student's t
    // against the normal.
    let error = if means.len() > 1 {
        deviation(&means) / count.sqrt() * (1.0 + 1.5 / (count - 1.0))
    } else {
        1.0 / weight.sqrt().clamp(3.0, 10.0)
    };
    (Some(value), error, total - sorted.len())
}

/// A quantile of the response times of the undisturbed `seconds`, in seconds.
fn quantile_of(seconds: &[crate::Second], quantile: f64) -> Option<f64> {
    let undisturbed = seconds.iter().filter(|second| second.response.count > 0 && !second.is_disturbed);
    let all: Vec<&Summary> = undisturbed.map(|second| &second.response).collect();
    pooled(&all, quantile).map(|time| time * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(means: &[f64]) -> Vec<Summary> {
        means.iter().map(|mean| Summary { count: 10_000, mean_ns: *mean, ..Summary::default() }).collect()
    }

    fn level_of(means: &[f64]) -> (f64, usize) {
        let (value, _, left_out) = level(seconds(means).iter().map(|summary| (summary, false)));
        (value.unwrap() * 1e9, left_out)
    }

    #[test]
    fn a_stalled_second_is_left_out_and_a_restless_one_is_not() {
        let (value, left_out) = level_of(&[10.0, 10.0, 90.0, 10.0]);
        assert!((value - 10.0).abs() < 1e-9 && left_out == 1);
        assert_eq!(level_of(&[10.0, 17.0, 12.0, 21.0]).1, 0);
    }

    #[test]
    fn the_quantile_of_seconds_together_is_that_of_their_requests() {
        let exponential = |mean: f64| Summary {
            count: 100,
            mean_ns: mean,
            p50_ns: mean * 2_f64.ln(),
            p95_ns: mean * 20_f64.ln(),
            p99_ns: mean * 100_f64.ln(),
        };
        let one = pooled(&[&exponential(10.0)], 0.99).unwrap();
        assert!((one - 46.05).abs() < 0.1, "{one}");
        // Half of the requests exponential with mean 1, half with mean 10: 1 % of all exceed 39.1.
        let both = pooled(&[&exponential(1.0), &exponential(10.0)], 0.99).unwrap();
        assert!((both - 39.1).abs() < 0.2, "{both}");
    }

    #[test]
    fn seconds_known_to_be_disturbed_do_not_count() {
        let all = seconds(&[10.0, 50.0]);
        let (value, _, _) = level(all.iter().zip([false, true]));
        assert!((value.unwrap() * 1e9 - 10.0).abs() < 1e-9);
    }
}
