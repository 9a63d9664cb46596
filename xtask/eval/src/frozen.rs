//! Which rules were scored: a hash of the source files that judge, printed before any score is taken. Rules that are
//! changed after a score has been seen have another hash.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// SHA-256 over the names and contents of every file of `crates/holdup-diagnose/src/counters`, in the order of their names.
pub fn hash() -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/holdup-diagnose/src/counters");
    let mut files = Vec::new();
    gather(&root, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?);
        hash.update([0]);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() { gather(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
