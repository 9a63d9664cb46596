//! Limits the number of statements in memory, and estimates the others. All threads share one room,
//! so each statement is summed up by all of them or by none: it has exact figures or no figures.
//! Statements without room are summed up together, and by partitions of all statements, which bound
//! the time of a single one.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory of a statement in one thread, without its texts, roughly: histograms, hours, users.
const STATEMENT_BYTES: u64 = 8 << 10;

/// Number of partitions of all statements.
const PARTS: usize = 1 << 16;

/// Most statements without room that are counted; 16 bytes each.
const REFUSED_MAX: usize = 1 << 22;

/// In the second pass, one in this many of the statements with room in the first pass gets none,
/// because others may be longer.
const SPARE_DIVISOR: usize = 4;

/// Identifies a statement here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// From the parts of a group's name.
    pub fn from_id(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }

    fn part(self) -> usize {
        usize::try_from(self.0 % PARTS as u64).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct Decisions {
    admitted: HashSet<Key>,
    refused: HashSet<Key>,
    bytes: u64,
    is_full: bool,
}

/// The available room.
#[derive(Debug)]
pub struct Room {
    most_bytes: u64,
    threads: u64,
    /// Memory of a statement in one thread, without its texts.
    statement_bytes: u64,
    /// The partitions that are admitted; all if empty.
    heavy: Vec<bool>,
    decisions: Mutex<Decisions>,
}

impl Room {
    /// A room of `most_bytes` for this many threads, which admits statements as they come.
    pub fn new(most_bytes: u64, threads: usize) -> Self {
        let (threads, statement_bytes) = (threads.max(1) as u64, STATEMENT_BYTES);
        Self { most_bytes, threads, statement_bytes, heavy: Vec::new(), decisions: Mutex::default() }
    }

    /// The same for statements that take `statement_bytes` each, and their texts.
    pub fn with_size(self, statement_bytes: u64) -> Self {
        Self { statement_bytes, ..self }
    }

    /// A room of the same size for a second pass. `by_part` now tells the time of each partition,
    /// and the heaviest are admitted, as many as fit.
    pub fn with_heaviest(&self, by_part: &[u64]) -> Self {
        let kept = self.decisions();
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
        let Self { most_bytes, threads, statement_bytes, .. } = *self;
        Self { most_bytes, threads, statement_bytes, heavy, decisions: Mutex::default() }
    }

    /// Whether the statement has room, with texts of `bytes`. Repeated calls give the same answer.
    pub fn admits(&self, key: Key, bytes: usize) -> bool {
        let mut kept = self.decisions();
        if kept.admitted.contains(&key) {
            return true;
        }
        let more = (self.statement_bytes + 2 * bytes as u64) * self.threads;
        let is_heavy = self.heavy.is_empty() || self.heavy[key.part()];
        if is_heavy && !kept.is_full && kept.bytes + more <= self.most_bytes {
            kept.bytes += more;
            return kept.admitted.insert(key);
        }
        // Otherwise a later, shorter statement would get in, and this one too, once asked again.
        kept.is_full |= is_heavy;
        if kept.refused.len() < REFUSED_MAX {
            kept.refused.insert(key);
        }
        false
    }

    /// Number of statements without room, and whether there may be more.
    pub fn refused(&self) -> (usize, bool) {
        let refused = self.decisions().refused.len();
        (refused, refused == REFUSED_MAX)
    }

    fn decisions(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Totals of the statements without room.
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

    /// Adds another thread's totals.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_us += other.total_us;
        if !other.by_part.is_empty() {
            self.by_part.resize(PARTS, 0);
            self.by_part.iter_mut().zip(&other.by_part).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }

    /// Upper bound on the time of one statement: the time of its whole partition.
    pub fn at_most_us(&self) -> u64 {
        self.by_part.iter().copied().max().unwrap_or(0)
    }

    /// Time of each partition of all statements, including those with room.
    pub fn with(mut self, others: impl Iterator<Item = (Key, u64)>) -> Vec<u64> {
        others.for_each(|(key, time_us)| self.weigh(key, time_us));
        self.by_part
    }
}

#[cfg(test)]
mod tests;
