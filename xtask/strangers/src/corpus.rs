//! The corpus: a folder a draw, called by its seed, with recording and truth. A draw is there whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::truth::{FILE, Truth};

/// A folder of draws.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Where it is.
    pub folder: PathBuf,
}

impl Corpus {
    /// The folder of a seed.
    pub fn draw(&self, seed: u64) -> PathBuf {
        self.folder.join(seed.to_string())
    }

    /// Whether a seed has been played.
    pub fn has(&self, seed: u64) -> bool {
        self.draw(seed).join(FILE).is_file()
    }

    /// Every played draw, by seed.
    pub fn read(&self) -> Result<Vec<(PathBuf, Truth)>> {
        let entries = fs::read_dir(&self.folder)
            .with_context(|| format!("no corpus at {}; play draws first", self.folder.display()))?;
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.join(FILE).is_file());
        let mut draws =
            folders.map(|path| Truth::read(&path).map(|truth| (path, truth))).collect::<Result<Vec<_>>>()?;
        draws.sort_by_key(|(_, truth)| truth.draw.seed);
        Ok(draws)
    }

    /// Puts a finished draw in place of what may have been there.
    pub fn put(&self, made: &Path, seed: u64) -> Result<()> {
        let place = self.draw(seed);
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("failed to remove {}", place.display()))?;
        }
        fs::create_dir_all(&self.folder).with_context(|| format!("failed to make {}", self.folder.display()))?;
        fs::rename(made, &place).with_context(|| format!("failed to move a draw to {}", place.display()))
    }
}

/// Bytes of all files in a folder.
pub fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}
