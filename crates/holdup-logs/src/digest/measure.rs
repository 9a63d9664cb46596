//! Statistics of one attribute of one statement: count, sum, least, greatest, squares and sizes.
//! Adding is exact and independent of order, so that threads can share the work.

use crate::digest::histogram::Histogram;

/// An attribute's values over many executions. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Executions that had it.
    pub count: u64,
    /// Sum of the values.
    pub sum: u128,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    squares: u128,
    sizes: Histogram,
    /// Executions of which only sums are known.
    lumped: u64,
    has_no_bounds: bool,
    has_no_squares: bool,
}

/// A server's statistics of many executions: their sum, and further figures if it keeps them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerSums {
    /// Executions.
    pub count: u64,
    /// Sum of their values.
    pub sum: u64,
    /// Least and greatest value, if the server keeps them.
    pub bounds: Option<(u64, u64)>,
    /// Sum of their squares, if the server keeps it.
    pub squares: Option<u128>,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            squares: 0,
            sizes: Histogram::default(),
            lumped: 0,
            has_no_bounds: false,
            has_no_squares: false,
        }
    }
}

impl Measure {
    /// Adds one value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        if value == 0 {
            self.min = 0;
            self.sizes.add(0);
            return;
        }
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        self.sizes.add(value);
    }

    /// Adds many values at once. A figure that is unknown for them becomes unknown for all.
    pub fn add_lump(&mut self, lump: &ServerSums) {
        if lump.count == 0 {
            return;
        }
        self.count = self.count.saturating_add(lump.count);
        self.lumped = self.lumped.saturating_add(lump.count);
        self.sum += u128::from(lump.sum);
        match lump.bounds {
            Some((min, max)) => (self.min, self.max) = (self.min.min(min), self.max.max(max)),
            None => self.has_no_bounds = true,
        }
        match lump.squares {
            Some(squares) => self.squares = self.squares.saturating_add(squares),
            None => self.has_no_squares = true,
        }
    }

    /// Least and greatest value; `None` if they are not known for all values, or without values.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        (!self.has_no_bounds && self.count > 0).then_some((self.min, self.max))
    }

    /// Standard deviation; `None` if unknown.
    pub fn deviation(&self) -> Option<f64> {
        (!self.has_no_squares).then(|| self.variance().sqrt())
    }

    /// Like [`Self::quantiles`]; `None` if only the sum of some values is known.
    pub fn percentiles<const N: usize>(&self, quantiles: [f64; N]) -> Option<[u64; N]> {
        (self.lumped == 0).then(|| self.quantiles(quantiles))
    }

    /// Adds another measure.
    pub fn merge(&mut self, other: &Self) {
        self.lumped = self.lumped.saturating_add(other.lumped);
        self.has_no_bounds |= other.has_no_bounds;
        self.has_no_squares |= other.has_no_squares;
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.squares = self.squares.saturating_add(other.squares);
        self.sizes.merge(&other.sizes);
    }

    /// Arithmetic mean; 0 without values.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are enough for a mean")]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Variance of the population; 0 without values.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are enough for a deviation")]
    pub fn variance(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = u128::from(self.count);
        // In whole numbers first, because floats would lose the difference of two large squares.
        let above = count
            .checked_mul(self.squares)
            .zip(self.sum.checked_mul(self.sum))
            .map(|(a, b)| a.saturating_sub(b) as f64);
        let above = above.unwrap_or(count as f64 * self.squares as f64 - self.sum as f64 * self.sum as f64);
        above.max(0.0) / (count as f64 * count as f64)
    }

    /// The quantiles for these shares (0-1, in order), to within 0.4 %, and never outside the range
    /// of the values.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        if self.count == 0 {
            [0; N]
        } else {
            self.sizes.quantiles(quantiles).map(|value| value.clamp(self.min, self.max))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_exact_however_they_are_put_together() {
        let values = [5_u64, 1, 1, 1_000_000, 77];
        let mut whole = Measure::default();
        values.iter().for_each(|value| whole.add(*value));
        let (mut left, mut right) = (Measure::default(), Measure::default());
        values[..2].iter().for_each(|value| left.add(*value));
        values[2..].iter().for_each(|value| right.add(*value));
        right.merge(&left);
        for measure in [&whole, &right] {
            assert_eq!((measure.count, measure.sum, measure.min, measure.max), (5, 1_000_084, 1, 1_000_000));
            assert!((measure.mean() - 200_016.8).abs() < 1e-6);
            assert!((measure.variance().sqrt() - 399_991.6).abs() < 0.1, "{}", measure.variance().sqrt());
            assert_eq!(measure.quantiles([0.5, 0.99]), [5, 1_000_000]);
        }
        assert_eq!(Measure::default().quantiles([0.5]), [0]);
    }

    #[test]
    fn figures_that_a_server_did_not_keep_stay_empty() {
        let mut measure = Measure::default();
        measure.add_lump(&ServerSums { count: 4, sum: 40, bounds: Some((5, 20)), squares: None });
        assert_eq!((measure.count, measure.sum, measure.bounds()), (4, 40, Some((5, 20))));
        assert_eq!((measure.percentiles([0.5]), measure.deviation()), (None, None));
        let mut known = Measure::default();
        known.add(7);
        assert_eq!((known.percentiles([0.5]), known.deviation()), (Some([7]), Some(0.0)));
        known.merge(&measure);
        assert_eq!((known.percentiles([0.5]), known.bounds()), (None, Some((5, 20))));
        known.add_lump(&ServerSums { count: 1, sum: 1, ..ServerSums::default() });
        assert_eq!(known.bounds(), None);
    }
}
