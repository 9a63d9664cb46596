//! The shapes of a schedule: each is a list of stretches in which the rate is constant or changes
//! linearly.

use std::sync::Arc;
use std::time::Duration;

use super::curve::{Curve, Piece, line, millionths, nanoseconds, pieces};
use super::{Schedule, Stretch, Timing, pretty};

/// Straight lines for one period of a sine. They deviate from the true curve by at most (2 pi /
/// 128)² / 8 = 0.03 % of the amplitude, and the number of requests in a period is exact.
const LINES_PER_PERIOD: u64 = 128;

impl Schedule {
    /// Joins stretches.
    pub fn new(stretches: Vec<Stretch>) -> Self {
        let mut curve = Curve::default();
        for stretch in &stretches {
            curve.push(line(stretch.length, stretch.rate_from, stretch.rate_to));
        }
        Self::from_parts(stretches, curve, Timing::Even { group: 1 })
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

    /// The rate is `base`; it is `peak` from `at` on for `lasting`, and then `base` again until
    /// `length`.
    pub fn spike(base: f64, peak: f64, at: Duration, lasting: Duration, length: Duration) -> Self {
        let parts = [
            ("before", base, at.min(length)),
            ("spike", peak, lasting.min(length.saturating_sub(at))),
            ("after", base, length.saturating_sub(at + lasting)),
        ];
        Self::new(
            parts
                .into_iter()
                .filter(|(_, _, length)| !length.is_zero())
                .map(|(name, rate, length)| Stretch { name: name.to_owned(), length, rate_from: rate, rate_to: rate })
                .collect(),
        )
    }

    /// The rate swings around `mean` by `amplitude`, first upwards; one stretch per period, the
    /// last one cut off at `length`.
    pub fn sine(mean: f64, amplitude: f64, period: Duration, length: Duration) -> Self {
        let whole = period_of(mean, amplitude, nanoseconds(period));
        let (mut curve, mut stretches, mut start) = (Curve::default(), Vec::new(), Duration::ZERO);
        while start < length {
            let rest = (length - start).min(period);
            let lines = if rest == period { Arc::clone(&whole) } else { until(&whole, nanoseconds(rest)) };
            stretches.push(Stretch {
                name: format!("period {}: {} ± {}/s", stretches.len() + 1, pretty(mean), pretty(amplitude)),
                length: rest,
                rate_from: mean,
                rate_to: lines.last().map_or(mean, |line| line.rate_to as f64 / 1e6),
            });
            curve.push(lines);
            start += rest;
        }
        Self::from_parts(stretches, curve, Timing::Even { group: 1 })
    }
}

/// A period of a sine in straight lines. The area of its first half above the mean equals that of
/// its second half below, to the last millionth and nanosecond.
fn period_of(mean: f64, amplitude: f64, period_ns: u64) -> Arc<[Piece]> {
    let half = LINES_PER_PERIOD / 2;
    let corner = |i: u64| (u128::from(period_ns) * u128::from(i) / u128::from(LINES_PER_PERIOD)) as u64;
    let place = |i: u64| if i <= half { corner(i) } else { period_ns - corner(LINES_PER_PERIOD - i) };
    let swing = |i: u64| {
        let turn = (i as f64 / LINES_PER_PERIOD as f64) * std::f64::consts::TAU;
        millionths(amplitude * turn.sin().max(0.0))
    };
    let mean = millionths(mean);
    let rate = |i: u64| if i <= half { mean + swing(i) } else { mean.saturating_sub(swing(LINES_PER_PERIOD - i)) };
    pieces((0..LINES_PER_PERIOD).map(|i| (place(i + 1) - place(i), rate(i), rate(i + 1))))
}

/// The part of `lines` before `end_ns`.
fn until(lines: &[Piece], end_ns: u64) -> Arc<[Piece]> {
    pieces(lines.iter().take_while(|line| line.from_ns < end_ns).map(|line| {
        let kept = line.length_ns.min(end_ns - line.from_ns);
        (kept, line.rate_from, if kept == line.length_ns { line.rate_to } else { millionths(line.rate(kept)) })
    }))
}
