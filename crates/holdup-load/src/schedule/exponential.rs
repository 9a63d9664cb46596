//! Unit exponentials from a seed: the gaps of a Poisson process, measured in requests. They are the
//! same numbers on every machine, because shards on several machines must agree. So this uses
//! integers, and of floating point only the operations that IEEE 754 defines to the last bit. (The
//! `ln` of a C library is not among them.)

use std::f64::consts::{LN_2, SQRT_2};
use std::sync::Arc;

use crate::script::Random;

use super::curve::REQUEST;

/// Drawn from SplitMix64, whose outputs each come once in 2^64.
#[derive(Clone, Debug)]
pub(super) struct Exponentials {
    random: Random,
    /// For equal cells of the numbers from 1 to 2: the reciprocal of the middle, and its logarithm.
    cells: Arc<[(f64, f64); CELLS]>,
}

const CELLS: usize = 64;

impl Exponentials {
    pub fn new(seed: u64) -> Self {
        let middle = |i: usize| 1.0 + (i as f64 + 0.5) / CELLS as f64;
        let cells = std::array::from_fn(|i| (1.0 / middle(i), ln(middle(i))));
        Self { random: Random::new(seed), cells: Arc::new(cells) }
    }

    /// The next gap in the curve's unit, rounded down: -ln(u), u evenly from 2^-53 to 1, so at most
    /// 36.8 requests.
    #[inline]
    pub fn next(&mut self) -> u64 {
        let u = (self.random.next() >> 11) + 1;
        (self.minus_ln(u) * REQUEST as f64) as u64
    }

    /// -ln(u / 2^53) for u from 1 to 2^53, with an error of about 1e-15, relative or absolute. The
    /// logarithm of the cell's middle comes from the table, and the series adds the distance of u
    /// from the middle, which is at most 1/128 of it.
    #[inline]
    fn minus_ln(&self, u: u64) -> f64 {
        // u has at most 53 significant bits, so the number is exact: its bits contain the integer
        // part of the logarithm and the mantissa.
        let bits = (u as f64).to_bits();
        let exponent = (bits >> 52) as i32 - 1_023;
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1_023 << 52);
        let (reciprocal, logarithm) = self.cells[(bits >> 46) as usize % CELLS];
        let r = mantissa * reciprocal - 1.0;
        let q = r * r;
        let series = (1.0 - r / 2.0) + q * ((1.0 / 3.0 - r / 4.0) + q * ((1.0 / 5.0 - r / 6.0) + q / 7.0));
        (f64::from(53 - exponent) * LN_2 - logarithm - r * series).max(0.0)
    }
}

/// ln x for x from 1 to 2.
fn ln(x: f64) -> f64 {
    let (x, halves) = if x > SQRT_2 { (x / 2.0, 1.0) } else { (x, 0.0) };
    // ln x = 2 artanh s with s = (x-1)/(x+1), |s| <= 0.1716: the series' next term would be below 1e-17.
    let s = (x - 1.0) / (x + 1.0);
    let series = (0..11).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    halves * LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        let (mut random, gaps) = (Random::new(5), Exponentials::new(5));
        let drawn: Vec<u64> = (0..100_000).map(|_| (random.next() >> 11) + 1).collect();
        for u in drawn.into_iter().chain([1, 2, 3, 1 << 53, (1 << 53) - 1]) {
            let (expected, found) = (-(u as f64 / (1u64 << 53) as f64).ln(), gaps.minus_ln(u));
            assert!((found - expected).abs() < 2e-15 * expected.max(1.0), "{u}: {found} {expected}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let mut gaps = Exponentials::new(1);
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| gaps.next() as f64 / REQUEST as f64).collect();
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(n);
        let beyond_three = values.iter().filter(|v| **v > 3.0).count() as f64 / f64::from(n);
        // Five standard errors: 1/sqrt(n), sqrt(8/n), sqrt(p/n).
        assert!((mean - 1.0).abs() < 0.012, "{mean}");
        assert!((variance - 1.0).abs() < 0.035, "{variance}");
        assert!((beyond_three - (-3f64).exp()).abs() < 0.003, "{beyond_three}");
    }

    /// The sequence is a promise: shards of different builds of holdup must agree.
    #[test]
    fn the_sequence_stays() {
        let mut random = Random::new(1_234_567);
        // The published first outputs of SplitMix64 for this seed.
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let mut gaps = Exponentials::new(1_234_567);
        assert_eq!(
            [gaps.next(), gaps.next(), gaps.next()],
            [2_099_189_774_801_347, 3_501_494_991_860_906, 1_261_444_392_503_183]
        );
    }
}
