//! The workspace's tests, compiled by clippy, which is the compiler and says more: a build with the compiler and another
//! look at everything with clippy would take twice as long. The artifacts are not those of `cargo build`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::steps::{cargo, run};

/// Lints are errors; in between is how `cargo clippy` tells its driver, which tells cargo when to compile again.
const ARGUMENTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// Compiles everything and runs nothing.
pub fn all(root: &Path) -> Result<()> {
    run(linted(cargo(root, &["test", "--profile=ci", "--workspace", "--all-features", "--no-run", "--quiet"])))
}

/// Runs the examples in documentation comments: nextest does not. Crates without any say `doctest = false`.
pub fn examples(root: &Path) -> Result<()> {
    run(linted(cargo(root, &["test", "--profile=ci", "--workspace", "--all-features", "--doc", "--quiet"])))
}

/// A command that starts cargo, with crates of the workspace compiled by clippy. The path is the same whichever program starts
/// cargo: with another one everything would be compiled again.
pub fn linted(mut command: Command) -> Command {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from).unwrap_or_default();
    let beside = cargo.with_file_name("clippy-driver");
    let driver = if beside.is_file() { beside.into_os_string() } else { OsString::from("clippy-driver") };
    command.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", ARGUMENTS);
    command
}
