//! Values counted by size, 128 steps to each doubling: what is read out of it is at most 0.4 % beside what went in.
//! Only the doublings that occur take room. It does not know units.

/// Steps in a doubling, as a power of two.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;

type Page = [u32; STEPS];

/// Counts of values by size.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Most values of most attributes are 0: these touch no page.
    zeros: u64,
    pages: Vec<Option<Box<Page>>>,
}

/// Page and step of a value. Values below 128 have a step each.
fn place(value: u64) -> (usize, usize) {
    let shift = (64 - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let page = if value < STEPS as u64 { 0 } else { shift as usize + 1 };
    (page, (value >> shift) as usize & (STEPS - 1))
}

/// The middle of a step.
fn middle(page: usize, step: usize) -> u64 {
    let Some(shift) = page.checked_sub(1) else { return step as u64 };
    let low = ((STEPS + step) as u64) << shift;
    low + ((1_u64 << shift) >> 1)
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        if value == 0 {
            self.zeros += 1;
            return;
        }
        let (page, step) = place(value);
        let count = &mut self.page(page)[step];
        *count = count.saturating_add(1);
    }

    fn page(&mut self, page: usize) -> &mut Page {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([0; STEPS]))
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        for (index, page) in other.pages.iter().enumerate() {
            let Some(page) = page else { continue };
            for (count, more) in self.page(index).iter_mut().zip(page.iter()) {
                *count = count.saturating_add(*more);
            }
        }
    }

    /// The values that these parts (0-1, in order) of all are not above, by nearest rank; 0 of none.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let pages = || self.pages.iter().enumerate().filter_map(|(index, page)| Some((index, page.as_deref()?)));
        let sums: Vec<u64> = pages().map(|(_, page)| page.iter().map(|count| u64::from(*count)).sum()).collect();
        let total = self.zeros + sums.iter().sum::<u64>();
        let mut found = [0; N];
        let mut passed = self.zeros;
        let mut left = pages().zip(sums).peekable();
        for (quantile, value) in quantiles.iter().zip(&mut found) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a rank"
            )]
            let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total.max(1));
            if rank <= self.zeros {
                continue;
            }
            while let Some((_, sum)) = left.peek().filter(|(_, sum)| passed + sum < rank) {
                passed += sum;
                left.next();
            }
            let Some(((page, counts), _)) = left.peek() else { continue };
            let mut within = passed;
            let step = counts.iter().position(|count| {
                within += u64::from(*count);
                within >= rank
            });
            *value = middle(*page, step.unwrap_or(0));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_within_half_a_percent() {
        let mut state = 3_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = state >> (state >> 58);
            let (page, step) = place(value);
            let out = middle(page, step);
            assert!(value.abs_diff(out) as f64 <= value as f64 * 0.004, "{value} {out}");
        }
        assert_eq!(place(u64::MAX), (57, 127));
    }

    #[test]
    fn quantiles_are_nearest_ranks_and_merging_adds() {
        let (mut all, mut half) = (Histogram::default(), Histogram::default());
        for value in 1..=100_u64 {
            if value % 2 == 0 { &mut all } else { &mut half }.add(value);
        }
        all.merge(&half);
        assert_eq!(all.quantiles([0.0, 0.01, 0.5, 0.95, 0.99, 1.0]), [1, 1, 50, 95, 99, 100]);
        (0..100).for_each(|_| all.add(0));
        assert_eq!(all.quantiles([0.5, 0.51, 1.0]), [0, 2, 100]);
        assert_eq!(Histogram::default().quantiles([0.5]), [0]);
    }
}
