//! Turns the server's counters by its own ids into rows by holdup's digests. Counters of several
//! ids with the same digest are added. Only changed digests are written, and no change is lost:
//! between two rows of a digest either nothing happened, or the second row has all of it. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use holdup_recording::rows::Statement;
use holdup_sql::digest_of_text;

use super::Texts;

/// Largest number of digests written per read, those with the most time since the last read. The
/// growth of the others is in the row that is written when their turn comes.
const WRITTEN: usize = 500;

/// Largest number of digests remembered; by then the server has evicted most of them.
const REMEMBERED: usize = 50_000;

/// Largest number of entries per read, those with the most time first; twice as many are
/// remembered.
pub(super) const ENTRIES_MAX: usize = 50_000;

/// The server's key of an entry: its id, and as one text the database and the other columns of its
/// key.
pub(super) type Key = (i64, String);

/// holdup's key: database and digest text.
type Digest = (Option<String>, String);

/// The counters of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: i64,
    pub(super) duration_ns: i64,
    pub(super) rows: i64,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            duration_ns: self.duration_ns.saturating_add(other.duration_ns),
            rows: self.rows.saturating_add(other.rows),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls - other.calls,
            duration_ns: self.duration_ns - other.duration_ns,
            rows: self.rows - other.rows,
        }
    }
}

/// One of the server's entries.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) database: Option<String>,
    pub(super) counts: Counts,
}

/// State of one entry.
struct EntryState {
    /// Counts to ignore: those from before its text was known.
    base: Counts,
    last: Counts,
    /// Number of the last read that contained it.
    seen: u64,
}

#[derive(Default)]
struct Total {
    /// Counts of evicted entries.
    gone: Counts,
    /// Counts at the last read.
    last: Counts,
    /// Number of the last read whose counts were written.
    written: u64,
}

/// State between reads.
#[derive(Default)]
pub(super) struct Totals {
    reads: u64,
    last_at: i64,
    members: HashMap<Key, (Digest, EntryState)>,
    /// Counters of entries whose texts are still unknown.
    nameless: HashMap<Key, Counts>,
    totals: BTreeMap<Digest, Total>,
}

impl Totals {
    /// Rows for what changed since the last read; the first read yields all (in both cases at most
    /// [`WRITTEN`]). `at` is the time of reading `entries`.
    pub(super) fn take(&mut self, entries: &[Entry], texts: &Texts, at: i64, source: &str) -> Vec<Statement> {
        self.reads += 1;
        let reads = self.reads;
        let mut nameless = HashMap::new();
        for entry in entries {
            let Some(text) = texts.known(entry.key.0) else {
                nameless.insert(entry.key.clone(), entry.counts);
                continue;
            };
            // holdup's own statement.
            let Some(text) = text else { continue };
            let (digest, member) = self.members.entry(entry.key.clone()).or_insert_with(|| {
                // An older entry whose text has just arrived counts from the last read on.
                let base = self.nameless.get(&entry.key).copied().unwrap_or_default();
                ((entry.database.clone(), text.to_owned()), EntryState { base, last: base, seen: 0 })
            });
            if entry.counts.calls < member.last.calls {
                // It was evicted and has returned.
                let total = self.totals.entry(digest.clone()).or_default();
                total.gone = total.gone.plus(member.last.minus(member.base));
                member.base = Counts::default();
            }
            (member.last, member.seen) = (entry.counts, reads);
        }
        self.nameless = nameless;
        let totals = &mut self.totals;
        // Missing from a truncated read does not mean evicted.
        let may_be_there = entries.len() >= ENTRIES_MAX && self.members.len() <= 2 * ENTRIES_MAX;
        self.members.retain(|_, (digest, member)| {
            let stays = member.seen == reads || may_be_there;
            if !stays {
                let total = totals.entry(digest.clone()).or_default();
                total.gone = total.gone.plus(member.last.minus(member.base));
            }
            stays
        });
        if self.totals.len() > REMEMBERED {
            let live: HashSet<&Digest> = self.members.values().map(|(digest, _)| digest).collect();
            self.totals.retain(|digest, _| live.contains(digest));
        }
        let rows = self.write(at, source);
        self.last_at = at;
        rows
    }

    fn write(&mut self, at: i64, source: &str) -> Vec<Statement> {
        let mut sums: BTreeMap<&Digest, Counts> = BTreeMap::new();
        for (digest, member) in self.members.values() {
            let sum = sums.entry(digest).or_default();
            *sum = sum.plus(member.last.minus(member.base));
        }
        let mut changed: Vec<(Digest, Counts, Counts)> = Vec::new();
        for (digest, sum) in sums {
            let total = self.totals.entry(digest.clone()).or_default();
            let now = sum.plus(total.gone);
            if now != total.last || total.written == 0 && self.reads == 1 {
                changed.push((digest.clone(), total.last, now));
            }
            total.last = now;
        }
        changed.sort_by_key(|(_, before, now)| std::cmp::Reverse(now.duration_ns - before.duration_ns));
        changed.truncate(WRITTEN);
        let mut rows = Vec::new();
        for (digest, before, now) in changed {
            let total = self.totals.entry(digest.clone()).or_default();
            // Writes the earlier value first, so that this read's growth is not spread over the
            // time without rows. A new digest had no earlier value: all its counts are growth.
            if total.written + 1 != self.reads && self.reads > 1 {
                rows.push(row(&digest, before, self.last_at, source));
            }
            total.written = self.reads;
            rows.push(row(&digest, now, at, source));
        }
        rows
    }
}

fn row((database, text): &Digest, counts: Counts, at: i64, source: &str) -> Statement {
    // For a data-changing statement `rows` counts changed rows; it returns rows only with
    // RETURNING.
    let changes = ["insert", "update", "delete", "merge"]
        .iter()
        .any(|word| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)));
    Statement {
        observed_at: at,
        source: source.to_owned(),
        kind: "digest_total".to_owned(),
        digest: digest_of_text(text),
        digest_text: text.clone(),
        database: database.clone(),
        calls: counts.calls,
        duration_ns: counts.duration_ns,
        rows_affected: if changes { counts.rows } else { 0 },
        rows_sent: if changes { 0 } else { counts.rows },
        ..Statement::default()
    }
}

/// Ids of entries with unknown texts, those that changed since the last read first, then those with
/// the most time.
pub(super) fn unknown(entries: &[Entry], texts: &Texts, before: &Totals, most: usize) -> Vec<i64> {
    let mut found: Vec<(bool, i64, i64)> = entries
        .iter()
        .filter(|entry| texts.known(entry.key.0).is_none())
        .map(|entry| {
            let is_new = before.nameless.get(&entry.key) != Some(&entry.counts);
            (is_new, entry.counts.duration_ns, entry.key.0)
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    let mut once = HashSet::new();
    found.into_iter().map(|(.., id)| id).filter(|id| once.insert(*id)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(known: &[(i64, &str)]) -> Texts {
        Texts(known.iter().map(|(id, text)| (*id, Some((*text).to_owned()))).collect())
    }

    fn entry(id: i64, calls: i64) -> Entry {
        let counts = Counts { calls, duration_ns: calls * 1000, rows: calls };
        Entry { key: (id, "10".to_owned()), database: Some("shop".to_owned()), counts }
    }

    /// Digest text, time and calls of what a read writes.
    fn take(totals: &mut Totals, texts: &Texts, at: i64, entries: &[Entry]) -> Vec<(String, i64, i64)> {
        let rows = totals.take(entries, texts, at, "postgresql://h:1");
        rows.into_iter().map(|row| (row.digest_text, row.observed_at, row.calls)).collect()
    }

    fn of(text: &str, at: i64, calls: i64) -> (String, i64, i64) {
        (text.to_owned(), at, calls)
    }

    #[test]
    fn only_changed_entries_are_written() {
        let (mut totals, texts) = (Totals::default(), texts(&[(1, "a"), (2, "b")]));
        assert_eq!(take(&mut totals, &texts, 1, &[entry(1, 5), entry(2, 7)]).len(), 2, "the first read has all");
        assert_eq!(take(&mut totals, &texts, 2, &[entry(1, 6), entry(2, 7)]), [of("a", 2, 6)]);
        assert_eq!(take(&mut totals, &texts, 3, &[entry(1, 6), entry(2, 7)]), []);
        let later = take(&mut totals, &texts, 4, &[entry(1, 6), entry(2, 9)]);
        assert_eq!(later, [of("b", 3, 7), of("b", 4, 9)], "what it had at the read before, then what it has");
    }

    #[test]
    fn a_new_entry_starts_from_zero() {
        let (mut totals, texts) = (Totals::default(), texts(&[(1, "a"), (2, "b")]));
        take(&mut totals, &texts, 1, &[entry(1, 5)]);
        assert_eq!(take(&mut totals, &texts, 2, &[entry(1, 5), entry(2, 3)]), [of("b", 1, 0), of("b", 2, 3)]);
        assert_eq!(take(&mut totals, &texts, 3, &[entry(1, 5), entry(2, 4)]), [of("b", 3, 4)]);
    }

    #[test]
    fn entries_of_one_digest_are_added_also_when_one_is_gone_or_comes_back() {
        let (mut totals, texts) = (Totals::default(), texts(&[(1, "a"), (2, "a")]));
        assert_eq!(take(&mut totals, &texts, 1, &[entry(1, 5), entry(2, 7)]), [of("a", 1, 12)]);
        assert_eq!(take(&mut totals, &texts, 2, &[entry(1, 6)]), [of("a", 2, 13)], "pushed out of the server's table");
        assert_eq!(take(&mut totals, &texts, 3, &[entry(1, 6), entry(2, 1)]), [of("a", 3, 14)], "and back");
        assert_eq!(
            take(&mut totals, &texts, 4, &[entry(1, 2), entry(2, 1)]),
            [of("a", 4, 16)],
            "both between two reads"
        );
    }

    #[test]
    fn one_that_others_left_no_room_for_is_not_counted_twice() {
        let most = ENTRIES_MAX as i64;
        let ids: Vec<i64> = (1..=most + 1).collect();
        let texts = Texts(ids.iter().map(|id| (*id, Some("a".to_owned()))).collect());
        let all: Vec<Entry> = ids.iter().map(|id| entry(*id, 1)).collect();
        let mut totals = Totals::default();
        assert_eq!(take(&mut totals, &texts, 1, &all[..all.len() - 1]), [of("a", 1, most)]);
        assert_eq!(take(&mut totals, &texts, 2, &all[1..]), [of("a", 2, most + 1)]);
        assert_eq!(take(&mut totals, &texts, 3, &all[..all.len() - 1]), []);
    }

    #[test]
    fn a_text_that_is_known_later_is_no_growth() {
        let mut totals = Totals::default();
        let few = texts(&[(1, "a")]);
        assert_eq!(take(&mut totals, &few, 1, &[entry(1, 5), entry(2, 100)]), [of("a", 1, 5)]);
        assert_eq!(unknown(&[entry(1, 5), entry(2, 100), entry(3, 1)], &few, &totals, 9), [3, 2]);
        let all = texts(&[(1, "a"), (2, "a")]);
        assert_eq!(take(&mut totals, &all, 2, &[entry(1, 5), entry(2, 103)]), [of("a", 2, 8)]);
        assert_eq!(unknown(&[entry(1, 5), entry(2, 103)], &all, &totals, 9), [0; 0]);
    }

    #[test]
    fn the_most_time_is_written_first_and_the_rest_later() {
        let ids: Vec<i64> = (1..=WRITTEN as i64 + 2).collect();
        let names: Vec<String> = ids.iter().map(|id| format!("s{id}")).collect();
        let texts = Texts(ids.iter().zip(&names).map(|(id, name)| (*id, Some(name.clone()))).collect());
        let mut totals = Totals::default();
        let all: Vec<Entry> = ids.iter().map(|id| entry(*id, *id)).collect();
        let first = take(&mut totals, &texts, 1, &all);
        assert!(first.len() == WRITTEN && !first.contains(&of("s1", 1, 1)));
        let mut later = all.clone();
        later[0] = entry(1, 4);
        assert_eq!(take(&mut totals, &texts, 2, &later), [of("s1", 1, 1), of("s1", 2, 4)]);
    }
}
