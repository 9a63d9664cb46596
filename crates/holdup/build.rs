//! Which commit this is, for `holdup --version`: `HOLDUP_COMMIT` if a packager sets it, else what git says of the checkout.
//! A tarball without git has none, and says so by saying nothing. Only a new commit builds the program anew.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=HOLDUP_COMMIT");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var("HOLDUP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| {
        let logs = git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?;
        // Each commit and each checkout adds a line there.
        println!("cargo:rerun-if-changed={}", absolute(&root, &logs).display());
        commit(&root)
    });
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo:rustc-env=HOLDUP_COMMIT_SHOWN={commit}");
    println!("cargo:rerun-if-changed=build.rs");
}

/// Hash and day of the commit that is checked out at `root`: `0a1b2c3 2026-11-25`. None if `root` is no checkout of its own.
pub fn commit(root: &Path) -> Option<String> {
    git(root, &["log", "-1", "--format=%h %cd", "--date=format:%Y-%m-%d"])
}

/// What git says about `root`. A folder within somebody else's checkout has no commit of ours.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    if !root.join(".git").exists() {
        return None;
    }
    let done = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let said = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (done.status.success() && !said.is_empty()).then_some(said)
}

fn absolute(root: &Path, path: &str) -> PathBuf {
    root.join(path)
}
