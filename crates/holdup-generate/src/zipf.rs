//! Zipf's distribution: rank `k` of `n` has a share of `1 / k^exponent`. Drawn by rejection-inversion
//! (W. Hörmann and G. Derflinger 1996: "Rejection-inversion to generate variates from monotone discrete
//! distributions"), so that it takes constant time and memory for any `n`.

use holdup_load::script::Random;

/// The distribution of ranks 1 to `n`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zipf {
    n: f64,
    exponent: f64,
    first: f64,
    last: f64,
    accepted: f64,
}

impl Zipf {
    pub(crate) fn new(n: u64, exponent: f64) -> Self {
        let mut zipf = Self { n: n as f64, exponent, first: 0.0, last: 0.0, accepted: 0.0 };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.last = zipf.area(zipf.n + 0.5);
        zipf.accepted = 2.0 - zipf.place(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let at = self.last + random.unit() * (self.first - self.last);
            let place = self.place(at);
            let rank = (place + 0.5).floor().clamp(1.0, self.n);
            if rank - place <= self.accepted || at >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    /// `x^-exponent`.
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the height.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        let stretched = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        stretched * log
    }

    /// Its inverse.
    fn place(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        let shrunk = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (shrunk * area).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_formula() {
        for (n, exponent) in [(10, 1.0), (10, 0.5), (1_000, 1.5), (1, 1.0)] {
            let zipf = Zipf::new(n, exponent);
            let mut random = Random::new(7);
            let mut counts = vec![0.0; n as usize + 1];
            for _ in 0..100_000 {
                counts[zipf.draw(&mut random) as usize] += 1.0;
            }
            let whole: f64 = (1..=n).map(|k| (k as f64).powf(-exponent)).sum();
            for rank in [1, n.min(2), n.min(9)] {
                let share = (rank as f64).powf(-exponent) / whole;
                let found = counts[rank as usize] / 100_000.0;
                assert!((found - share).abs() < 0.01, "{rank} of {n}, {exponent}: {found} and not {share}");
            }
        }
    }
}
