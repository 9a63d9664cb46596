//! Assigns rows to groups by key.

use std::collections::HashMap;
use std::hash::Hash;

/// Numbers of keys, in order of appearance.
pub(super) struct Grouped<K> {
    pub keys: Vec<K>,
    numbers: HashMap<K, usize>,
    /// For each group, the group whose row followed its last row.
    next: Vec<usize>,
    last: usize,
}

impl<K> Default for Grouped<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), numbers: HashMap::new(), next: Vec::new(), last: 0 }
    }
}

impl<K: Copy + Eq + Hash> Grouped<K> {
    /// The number of `key`. Rows repeat in the same order, so the group that followed last time is
    /// tried first.
    pub fn number(&mut self, key: K) -> usize {
        let expected = self.next.get(self.last).copied().unwrap_or_default();
        let number = if self.keys.get(expected) == Some(&key) { expected } else { self.look_up(key) };
        self.next[self.last] = number;
        self.last = number;
        number
    }

    fn look_up(&mut self, key: K) -> usize {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.next.push(0);
            self.keys.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_number_in_whatever_order_they_come() {
        let mut groups = Grouped::default();
        let numbers = ["a", "b", "c", "a", "b", "c", "b", "a", "d", "a", "b"].map(|key| groups.number(key));
        assert_eq!(numbers, [0, 1, 2, 0, 1, 2, 1, 0, 3, 0, 1]);
        assert_eq!(groups.keys, ["a", "b", "c", "d"]);
    }
}
