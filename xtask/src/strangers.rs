//! Builds holdup and the stranger bench, and hands its flags over: it runs for hours, so both are built for release.

use std::path::Path;

use anyhow::Result;

use crate::steps::{cargo, command, run as run_command};

/// `flags` are the bench's own.
pub fn run(root: &Path, flags: &[&str]) -> Result<()> {
    let packages = ["-p", "holdup", "-p", "xtask-strangers", "--features", "holdup/labs"];
    run_command(cargo(root, &[&["build", "--release", "--quiet"][..], &packages].concat()))?;
    run_command(command(root, root.join("target/release/xtask-strangers"), flags))
}
