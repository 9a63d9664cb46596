//! Which judge was scored: a hash of the sources that a verdict depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// Crates whose sources make a verdict of a recording.
const CRATES: [&str; 2] = ["holdup-diagnose", "holdup-signals"];

/// Hex digits of a hash.
const DIGITS: usize = 16;

/// The hash of the rules in the checkout at `root`.
pub fn hash(root: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for name in CRATES {
        let folder = root.join("crates").join(name).join("src");
        let mut files = Vec::new();
        gather(&folder, &mut files)?;
        files.sort();
        for file in files {
            let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            hash.update(path.as_bytes());
            hash.update([0]);
            hash.update(fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?);
            hash.update([0]);
        }
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex[..DIGITS].to_owned())
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
