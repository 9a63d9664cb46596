//! Numbers drawn by seed.

/// Numbers without a pattern (`SplitMix64`).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    pub fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.part()
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// Spread like times of work: half of the values are below `median`.
    pub fn around(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (-2.0 * self.part().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.part()).cos();
        median * (sigma * normal).exp()
    }

    pub fn after(&mut self, per_second: f64) -> f64 {
        -self.part().max(1e-12).ln() / per_second * 1e3
    }
}
