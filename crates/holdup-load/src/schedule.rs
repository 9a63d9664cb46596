//! When each request is due, as a pure function of its number: nothing about the system under test can
//! move it. With the offered rate r(t), the k-th request (from 0) is due when the integral of r reaches k.

use std::time::Duration;

/// A stretch of the schedule in which the offered rate is constant or changes linearly.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Name of the phase.
    pub name: String,
    /// How long.
    pub length: Duration,
    /// Requests per second at its start.
    pub rate_from: f64,
    /// Requests per second at its end.
    pub rate_to: f64,
}

impl Stretch {
    /// Requests due in the first `t` seconds of it (a real number).
    fn arrivals_until(&self, t: f64) -> f64 {
        let slope = (self.rate_to - self.rate_from) / self.length.as_secs_f64();
        self.rate_from * t + slope * t * t / 2.0
    }

    /// The moment at which `n` requests have been due: the inverse of [`Self::arrivals_until`].
    fn moment_of(&self, n: f64) -> f64 {
        let slope = (self.rate_to - self.rate_from) / self.length.as_secs_f64();
        if slope.abs() < 1e-12 {
            return n / self.rate_from;
        }
        // Solves slope/2 t² + rate_from t - n = 0 in the form that does not cancel for small slopes.
        let root = (self.rate_from * self.rate_from + 2.0 * slope * n).max(0.0).sqrt();
        2.0 * n / (self.rate_from + root)
    }
}

/// The whole schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    stretches: Vec<Stretch>,
    /// Requests due before each stretch, and one more entry for all.
    before: Vec<f64>,
    /// Start of each stretch in seconds, and one more entry for the end.
    starts: Vec<f64>,
}

impl Schedule {
    /// Puts stretches one after another.
    pub fn new(stretches: Vec<Stretch>) -> Self {
        let (mut before, mut starts) = (vec![0.0], vec![0.0]);
        for stretch in &stretches {
            let length = stretch.length.as_secs_f64();
            before.push(before.last().unwrap_or(&0.0) + stretch.arrivals_until(length));
            starts.push(starts.last().unwrap_or(&0.0) + length);
        }
        Self { stretches, before, starts }
    }

    /// One constant rate.
    pub fn constant(rate: f64, length: Duration) -> Self {
        Self::new(vec![Stretch { name: format!("{}/s", pretty(rate)), length, rate_from: rate, rate_to: rate }])
    }

    /// The rate rises (or falls) from `from` to `to` by `step`, each held for `every`.
    pub fn steps(from: f64, to: f64, step: f64, every: Duration) -> Self {
        let count = ((to - from).abs() / step + 1e-9).floor() as usize + 1;
        let direction = if to < from { -1.0 } else { 1.0 };
        Self::new(
            (0..count)
                .map(|i| {
                    let rate = from + direction * step * i as f64;
                    let name = format!("step {}: {}/s", i + 1, pretty(rate));
                    Stretch { name, length: every, rate_from: rate, rate_to: rate }
                })
                .collect(),
        )
    }

    /// The rate changes linearly from `from` to `to`.
    pub fn ramp(from: f64, to: f64, length: Duration) -> Self {
        let name = format!("ramp {} to {}/s", pretty(from), pretty(to));
        Self::new(vec![Stretch { name, length, rate_from: from, rate_to: to }])
    }

    /// The stretches in order.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// When the `k`-th request (from 0) is due, from the start, and in which stretch; none after the last.
    pub fn due(&self, k: u64) -> Option<(Duration, usize)> {
        let k = k as f64;
        // The stretch whose share of arrivals holds k. A hair of tolerance, so that 20 s at 500/s is
        // 10,000 requests whatever the rounding of the sums.
        let index = self.before.partition_point(|&b| b <= k + 1e-6).checked_sub(1)?;
        let stretch = self.stretches.get(index)?;
        let within = stretch.moment_of((k - self.before[index]).max(0.0)).min(stretch.length.as_secs_f64());
        Some((Duration::from_secs_f64(self.starts[index] + within), index))
    }

    /// How long it takes.
    pub fn length(&self) -> Duration {
        self.stretches.iter().map(|s| s.length).sum()
    }

    /// Requests in all.
    pub fn total(&self) -> u64 {
        (self.before.last().unwrap_or(&0.0) - 1e-6).ceil().max(0.0) as u64
    }
}

fn pretty(rate: f64) -> String {
    let text = format!("{rate:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(schedule: &Schedule) -> Vec<(f64, usize)> {
        (0..).map_while(|k| schedule.due(k)).map(|(d, i)| (d.as_secs_f64(), i)).collect()
    }

    #[test]
    fn constant_is_evenly_spaced_and_complete() {
        let schedule = Schedule::constant(500.0, Duration::from_secs(20));
        let due = all(&schedule);
        assert_eq!((due.len() as u64, schedule.total()), (10_000, 10_000));
        assert!(due.iter().enumerate().all(|(k, (t, _))| (t - k as f64 / 500.0).abs() < 1e-6));
    }

    #[test]
    fn steps_cover_every_rate_once() {
        let schedule = Schedule::steps(50.0, 300.0, 50.0, Duration::from_secs(10));
        let due = all(&schedule);
        let per_step: Vec<usize> = (0..6).map(|s| due.iter().filter(|(_, i)| *i == s).count()).collect();
        assert_eq!(per_step, [500, 1_000, 1_500, 2_000, 2_500, 3_000]);
        assert_eq!(Schedule::steps(300.0, 100.0, 100.0, Duration::from_secs(1)).stretches().len(), 3);
    }

    #[test]
    fn ramp_follows_the_integral() {
        let schedule = Schedule::ramp(10.0, 110.0, Duration::from_secs(10));
        let due = all(&schedule);
        assert_eq!(due.len(), 600);
        // By half time 10*5 + 10*25/2 = 175 have been due.
        assert_eq!(due.iter().filter(|(t, _)| *t < 5.0 - 1e-9).count(), 175);
        assert!(due.windows(2).all(|w| w[0].0 < w[1].0));
        let falling = all(&Schedule::ramp(100.0, 1.0, Duration::from_secs(4)));
        assert_eq!(falling.len(), 202);
        assert!(falling.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
