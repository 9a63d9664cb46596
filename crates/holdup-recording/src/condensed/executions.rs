//! Single executions of statements: when each ended, how long it took, and which statement it was.

use std::collections::HashMap;
use std::hash::Hash;

use super::grouped::Grouped;

/// Number of executions that share one time span in the index.
const CHUNK: usize = 1_024;

/// One execution of a statement, by the server's own timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution<'a> {
    /// End, nanoseconds since the Unix epoch.
    pub observed_at: i64,
    /// Duration, nanoseconds.
    pub duration_ns: i64,
    /// Identity of the statement.
    pub digest: &'a str,
    /// Its text, every literal replaced by `?`.
    pub digest_text: &'a str,
}

/// Takes 16 bytes, because there are millions.
#[derive(Clone, Copy, Debug)]
struct Timing {
    observed_at: i64,
    /// [`ELSEWHERE`] if it does not fit, from four seconds on.
    duration_ns: u32,
    statement: u32,
}

const ELSEWHERE: u32 = u32::MAX;

/// All executions, in the order of their rows.
#[derive(Clone, Debug, Default)]
pub struct Executions {
    timings: Vec<Timing>,
    /// Durations marked [`ELSEWHERE`], nanoseconds, by row.
    long: HashMap<usize, i64>,
    /// Digest and text by number.
    statements: Vec<(String, String)>,
    /// First and last time of each [`CHUNK`] of rows, so that a query touches only part of a long
    /// recording.
    spans: Vec<(i64, i64)>,
}

impl Executions {
    /// Whether no execution is stored.
    pub fn is_empty(&self) -> bool {
        self.timings.is_empty()
    }

    /// Executions that ended from `from` on and before `to`, in the order of their rows.
    pub fn within(&self, from: i64, to: i64) -> impl Iterator<Item = Execution<'_>> + Clone {
        let chunks = self.timings.chunks(CHUNK).zip(&self.spans).enumerate();
        let near = chunks.filter(move |(_, (_, (first, last)))| *last >= from && *first < to);
        let rows = near.flat_map(|(number, (chunk, _))| (number * CHUNK..).zip(chunk));
        let within = rows.filter(move |(_, t)| from <= t.observed_at && t.observed_at < to);
        within.map(|(row, t)| {
            let (digest, digest_text) = &self.statements[t.statement as usize];
            let long = (t.duration_ns == ELSEWHERE).then(|| self.long.get(&row)).flatten();
            let duration_ns = long.copied().unwrap_or(i64::from(t.duration_ns));
            Execution { observed_at: t.observed_at, duration_ns, digest, digest_text }
        })
    }
}

impl Executions {
    /// Adds those of another recording.
    pub(crate) fn append(&mut self, other: Self) {
        let (rows, statements) = (self.timings.len(), self.statements.len() as u32);
        self.statements.extend(other.statements);
        self.long.extend(other.long.into_iter().map(|(row, ns)| (row + rows, ns)));
        self.timings.extend(other.timings.into_iter().map(|t| Timing { statement: t.statement + statements, ..t }));
        self.spans = self.timings.chunks(CHUNK).map(span).collect();
    }

    /// Moves every time by `by_ns` nanoseconds.
    pub(crate) fn move_times(&mut self, by_ns: i64) {
        for timing in &mut self.timings {
            timing.observed_at = timing.observed_at.saturating_add(by_ns);
        }
        self.spans = self.timings.chunks(CHUNK).map(span).collect();
    }
}

/// The first and the last time of a chunk.
fn span(chunk: &[Timing]) -> (i64, i64) {
    let times = || chunk.iter().map(|t| t.observed_at);
    (times().min().unwrap_or_default(), times().max().unwrap_or_default())
}

/// Builds executions from rows as they come; `K` stands for digest and text.
pub(super) struct Maker<K> {
    statements: Grouped<(K, K)>,
    timings: Vec<Timing>,
    long: HashMap<usize, i64>,
}

impl<K> Default for Maker<K> {
    fn default() -> Self {
        Self { statements: Grouped::default(), timings: Vec::new(), long: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Maker<K> {
    pub fn push(&mut self, statement: (K, K), observed_at: i64, duration_ns: i64) {
        let statement = self.statements.number(statement) as u32;
        let fits = u32::try_from(duration_ns).ok().filter(|ns| *ns != ELSEWHERE);
        if fits.is_none() {
            self.long.insert(self.timings.len(), duration_ns);
        }
        let duration_ns = fits.unwrap_or(ELSEWHERE);
        self.timings.push(Timing { observed_at, duration_ns, statement });
    }

    pub fn finish(mut self, name: impl Fn(K) -> String) -> Executions {
        self.timings.shrink_to_fit();
        Executions {
            spans: self.timings.chunks(CHUNK).map(span).collect(),
            timings: self.timings,
            long: self.long,
            statements: self.statements.keys.into_iter().map(|(digest, text)| (name(digest), name(text))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_they_were() {
        let all = [0, 1, -7, i64::from(u32::MAX) - 1, i64::from(u32::MAX), 5_000_000_000, i64::MAX, i64::MIN];
        let mut maker = Maker::default();
        for _ in 0..CHUNK {
            (0..).zip(all).for_each(|(at, ns)| maker.push(("a", "b"), at, ns));
        }
        let made = maker.finish(str::to_owned);
        let found: Vec<i64> = made.within(0, 100).map(|e| e.duration_ns).collect();
        assert_eq!(found, all.repeat(CHUNK));
        assert!(made.within(5, 6).all(|e| e.duration_ns == 5_000_000_000));
        assert_eq!(size_of::<Timing>(), 16);
    }

    #[test]
    fn those_of_another_recording_follow() {
        let made = |digest: &'static str, at: i64, ns: i64| {
            let mut maker = Maker::default();
            (0..1_500).for_each(|i| maker.push((digest, "SELECT ?"), at + i, ns));
            maker.finish(str::to_owned)
        };
        let (mut all, mut more) = (made("a", 0, 1), made("b", 0, 9_000_000_000));
        more.move_times(5_000);
        all.append(more);
        let found: Vec<(i64, i64, &str)> =
            all.within(1_499, 5_001).map(|e| (e.observed_at, e.duration_ns, e.digest)).collect();
        assert_eq!(found, [(1_499, 1, "a"), (5_000, 9_000_000_000, "b")]);
    }

    #[test]
    fn those_of_a_window_are_found_in_the_order_of_rows() {
        let mut maker = Maker::default();
        let time = |i: i64| i ^ 1;
        for i in 0..10_000 {
            maker.push(if i % 3 == 0 { ("a", "SELECT ?") } else { ("b", "COMMIT") }, time(i), i);
        }
        let all = maker.finish(str::to_owned);
        let found: Vec<i64> = all.within(1_500, 4_501).map(|e| e.duration_ns).collect();
        let expected: Vec<i64> = (0..10_000).filter(|i| (1_500..4_501).contains(&time(*i))).collect();
        assert_eq!(found, expected);
        assert_eq!(all.within(0, 2).map(|e| e.digest_text).collect::<Vec<_>>(), ["SELECT ?", "COMMIT"]);
        assert_eq!(all.within(i64::MIN, i64::MAX).count(), 10_000);
    }
}
