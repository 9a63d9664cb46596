//! The random numbers of a row: a sequence that the seed and the row's number determine.

use holdup_load::script::Random;

/// Spreads row numbers: an odd number near 2^64 divided by the golden ratio's square root.
const SPREAD: u64 = 0xd1b5_4a32_d192_ed03;

/// The sequence of row `number`.
pub(crate) fn of_row(seed: u64, number: u64) -> Random {
    // Neighbouring states would give overlapping sequences: the first number of each is another's seed.
    Random::new(Random::new(seed ^ number.wrapping_mul(SPREAD)).next())
}
