//! Counts by small numbers, such as those of users or hosts. Most servers have few of them, and
//! these are found without a search.

use std::collections::BTreeMap;

/// Numbers with an array slot of their own.
const DENSE: usize = 256;

/// How often each number occurred.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    dense: Vec<u64>,
    others: BTreeMap<u32, u64>,
}

impl Counts {
    /// Counts a number `more` times.
    pub fn add(&mut self, number: u32, more: u64) {
        let index = number as usize;
        if index >= DENSE {
            let count = self.others.entry(number).or_default();
            *count = count.saturating_add(more);
            return;
        }
        if self.dense.len() <= index {
            self.dense.resize(index + 1, 0);
        }
        self.dense[index] = self.dense[index].saturating_add(more);
    }

    /// All numbers that occurred, in order.
    pub fn all(&self) -> impl Iterator<Item = (u32, u64)> {
        let dense = (0_u32..).zip(self.dense.iter().copied()).filter(|(_, count)| *count > 0);
        dense.chain(self.others.iter().map(|(number, count)| (*number, *count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurred_is_counted() {
        let mut counts = Counts::default();
        for number in [3, 70_000, 3, 255, 256] {
            counts.add(number, 1);
        }
        assert_eq!(counts.all().collect::<Vec<_>>(), [(3, 2), (255, 1), (256, 1), (70_000, 1)]);
    }
}
