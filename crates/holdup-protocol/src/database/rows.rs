//! Hashes the rows of a result, so that two servers' answers can be compared without keeping them.
//! Hashes say whether rows are equal byte for byte as sent, and nothing about their content.

/// How to handle rows that are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// Count and skip them.
    #[default]
    Passed,
    /// Hash them in their order.
    Hashed,
    /// Hash them regardless of their order: without `ORDER BY` a server may choose it.
    HashedInAnyOrder,
}

/// The hash of the rows so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowsHash(u64);

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xff51_afd7_ed55_8ccd;

fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(SECOND);
    value ^ value >> 29
}

/// The hash of one row.
fn hash_row(bytes: &[u8], length: usize) -> u64 {
    let mut hash = FIRST ^ length as u64;
    for eight in bytes.chunks(8) {
        let word = eight.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = mixed(hash ^ word).wrapping_mul(FIRST).rotate_left(31);
    }
    mixed(hash)
}

impl RowsHash {
    /// Adds a row of `length` bytes; if it is too large for memory, `bytes` are its first.
    pub(crate) fn row(&mut self, rows: Rows, bytes: &[u8], length: usize) {
        match rows {
            Rows::Passed => {}
            Rows::Hashed => self.0 = mixed(self.0.rotate_left(17) ^ hash_row(bytes, length)),
            Rows::HashedInAnyOrder => self.0 = self.0.wrapping_add(hash_row(bytes, length)),
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(how: Rows, rows: &[&[u8]]) -> u64 {
        let mut hash = RowsHash::default();
        rows.iter().for_each(|row| hash.row(how, row, row.len()));
        hash.value()
    }

    #[test]
    fn order_makes_a_difference_if_it_is_to() {
        let (one, other): (&[u8], &[u8]) = (b"\x01a\x0212345678", b"\x01b");
        for how in [Rows::Hashed, Rows::HashedInAnyOrder] {
            let both = hash(how, &[one, other]);
            assert_eq!(both == hash(how, &[other, one]), how == Rows::HashedInAnyOrder);
            assert_eq!(both, hash(how, &[one, other]));
            let others = [hash(how, &[one]), hash(how, &[one, one]), hash(how, &[one, b"\x01c"]), hash(how, &[])];
            assert!(!others.contains(&both), "{how:?}");
        }
        assert_eq!(hash(Rows::Passed, &[one, other]), 0);
    }
}
