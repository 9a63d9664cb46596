//! Which recordings of a folder are repeats of what: `interleave.json` beside them. `holdup run --interleave` and `holdup replay` to two
//! servers write it after each recording, so that it says what is there whatever ended the whole; `holdup compare` reads it.

use std::path::{Path, PathBuf};

use holdup_recording::files;
use serde::{Deserialize, Serialize};

use crate::commands::LARGEST_BYTES;
use crate::failure::Failure;

/// File beside the recordings.
pub const INTERLEAVE: &str = "interleave.json";

/// What [`INTERLEAVE`] says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interleave {
    /// The recordings that are whole, in the order in which they were made.
    pub order: Vec<Turn>,
    /// What is compared, in the order in which it was named: the first is the baseline.
    #[serde(default)]
    pub versions: Vec<String>,
    /// What drew the order.
    #[serde(default)]
    pub seed: u64,
    /// Name of the scenario.
    #[serde(default)]
    pub scenario: String,
}

/// One recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The version or the server; of plain repeats, the scenario.
    pub name: String,
    /// From 1 on.
    pub round: u32,
    /// Its folder, from where the file is.
    pub path: PathBuf,
}

impl Interleave {
    /// Of `folder`.
    ///
    /// # Errors
    /// If it is not there or not such a file.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(INTERLEAVE);
        let bad = |why: &dyn std::fmt::Display| Failure::Unusable(format!("{}: {why}", file.display()));
        let text = files::read_text(&file, LARGEST_BYTES).map_err(|error| bad(&error))?;
        serde_json::from_str(&text).map_err(|error| bad(&error))
    }

    /// Into `folder`, in place of what was there.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let file = folder.join(INTERLEAVE);
        let text = serde_json::to_string_pretty(self).map_err(Failure::unusable)?;
        files::replace(&file, (text + "\n").as_bytes())
            .map_err(|error| Failure::Unusable(format!("{}: {error}", file.display())))
    }
}

/// The name of a version or a server, which becomes a folder's.
///
/// # Errors
/// What it may be made of.
pub fn checked_name(name: &str) -> Result<&str, String> {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_fine) {
        return Err("a name consists of letters, digits, `-`, `_` and `.`".to_owned());
    }
    Ok(name)
}

/// The failure with what it is of.
pub fn named(what: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Unusable(why) => Failure::Unusable(format!("{what}: {why}")),
        other => other,
    }
}
