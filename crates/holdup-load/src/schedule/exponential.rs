//! Unit exponentials from a seed: the gaps of a Poisson process, measured in requests. The same numbers on every
//! machine, because shards on several of them must agree: whole-number arithmetic, and of floating point only the
//! operations that IEEE 754 defines to the last bit. (The `ln` of a C library is none of them.)

use std::f64::consts::{LN_2, SQRT_2};

use super::curve::REQUEST;

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a counter that
/// rises by the golden ratio, each value of it mixed. 64 bits of state, each output once in 2^64.
#[derive(Clone, Debug)]
pub(super) struct Exponentials {
    counter: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Exponentials {
    pub fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GOLDEN);
        let z = self.counter;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next gap in the curve's unit, rounded down: -ln(u), u evenly from 2^-53 to 1, so at most 36.8 requests.
    #[inline]
    pub fn next(&mut self) -> u64 {
        let u = (self.bits() >> 11) + 1;
        (minus_ln(u) * REQUEST as f64) as u64
    }
}

/// -ln(u / 2^53) for u from 1 to 2^53, to about 1e-15.
#[inline]
fn minus_ln(u: u64) -> f64 {
    let mut exponent = 63 - i32::try_from(u.leading_zeros()).unwrap_or(0);
    // Exact: u has at most 53 significant bits, and the other factor is a power of two.
    let mut mantissa = u as f64 / (1u64 << exponent) as f64;
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s with s = (m-1)/(m+1), |s| <= 0.1716: the series' next term would be below 1e-15.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let q = s * s;
    let tail = 1.0 / 13.0 + q * (1.0 / 15.0 + q * (1.0 / 17.0 + q / 19.0));
    let series =
        1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * tail)))));
    f64::from(53 - exponent) * LN_2 - 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        let mut bits = Exponentials::new(5);
        for u in (0..100_000).map(|_| (bits.bits() >> 11) + 1).chain([1, 2, 3, 1 << 53, (1 << 53) - 1]) {
            let expected = -(u as f64 / (1u64 << 53) as f64).ln();
            assert!((minus_ln(u) - expected).abs() < 5e-15 * expected.max(1.0), "{u}: {} {expected}", minus_ln(u));
            assert!(minus_ln(u) >= 0.0);
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
        let mut bits = Exponentials::new(1_234_567);
        // The published first outputs of SplitMix64 for this seed.
        assert_eq!(
            [bits.bits(), bits.bits(), bits.bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
