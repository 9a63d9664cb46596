//! How many statements have room in memory, and what is known of the others. All threads share one room, so that a statement is
//! summed up by each of them or by none: its figures are exact or it has none. What has no room is summed up together, and by
//! parts of all statements, which tell how much one of them can have taken at most.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a statement takes beside its texts in one thread, about: histograms, hours, users.
const STATEMENT_BYTES: u64 = 8 << 10;

/// Parts that all statements fall into.
const PARTS: usize = 1 << 16;

/// Most statements without room that are counted; 16 bytes each.
const REFUSED_MAX: usize = 1 << 22;

/// Of the statements that had room when all was read once, one in so many is left out the second time: others may be longer.
const SPARE_DIVISOR: usize = 4;

/// What tells a statement from others here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// Of all that a statement's group is called by.
    pub fn of(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }

    fn part(self) -> usize {
        usize::try_from(self.0 % PARTS as u64).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct Kept {
    admitted: HashSet<Key>,
    refused: HashSet<Key>,
    bytes: u64,
    is_full: bool,
}

/// The room that there is.
#[derive(Debug)]
pub struct Room {
    most_bytes: u64,
    threads: u64,
    /// The only parts of which statements are let in; empty if all are.
    heavy: Vec<bool>,
    kept: Mutex<Kept>,
}

impl Room {
    /// One of `most_bytes` for as many threads, which lets in what comes first.
    pub fn new(most_bytes: u64, threads: usize) -> Self {
        Self { most_bytes, threads: threads.max(1) as u64, heavy: Vec::new(), kept: Mutex::default() }
    }

    /// One of the same size for reading everything once more, now that `by_part` tells what each part of the statements took: it
    /// lets in the heaviest, as many as have room.
    pub fn of_heaviest(&self, by_part: &[u64]) -> Self {
        let kept = self.kept();
        let mut statements = vec![0_usize; PARTS];
        kept.admitted.iter().chain(&kept.refused).for_each(|key| statements[key.part()] += 1);
        let mut parts: Vec<usize> = (0..by_part.len()).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(by_part[*part]));
        let mut left = kept.admitted.len() / SPARE_DIVISOR * (SPARE_DIVISOR - 1);
        let mut heavy = vec![false; PARTS];
        for part in parts {
            let Some(less) = left.checked_sub(statements[part]) else { break };
            (left, heavy[part]) = (less, true);
        }
        Self { most_bytes: self.most_bytes, threads: self.threads, heavy, kept: Mutex::default() }
    }

    /// Whether the statement has room, with texts of `bytes`. It is never asked the same and answered differently.
    pub fn admits(&self, key: Key, bytes: usize) -> bool {
        let mut kept = self.kept();
        if kept.admitted.contains(&key) {
            return true;
        }
        let more = (STATEMENT_BYTES + 2 * bytes as u64) * self.threads;
        let is_heavy = self.heavy.is_empty() || self.heavy[key.part()];
        if is_heavy && !kept.is_full && kept.bytes + more <= self.most_bytes {
            kept.bytes += more;
            return kept.admitted.insert(key);
        }
        // Else a later one that is shorter would be let in, and this one too, once asked again.
        kept.is_full |= is_heavy;
        if kept.refused.len() < REFUSED_MAX {
            kept.refused.insert(key);
        }
        false
    }

    /// Statements without room, and whether there may be more than that.
    pub fn refused(&self) -> (usize, bool) {
        let refused = self.kept().refused.len();
        (refused, refused == REFUSED_MAX)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the statements without room did together.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    /// Executions.
    pub calls: u64,
    /// Their time.
    pub total_us: u128,
    by_part: Vec<u64>,
}

impl Rest {
    /// Adds executions of a statement.
    pub fn add(&mut self, key: Key, calls: u64, time_us: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.total_us += u128::from(time_us);
        self.weigh(key, time_us);
    }

    fn weigh(&mut self, key: Key, time_us: u64) {
        self.by_part.resize(PARTS, 0);
        let part = &mut self.by_part[key.part()];
        *part = part.saturating_add(time_us);
    }

    /// Takes in another thread's.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_us += other.total_us;
        if !other.by_part.is_empty() {
            self.by_part.resize(PARTS, 0);
            self.by_part.iter_mut().zip(&other.by_part).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }

    /// The most that one of its statements can have taken: what all of its part took.
    pub fn at_most_us(&self) -> u64 {
        self.by_part.iter().copied().max().unwrap_or(0)
    }

    /// What each part of all statements took, with those that have room.
    pub fn with(mut self, others: impl Iterator<Item = (Key, u64)>) -> Vec<u64> {
        others.for_each(|(key, time_us)| self.weigh(key, time_us));
        self.by_part
    }
}

#[cfg(test)]
mod tests;
