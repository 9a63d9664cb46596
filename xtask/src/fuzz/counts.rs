//! How many inputs each fuzzer has tried, by commit and added up over runs: "200,000 hostile inputs per reader" is a figure
//! in a file, not a memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::steps::{ask, command};

/// Executions by commit and target.
type ByCommit = BTreeMap<String, BTreeMap<String, u64>>;

/// The file, and what it is counted for.
pub struct Counts {
    path: PathBuf,
    commit: String,
}

impl Counts {
    /// Those of the tree in `root`, as it is now.
    pub fn of(root: &Path) -> Self {
        let commit = ask(command(root, "git", &["describe", "--always", "--dirty", "--abbrev=12", "--match="]));
        let commit = commit.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
        Self { path: root.join("target/fuzz/counts.json"), commit }
    }

    /// Counts `executions` of `target`; how many it has had at this commit, and at all of them. One caller at a time.
    pub fn add(&self, target: &str, executions: u64) -> Result<(u64, u64)> {
        let mut all = self.read()?;
        let here = all.entry(self.commit.clone()).or_default().entry(target.to_owned()).or_default();
        *here += executions;
        let here = *here;
        let total = all.values().filter_map(|targets| targets.get(target)).sum();
        let text = serde_json::to_string_pretty(&all).context("counts")?;
        // Whole or as it was: a run may be ended at any moment.
        let partial = self.path.with_extension("tmp");
        fs::write(&partial, text + "\n")
            .and_then(|()| fs::rename(&partial, &self.path))
            .with_context(|| format!("could not write {}", self.path.display()))?;
        Ok((here, total))
    }

    /// Those of `targets` that have had fewer than `inputs` at all commits, and how many each lacks: who lacks least comes first.
    pub fn short<'a>(&self, targets: impl IntoIterator<Item = &'a str>, inputs: u64) -> Result<Vec<(&'a str, u64)>> {
        let all = self.read()?;
        let had = |target: &str| all.values().filter_map(|targets| targets.get(target)).sum::<u64>();
        let missing = targets.into_iter().map(|target| (target, inputs.saturating_sub(had(target))));
        let mut short: Vec<(&str, u64)> = missing.filter(|(_, missing)| *missing > 0).collect();
        short.sort_by_key(|(_, missing)| *missing);
        Ok(short)
    }

    fn read(&self) -> Result<ByCommit> {
        match fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is damaged; move it away to count anew", self.path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ByCommit::new()),
            Err(error) => Err(error).with_context(|| format!("could not read {}", self.path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_by_commit() {
        let folder = std::env::temp_dir().join(format!("holdup-counts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let of = |commit: &str| Counts { path: folder.join("counts.json"), commit: commit.to_owned() };
        assert_eq!(of("a").add("yaml", 150_000).unwrap(), (150_000, 150_000));
        assert_eq!(of("a").add("yaml", 50_000).unwrap(), (200_000, 200_000));
        assert_eq!(of("a").add("xml", 7).unwrap(), (7, 7));
        assert_eq!(of("b").add("yaml", 1).unwrap(), (1, 200_001));
        assert_eq!(of("c").short(["xml", "yaml", "json"], 200_000).unwrap(), [("xml", 199_993), ("json", 200_000)]);
        assert!(of("c").short(["yaml"], 200_001).unwrap().is_empty());
        fs::write(folder.join("counts.json"), "{").unwrap();
        assert!(of("b").add("yaml", 1).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
