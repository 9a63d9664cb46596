//! Builds holdup and the bench, and runs holdup beside its peers. What is measured how: `bench/README.md`.

use std::path::Path;

use anyhow::Result;

use crate::steps::{cargo, command, run as run_command};

/// Names the holdup to measure in place of the release build. With it everything else is built for development.
const HOLDUP_VARIABLE: &str = "HOLDUP_BENCH_BIN";

/// `words` are the bench's own flags; `peers` may stand before them.
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let words = words.strip_prefix(&["peers"]).unwrap_or(words);
    let profile = if std::env::var_os(HOLDUP_VARIABLE).is_some() {
        run_command(cargo(root, &["build", "-p", "holdup-bench"]))?;
        "debug"
    } else {
        run_command(cargo(root, &["build", "--release", "-p", "holdup", "-p", "holdup-bench"]))?;
        "release"
    };
    let mut arguments = vec!["peers"];
    arguments.extend(words);
    run_command(command(root, root.join("target").join(profile).join("holdup-bench"), &arguments))
}
