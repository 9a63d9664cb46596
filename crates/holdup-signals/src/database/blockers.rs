//! The sessions that block others: how many wait behind each, how long it has held its lock, what
//! it does meanwhile, and how long the chain of waiters is. Databases report who waits for whom; a
//! blocker without a row of its own is known by its number alone.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Session;

use crate::{Missing, View};

/// Longest chain that holdup follows: a longer one is a cycle that the server is about to break.
const LONGEST: usize = 32;

/// A session that blocks others and waits for no lock itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// The server.
    pub source: String,
    /// Its connection id.
    pub session_id: i64,
    /// Its account.
    pub user: Option<String>,
    /// The client's address.
    pub client: Option<String>,
    /// The statement it runs, or the last that it ran; empty if unknown.
    pub statement: String,
    /// What it did while it held the lock, most frequent first, with the share (0-1) of instants:
    /// its true state, and the server's words.
    pub did: Vec<(String, f64)>,
    /// The longest time it was seen to hold, seconds: from the first to the last of adjacent
    /// instants.
    pub held_seconds: f64,
    /// Instants at which it held, as a share (0-1) of all.
    pub instants_ratio: f64,
    /// Mean number of sessions behind it while it held, directly or through others.
    pub behind: f64,
}

impl Holder {
    /// Whether it mostly idles with its transaction open.
    pub fn is_idle(&self) -> bool {
        self.did.first().is_some_and(|(state, _)| state.starts_with("idle"))
    }
}

/// All sessions that block others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blockers {
    /// Holders, those with most behind them first.
    pub holders: Vec<Holder>,
    /// Mean number of holders at an instant, over all instants.
    pub mean: f64,
    /// Sessions in the longest chain of waiters, the holder included.
    pub longest_chain: usize,
}

#[derive(Default)]
struct Sampled<'a> {
    rows: Vec<&'a Session>,
    instants: Vec<i64>,
    behind: usize,
}

impl View<'_> {
    /// Sessions that block others.
    ///
    /// # Errors
    /// If sessions were not recorded, or not which of them block others.
    pub fn blockers(&self) -> Result<Blockers, Missing> {
        let rows = self.sessions(&["observed_at", "source", "session_id", "true_state", "blocked_by"])?;
        let instants: BTreeSet<i64> = rows.iter().map(|r| r.observed_at).collect();
        let all = self.session_instants().max(instants.len()).max(1) as f64;
        let mut by_instant: BTreeMap<(&str, i64), BTreeMap<i64, &Session>> = BTreeMap::new();
        for row in &rows {
            by_instant.entry((&row.source, row.observed_at)).or_default().insert(row.session_id, row);
        }
        let mut seen: BTreeMap<(&str, i64), Sampled<'_>> = BTreeMap::new();
        let mut blockers = Blockers::default();
        for ((source, at), sessions) in &by_instant {
            let mut behind: BTreeMap<i64, usize> = BTreeMap::new();
            for waiter in sessions.values().filter(|s| s.true_state == "lock_wait") {
                let Some((holder, length)) = last_of(sessions, waiter) else { continue };
                *behind.entry(holder).or_default() += 1;
                blockers.longest_chain = blockers.longest_chain.max(length);
            }
            blockers.mean += behind.len() as f64 / all;
            for (holder, count) in behind {
                let of = seen.entry((source, holder)).or_default();
                of.instants.push(*at);
                of.behind += count;
                of.rows.extend(sessions.get(&holder).copied());
            }
        }
        let instants: Vec<i64> = instants.into_iter().collect();
        blockers.holders = seen.into_iter().map(|((source, id), of)| holder(source, id, &of, &instants, all)).collect();
        blockers.holders.sort_by(|a, b| (b.behind * b.instants_ratio).total_cmp(&(a.behind * a.instants_ratio)));
        Ok(blockers)
    }
}

/// The session at the end of the chain of `waiter`, and the chain's length. None if unknown, or in
/// a cycle.
fn last_of(sessions: &BTreeMap<i64, &Session>, waiter: &Session) -> Option<(i64, usize)> {
    let mut at = waiter.blocked_by?;
    for length in 2..LONGEST {
        match sessions.get(&at).filter(|s| s.true_state == "lock_wait").and_then(|s| s.blocked_by) {
            Some(next) if next != at => at = next,
            _ => return Some((at, length)),
        }
    }
    None
}

fn holder(source: &str, session_id: i64, of: &Sampled<'_>, instants: &[i64], all: f64) -> Holder {
    let mut did: BTreeMap<String, f64> = BTreeMap::new();
    for row in &of.rows {
        let words = match row.state.as_deref().filter(|s| !s.is_empty()) {
            Some(state) => format!("{} (\"{state}\")", row.true_state),
            None => row.true_state.to_string(),
        };
        *did.entry(words).or_default() += 1.0 / of.rows.len() as f64;
    }
    let mut did: Vec<(String, f64)> = did.into_iter().collect();
    did.sort_by(|a, b| b.1.total_cmp(&a.1));
    let statement = of.rows.iter().rev().find_map(|r| r.digest_text.as_deref()).unwrap_or_default().to_owned();
    let last = of.rows.last();
    Holder {
        source: source.to_owned(),
        session_id,
        user: last.and_then(|r| r.user.as_deref()).map(str::to_owned),
        client: last.and_then(|r| r.client.as_deref()).map(str::to_owned),
        statement,
        did,
        held_seconds: longest_run(&of.instants, instants),
        instants_ratio: of.instants.len() as f64 / all,
        behind: of.behind as f64 / of.instants.len().max(1) as f64,
    }
}

/// Seconds of the longest run of `held` without a gap in `instants`.
fn longest_run(held: &[i64], instants: &[i64]) -> f64 {
    let held: BTreeSet<i64> = held.iter().copied().collect();
    let (mut from, mut longest) = (None, 0);
    for at in instants {
        from = if held.contains(at) { from.or(Some(*at)) } else { None };
        longest = longest.max(from.map_or(0, |from| at - from));
    }
    longest as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn session(second: i64, id: i64, true_state: &str, blocked_by: Option<i64>) -> Session {
        Session {
            observed_at: second * 1_000_000_000,
            source: "mysql://db".into(),
            session_id: id,
            true_state: true_state.into(),
            digest_text: (id == 1).then(|| "UPDATE stock SET n = n - ? WHERE id = ?".into()),
            blocked_by,
            ..Session::default()
        }
    }

    #[test]
    fn the_last_of_a_chain_holds_and_all_wait_for_it() {
        let rows = (0..10).flat_map(|s| {
            let held = (3..=6).contains(&s);
            let wait = |id, by| session(s, id, if held { "lock_wait" } else { "idle" }, held.then_some(by));
            [session(s, 1, "idle_in_transaction", None), wait(2, 1), wait(3, 2), wait(4, 9)]
        });
        let made = SyntheticRecording::new(10).session_rows(rows.collect());
        let blockers = made.seen(|view| view.blockers().unwrap());
        assert_eq!((blockers.longest_chain, blockers.holders.len()), (3, 2));
        let first = &blockers.holders[0];
        assert_eq!((first.session_id, first.behind, first.held_seconds), (1, 2.0, 3.0));
        assert!(first.is_idle() && first.statement.starts_with("UPDATE stock"), "{first:?}");
        assert_eq!((blockers.holders[1].session_id, blockers.holders[1].did.len()), (9, 0));
        assert!((blockers.mean - 0.8).abs() < 0.1, "{}", blockers.mean);
    }

    #[test]
    fn a_circle_has_no_end() {
        let rows = (0..5).flat_map(|s| [session(s, 2, "lock_wait", Some(3)), session(s, 3, "lock_wait", Some(2))]);
        let made = SyntheticRecording::new(5).session_rows(rows.collect());
        assert_eq!(made.seen(|view| view.blockers().unwrap()).holders, []);
    }
}
