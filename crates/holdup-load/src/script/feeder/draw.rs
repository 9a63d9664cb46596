//! Which row is drawn next, as a pure function of the draw's number: loops of one process share a
//! counter of draws, and processes that share a load interleave theirs, so that together they draw
//! what one process would.

use crate::script::Random;

/// Distance between the seeds of consecutive draws: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The order of drawing rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One after the other, as they are in the file.
    #[default]
    Sequential,
    /// Any row at any time, with equal probability.
    Random,
    /// One after the other, and none twice in the whole run.
    Unique,
}

/// What happens once all rows have been drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// Start again with the first row.
    Again,
    /// End the run.
    Stop,
    /// Fail the session that needs a row.
    Fail,
}

/// The result of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The row of that index.
    Row(usize),
    /// No row is left: the session fails.
    Dry,
    /// No row is left, and the run ends.
    StopRun,
}

/// Draws rows.
///
/// ```
/// use holdup_load::script::{AtEnd, Draw, Drawer, Order};
///
/// // Five rows, and the second of two processes.
/// let drawer = Drawer::new(Order::Unique, AtEnd::Fail, 5, 0, 1, 2);
/// let drawn: Vec<Draw> = (0..3).map(|number| drawer.draw(number)).collect();
/// assert_eq!(drawn, [Draw::Row(1), Draw::Row(3), Draw::Dry]);
/// ```
#[derive(Clone, Debug)]
pub struct Drawer {
    order: Order,
    at_end: AtEnd,
    rows: u64,
    seed: u64,
    share_index: u32,
    share_of: u32,
}

impl Drawer {
    /// Draws from so many rows. Only random draws depend on the seed: it has to be the same in all
    /// processes, and different for each feeder of a scenario, else they draw alike. This process
    /// has share `share_index`, from 0, of `share_of`; an impossible share counts as all of the
    /// load.
    ///
    /// Random draws never end. Unique ones never start again: [`AtEnd::Again`] then counts as
    /// [`AtEnd::Fail`].
    pub fn new(order: Order, at_end: AtEnd, rows: usize, seed: u64, share_index: u32, share_of: u32) -> Self {
        let (share_index, share_of) = if share_index < share_of { (share_index, share_of) } else { (0, 1) };
        Self { order, at_end, rows: rows as u64, seed, share_index, share_of }
    }

    /// The row of this share's draw `number`, from 0.
    pub fn draw(&self, number: u64) -> Draw {
        let of_all = u128::from(number) * u128::from(self.share_of) + u128::from(self.share_index);
        let rows = u128::from(self.rows);
        let row = match (self.order, self.at_end) {
            (Order::Random, _) if rows > 0 => u128::from(self.at_random(of_all as u64)),
            (Order::Sequential, AtEnd::Again) if rows > 0 => of_all % rows,
            (_, AtEnd::Stop) if of_all >= rows => return Draw::StopRun,
            _ => of_all,
        };
        if row < rows { Draw::Row(row as usize) } else { Draw::Dry }
    }

    /// Two rounds: consecutive seeds of two feeders must not give the same sequence one step apart.
    fn at_random(&self, of_all: u64) -> u64 {
        let mixed = Random::new(self.seed).next() ^ of_all.wrapping_mul(STEP);
        Random::new(mixed).below(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawer(rows: usize, order: Order, index: u32, of: u32) -> Drawer {
        let at_end = if order == Order::Unique { AtEnd::Fail } else { AtEnd::Again };
        Drawer::new(order, at_end, rows, 0, index, of)
    }

    fn rows(drawer: &Drawer, draws: u64) -> Vec<usize> {
        let row = |number| match drawer.draw(number) {
            Draw::Row(row) => Some(row),
            _ => None,
        };
        (0..draws).map_while(row).collect()
    }

    #[test]
    fn shares_together_draw_what_one_process_would() {
        for order in [Order::Sequential, Order::Random, Order::Unique] {
            for (count, of) in [(7, 3), (3, 5), (10, 1), (64, 8)] {
                let all = rows(&drawer(count, order, 0, 1), 60);
                let mut shared = Vec::new();
                let mut turns: Vec<_> =
                    (0..of).map(|index| rows(&drawer(count, order, index, of), 60).into_iter()).collect();
                'all: loop {
                    for turn in &mut turns {
                        match turn.next() {
                            Some(row) if shared.len() < all.len() => shared.push(row),
                            _ => break 'all,
                        }
                    }
                }
                assert_eq!(shared, all, "{order:?} of {count} in {of} shares");
            }
        }
    }

    #[test]
    fn no_row_is_unique_twice_and_each_is_drawn() {
        for (count, of) in [(1_000, 7), (3, 5), (1, 1)] {
            let mut drawn: Vec<usize> =
                (0..of).flat_map(|index| rows(&drawer(count, Order::Unique, index, of), 2_000)).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn at_its_end_it_does_as_told() {
        let end = |order, at_end| Drawer::new(order, at_end, 2, 0, 0, 1).draw(2);
        assert_eq!(end(Order::Sequential, AtEnd::Again), Draw::Row(0));
        assert_eq!(end(Order::Sequential, AtEnd::Stop), Draw::StopRun);
        assert_eq!(end(Order::Sequential, AtEnd::Fail), Draw::Dry);
        assert_eq!(end(Order::Unique, AtEnd::Fail), Draw::Dry);
        assert_eq!(end(Order::Unique, AtEnd::Again), Draw::Dry);
        assert_eq!(end(Order::Unique, AtEnd::Stop), Draw::StopRun);
        for at_end in [AtEnd::Again, AtEnd::Stop, AtEnd::Fail] {
            assert!(matches!(end(Order::Random, at_end), Draw::Row(0 | 1)));
        }
    }

    #[test]
    fn at_random_each_row_is_as_likely_and_seeds_differ() {
        let seeded = |seed| rows(&Drawer::new(Order::Random, AtEnd::Again, 10, seed, 0, 1), 20_000);
        let drawn = seeded(5);
        for row in 0..10 {
            let times = drawn.iter().filter(|drawn| **drawn == row).count();
            assert!((1_800..2_200).contains(&times), "row {row}: {times} of 20,000");
        }
        assert_eq!(drawn, seeded(5));
        for (seed, apart) in [(6, 0), (6, 1), (5_u64.wrapping_add(STEP), 0), (5_u64.wrapping_add(STEP), 1)] {
            let alike = seeded(seed).iter().zip(&drawn[apart..]).filter(|(a, b)| a == b).count();
            assert!(alike < 2_400, "seed {seed}: {alike} of 20,000 alike");
        }
    }

    #[test]
    fn extremes_do_no_harm() {
        for order in [Order::Sequential, Order::Random, Order::Unique] {
            assert_eq!(drawer(0, order, 0, 1).draw(0), Draw::Dry);
            let far = drawer(usize::MAX, order, u32::MAX - 1, u32::MAX).draw(u64::MAX);
            assert!(matches!(far, Draw::Row(_) | Draw::Dry), "{far:?}");
            assert_eq!(drawer(3, order, 9, 0).draw(1), drawer(3, order, 0, 1).draw(1));
        }
    }
}
