//! The order in which versions are measured. Every round has each version once, and every second
//! round reverses the order of the one before. Even drift from run to run (a machine that warms up,
//! a table that grows) then affects all versions alike. A reported seed draws which version comes
//! first.

/// The schedule: the round, counted from 1, and the index into `versions`.
pub fn balanced(versions: usize, rounds: u32, seed: u64) -> Vec<(u32, usize)> {
    let mut random = SplitMix(seed);
    let mut turn: Vec<usize> = (0..versions).collect();
    let mut order = Vec::with_capacity(versions * rounds as usize);
    for round in 1..=rounds {
        if round % 2 == 1 {
            random.shuffle(&mut turn);
        } else {
            turn.reverse();
        }
        order.extend(turn.iter().map(|version| (round, *version)));
    }
    order
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn shuffle(&mut self, turn: &mut [usize]) {
        for last in (1..turn.len()).rev() {
            turn.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of a version's places is what an even drift adds to it.
    #[test]
    fn an_even_drift_falls_on_all_alike() {
        for (versions, seed) in [(2, 1), (2, 2), (3, 7), (5, 9)] {
            let order = balanced(versions, 4, seed);
            let places = |version: usize| -> usize {
                order.iter().enumerate().filter(|(_, (_, which))| *which == version).map(|(place, _)| place).sum()
            };
            assert!((1..versions).all(|version| places(version) == places(0)), "{order:?}");
            for round in 1..=4 {
                let mut of: Vec<usize> = order.iter().filter(|(r, _)| *r == round).map(|(_, which)| *which).collect();
                of.sort_unstable();
                assert_eq!(of, (0..versions).collect::<Vec<_>>(), "round {round} of {order:?}");
            }
        }
    }

    #[test]
    fn the_first_version_is_drawn_by_seed() {
        assert_eq!(balanced(2, 3, 5), balanced(2, 3, 5));
        let firsts = (0..100).filter(|seed| balanced(2, 1, *seed)[0].1 == 0).count();
        assert!((30..=70).contains(&firsts), "{firsts}");
        assert_eq!(balanced(1, 3, 0), [(1, 0), (2, 0), (3, 0)]);
    }
}
