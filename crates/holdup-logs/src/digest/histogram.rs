//! Counts values by size, with 128 steps per doubling, so a value read from it is off by 0.4 % at
//! most. Only doublings that occur take memory. It does not know units.

/// Steps in a doubling, as a power of two.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;

type Page = [u32; STEPS];

/// Number of values that are kept as they came, until they are sorted in.
const WAITING: usize = 28;
/// Number of different sizes that are kept as a list; beyond that, doublings have pages.
const LISTED: usize = 96;

/// Counts of values by size.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Most values of most attributes are 0: these touch no page.
    zeros: u64,
    /// Sizes of the latest values. Sorting them in one by one would miss the cache each time.
    waiting: [u16; WAITING],
    waits: u16,
    /// A few different sizes, in order.
    listed: Vec<(u16, u32)>,
    pages: Vec<Option<Box<Page>>>,
}

/// The rank of a size among all.
fn size(value: u64) -> u16 {
    let (page, step) = place(value);
    u16::try_from(page * STEPS + step).unwrap_or(u16::MAX)
}

/// Page and step of a value. Each value below 128 has its own step.
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
        if let Some(place) = self.waiting.get_mut(usize::from(self.waits)) {
            *place = size(value);
            self.waits += 1;
            return;
        }
        self.settle();
        self.waiting[0] = size(value);
        self.waits = 1;
    }

    /// Sorts waiting values in.
    #[inline(never)]
    fn settle(&mut self) {
        let waiting = self.waiting;
        for size in waiting.iter().take(usize::from(self.waits)) {
            self.count(*size, 1);
        }
        self.waits = 0;
    }

    fn count(&mut self, size: u16, more: u32) {
        if self.pages.is_empty() {
            match self.listed.binary_search_by_key(&size, |(known, _)| *known) {
                Ok(at) => self.listed[at].1 = self.listed[at].1.saturating_add(more),
                Err(at) if self.listed.len() < LISTED => self.listed.insert(at, (size, more)),
                Err(_) => {
                    for (size, count) in std::mem::take(&mut self.listed) {
                        self.turn(size, count);
                    }
                    self.turn(size, more);
                }
            }
            return;
        }
        self.turn(size, more);
    }

    /// Counts in a page.
    fn turn(&mut self, size: u16, more: u32) {
        let count = &mut self.page(usize::from(size) / STEPS)[usize::from(size) % STEPS];
        *count = count.saturating_add(more);
    }

    fn page(&mut self, page: usize) -> &mut Page {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([0; STEPS]))
    }

    /// Sizes and their counts, in order, without waiting values.
    fn settled(&self) -> impl Iterator<Item = (u16, u32)> {
        let pages = self.pages.iter().enumerate().filter_map(|(index, page)| Some((index, page.as_deref()?)));
        let paged = pages.flat_map(|(index, page)| {
            let counts = page.iter().enumerate().filter(|(_, count)| **count > 0);
            counts.map(move |(step, count)| (u16::try_from(index * STEPS + step).unwrap_or(u16::MAX), *count))
        });
        self.listed.iter().copied().chain(paged)
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        self.settle();
        for (size, count) in other.settled() {
            self.count(size, count);
        }
        for size in other.waiting.iter().take(usize::from(other.waits)) {
            self.count(*size, 1);
        }
    }

    /// The quantiles for these shares (0-1, in order), by nearest rank; 0 without values.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        if self.waits > 0 {
            let mut all = self.clone();
            all.settle();
            return all.quantiles(quantiles);
        }
        let total = self.zeros + self.settled().map(|(_, count)| u64::from(count)).sum::<u64>();
        let mut found = [0; N];
        let (mut passed, mut last) = (self.zeros, 0);
        let mut left = self.settled();
        for (quantile, value) in quantiles.iter().zip(&mut found) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a rank"
            )]
            let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total.max(1));
            while passed < rank {
                let Some((size, count)) = left.next() else { break };
                passed += u64::from(count);
                last = middle(usize::from(size) / STEPS, usize::from(size) % STEPS);
            }
            *value = if rank <= self.zeros { 0 } else { last };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_half_a_percent() {
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

    #[test]
    fn lists_and_pages_count_the_same() {
        let (mut all, mut parts) = (Histogram::default(), [Histogram::default(), Histogram::default()]);
        let values: Vec<u64> = (1..5_000_u64).map(|value| value * value % 7_919).collect();
        for (index, value) in values.iter().enumerate() {
            all.add(*value);
            // One of few sizes, one of many.
            parts[usize::from(index > 40)].add(*value);
        }
        let [mut few, many] = parts;
        few.merge(&many);
        let quantiles = [0.1, 0.5, 0.9, 0.95, 0.99, 1.0];
        assert_eq!(all.quantiles(quantiles), few.quantiles(quantiles));
        let mut sorted = values;
        sorted.sort_unstable();
        for (quantile, value) in quantiles.iter().zip(all.quantiles(quantiles)) {
            let rank = (sorted.len() as f64 * quantile).ceil() as usize;
            assert!(value.abs_diff(sorted[rank - 1]) as f64 <= sorted[rank - 1] as f64 * 0.004, "{quantile}: {value}");
        }
    }
}
