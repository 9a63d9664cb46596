//! `interleave.json`: says which recordings of a folder are repeats of which version. `holdup run
//! --interleave` and `holdup replay` to two servers rewrite it after each recording, so that it is
//! correct whenever they end; `holdup compare` reads it.

use std::path::{Path, PathBuf};

use holdup_recording::files;
use holdup_recording::folder::Folder;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// File beside the recordings.
pub const INTERLEAVE: &str = "interleave.json";

/// Largest such file, in bytes.
const LARGEST_BYTES: u64 = 64 << 20;

/// The content of [`INTERLEAVE`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interleave {
    /// The complete recordings, in the order they were made.
    pub order: Vec<Turn>,
    /// The compared versions, in the order they were named: the first is the baseline.
    #[serde(default)]
    pub versions: Vec<String>,
    /// The seed of the order.
    #[serde(default)]
    pub seed: u64,
    /// Name of the scenario.
    #[serde(default)]
    pub scenario: String,
}

/// One recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The version or the server; for plain repeats, the scenario.
    pub name: String,
    /// Counts from 1.
    pub round: u32,
    /// Its folder, relative to this file.
    pub path: PathBuf,
}

impl Interleave {
    /// Reads the file in `folder`.
    ///
    /// # Errors
    /// If it is missing or not valid.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(INTERLEAVE);
        let bad = |why: &dyn std::fmt::Display| Failure::Unusable(format!("{}: {why}", file.display()));
        let text = files::read_text(&file, LARGEST_BYTES).map_err(|error| bad(&error))?;
        serde_json::from_str(&text).map_err(|error| bad(&error))
    }

    /// Writes the file into `folder`, replacing an earlier one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::unusable)?;
        files::replace(&folder.place().join(INTERLEAVE), (text + "\n").as_bytes())
            .map_err(|error| Failure::Unusable(format!("{}: {error}", folder.path().join(INTERLEAVE).display())))
    }
}

/// Checks the name of a version or a server, which becomes the name of a folder.
///
/// # Errors
/// If it has other characters than the message lists.
pub fn checked_name(name: &str) -> Result<&str, String> {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_fine) {
        return Err("a name may have only letters, digits, `-`, `_` and `.`".to_owned());
    }
    Ok(name)
}

/// Puts `what` before the failure's message.
pub fn prefix_failure(what: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Unusable(why) => Failure::Unusable(format!("{what}: {why}")),
        other => other,
    }
}
