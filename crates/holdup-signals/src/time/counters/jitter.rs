//! Whether a verdict depends on the exact value of a constant: every threshold and weight of a
//! judgement passes through here, and can be moved by a factor that depends on its place and a
//! seed. Normally nothing moves.

/// Moves constants by up to a factor, the same constant always the same way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    seed: u64,
    factor: f64,
}

impl Jitter {
    /// Constants as they are written.
    pub const NONE: Self = Self { seed: 0, factor: 1.0 };

    /// Every constant multiplied by a factor from `1 / factor` to `factor`, evenly on a logarithmic
    /// scale.
    #[must_use]
    pub const fn new(seed: u64, factor: f64) -> Self {
        Self { seed, factor }
    }

    /// The constant to use for the one written at this place.
    #[must_use]
    pub fn apply(self, place: &str, constant: f64) -> f64 {
        if self.factor <= 1.0 {
            return constant;
        }
        constant * self.factor.powf(2.0 * self.even(place) - 1.0)
    }

    /// A number from 0 to 1 that depends only on the place and the seed (FNV-1a, then splitmix64's
    /// finish).
    fn even(self, place: &str) -> f64 {
        let hash = place
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64 ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_its_factor_and_does_not_wander() {
        let jitter = Jitter::new(7, 1.3);
        let moved: Vec<f64> = (0..200).map(|place| jitter.apply(&place.to_string(), 2.0)).collect();
        assert!(moved.iter().all(|value| (2.0 / 1.3..=2.0 * 1.3).contains(value)));
        assert!(moved.iter().any(|value| *value < 1.7) && moved.iter().any(|value| *value > 2.4));
        assert!((jitter.apply("a", 2.0) - jitter.apply("a", 2.0)).abs() < f64::EPSILON);
        assert!((Jitter::NONE.apply("a", 2.0) - 2.0).abs() < f64::EPSILON);
    }
}
