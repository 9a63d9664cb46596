//! Values with their frequency: request rows that stand for several requests, buckets of
//! histograms, and plain values. Percentiles are nearest rank: always a value that occurred, never
//! one in between.

/// Ascending values, each with the number of values up to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    steps: Vec<(f64, u64)>,
    sum: f64,
}

impl Distribution {
    /// Builds it from values with their frequency, in any order.
    pub fn from_counts(values: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut steps: Vec<(f64, u64)> = values.into_iter().filter(|(_, count)| *count > 0).collect();
        steps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        steps.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let (mut below, mut sum) = (0, 0.0);
        for (value, count) in &mut steps {
            sum += *value * *count as f64;
            below += *count;
            *count = below;
        }
        Self { steps, sum }
    }

    /// All values of `parts` together.
    pub fn merged<'d>(parts: impl IntoIterator<Item = &'d Self>) -> Self {
        Self::from_counts(parts.into_iter().flat_map(Self::values))
    }

    /// Values in ascending order with their frequency.
    pub fn values(&self) -> impl Iterator<Item = (f64, u64)> {
        let below = std::iter::once(0).chain(self.steps.iter().map(|(_, count)| *count));
        self.steps.iter().zip(below).map(|((value, count), below)| (*value, count - below))
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.steps.last().map_or(0, |(_, count)| *count)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Percentile `q` (0-1): the smallest value that at least a share `q` does not exceed. None
    /// without values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.count() as f64).ceil().max(1.0) as u64;
        let at = self.steps.partition_point(|(_, count)| *count < rank);
        self.steps.get(at).or(self.steps.last()).map(|(value, _)| *value)
    }

    /// Greatest value.
    pub fn max(&self) -> Option<f64> {
        self.steps.last().map(|(value, _)| *value)
    }

    /// Mean; none without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum / self.count() as f64)
    }
}

/// Mean of values with their frequency; none without values.
pub fn mean_of(values: impl IntoIterator<Item = (f64, u64)>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_u64), |(s, n), (v, w)| (s + v * w as f64, n + w));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_values_that_occurred() {
        let plain = Distribution::from_counts((1..=100).map(|v| (f64::from(v), 1)));
        assert_eq!(
            (plain.quantile(0.99), plain.quantile(0.5), plain.quantile(0.0)),
            (Some(99.0), Some(50.0), Some(1.0))
        );
        assert_eq!((plain.mean(), plain.max(), plain.count()), (Some(50.5), Some(100.0), 100));
        let nothing = Distribution::default();
        assert_eq!((nothing.quantile(0.5), nothing.mean(), nothing.count()), (None, None, 0));
    }

    #[test]
    fn a_value_counts_as_often_as_it_occurred() {
        let weighted = Distribution::from_counts([(9.0, 1), (1.0, 98), (5.0, 1), (7.0, 0)]);
        assert_eq!(
            (weighted.quantile(0.98), weighted.quantile(0.99), weighted.max()),
            (Some(1.0), Some(5.0), Some(9.0))
        );
        assert_eq!(weighted.mean(), Some(1.12));
        let both = Distribution::merged([&weighted, &Distribution::from_counts([(1.0, 100)])]);
        assert_eq!((both.count(), both.values().next()), (200, Some((1.0, 198))));
        assert_eq!((both.quantile(0.99), both.quantile(0.995)), (Some(1.0), Some(5.0)));
    }
}
