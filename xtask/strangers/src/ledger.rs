//! Which seeds have been scored, and by which rules. A score counts only on seeds that no rule has seen: each seed from
//! [`LEARNING`] on counts once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::draw::LEARNING;

const HEAD: &str = "\
# Seeds that have been scored, each with the hash of the rules that it was scored by: `cargo xtask strangers --score --fresh`
# writes this file. A seed counts once; for other rules it is spent. SEED HASH a line.
";

/// What a seed's score is worth to a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// It counts: no rules but these have seen it.
    Counts,
    /// It is for learning.
    Learning,
    /// Other rules have been scored on it.
    Spent,
    /// It has not been scored yet.
    Fresh,
}

/// The file.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    scored: BTreeMap<u64, String>,
}

impl Ledger {
    /// Reads it; one that is not there is empty.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let scored = lines.map(|line| {
            let (seed, hash) = line.split_once(' ')?;
            Some((seed.parse().ok()?, hash.trim().to_owned()))
        });
        let scored: Option<BTreeMap<u64, String>> = scored.collect();
        let scored = scored.with_context(|| format!("{}: a line is not SEED HASH", path.display()))?;
        Ok(Self { path: path.to_owned(), scored })
    }

    /// What `seed` is worth to the rules of `hash`.
    pub fn worth(&self, seed: u64, hash: &str) -> Worth {
        match self.scored.get(&seed) {
            _ if seed < LEARNING => Worth::Learning,
            None => Worth::Fresh,
            Some(by) if by == hash => Worth::Counts,
            Some(_) => Worth::Spent,
        }
    }

    /// Notes that fresh seeds have been scored by the rules of `hash`.
    pub fn spend(&mut self, seeds: impl IntoIterator<Item = u64>, hash: &str) -> Result<()> {
        for seed in seeds {
            if self.worth(seed, hash) == Worth::Fresh {
                self.scored.insert(seed, hash.to_owned());
            }
        }
        let mut text = HEAD.to_owned();
        for (seed, hash) in &self.scored {
            let _ = writeln!(text, "{seed} {hash}");
        }
        fs::write(&self.path, text).with_context(|| format!("failed to write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.txt");
        let mut ledger = Ledger::read(&path).unwrap();
        assert_eq!([ledger.worth(999, "a"), ledger.worth(1_000, "a")], [Worth::Learning, Worth::Fresh]);
        ledger.spend([999, 1_000], "a").unwrap();
        let mut ledger = Ledger::read(&path).unwrap();
        assert_eq!([ledger.worth(1_000, "a"), ledger.worth(1_000, "b")], [Worth::Counts, Worth::Spent]);
        ledger.spend([1_000], "b").unwrap();
        assert_eq!(ledger.worth(1_000, "a"), Worth::Counts);
        assert_eq!(ledger.worth(999, "b"), Worth::Learning);
    }
}
