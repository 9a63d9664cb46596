//! The workspace's tests, run by nextest, and what came of them: a record by commit, and whether that is green. What is green
//! stands in `pass.rs`. No test is run again here: nextest's configuration (`.config/nextest.toml`) says which may be, if any.

pub mod cost;
mod junit;
mod pass;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use cost::Begun;
pub use pass::{Outcome, Pass, Test};

use crate::build::linted;
use crate::child;
use crate::setup::Tools;
use crate::steps::{ask, cache, command, is_root, run as run_command, without_ours};

/// Nextest ends with this when tests failed; with anything else but 0 it could not run them.
const TESTS_FAILED: i32 = 100;

/// Runs the tests of an ordinary pass. Prints the slowest, and what could not be judged.
///
/// # Errors
/// If a test failed, more were undecided than may be, or nextest could not run them.
pub fn all(root: &Path, tools: &Tools) -> Result<Pass> {
    let last = cache().join("last-pass.json");
    let before = Pass::load(&last)?;
    let pass = run(root, tools, "default", &[])?;
    print!("{}", pass.summary());
    pass.save(&root.join("target/passes").join(format!("{}.json", pass.commit)))?;
    // A machine without such a folder remembers nothing from pass to pass.
    let _ = pass.save(&last);
    let red = pass.red(before.as_ref());
    if !red.is_empty() {
        bail!("{}\n  {}", pass.line(), red.join("\n  "));
    }
    Ok(pass)
}

/// Runs what `filters` leave of the tests, by `profile` of nextest's configuration.
///
/// # Errors
/// If nextest could not run them. That tests fail is no error here.
pub fn run(root: &Path, tools: &Tools, profile: &str, filters: &[&str]) -> Result<Pass> {
    let report = root.join("target/nextest").join(profile).join("junit.xml");
    if report.exists() {
        fs::remove_file(&report).with_context(|| format!("failed to remove {}", report.display()))?;
    }
    let mut nextest = nextest(root, tools, "run");
    nextest.args(["--profile", profile, "--no-fail-fast"]).args(filters);
    // With CI set, a test that lacks what it needs fails. Root lacks nothing; what an ordinary user may not do is skipped, and said.
    if is_root() {
        nextest.env("CI", "1");
    }
    nextest.env("CARGO_TERM_COLOR", "never");
    // Python's numeric libraries start a thread a CPU when they are imported, which spin for a while.
    nextest.env("OPENBLAS_NUM_THREADS", "1");
    let begun = Begun::now();
    let status = child::run(&mut nextest)?.status;
    if !status.success() && status.code() != Some(TESTS_FAILED) {
        bail!("nextest ended with {status}");
    }
    let cost = begun.cost();
    let tests = junit::read(&report)?.into_iter().map(Test::from_case).collect();
    Ok(Pass { commit: commit(root), cost, tests })
}

/// `cargo xtask test`: nextest as the pass runs it, with its own arguments.
pub fn some(root: &Path, tools: &Tools, arguments: &[&str]) -> Result<()> {
    let mut nextest = nextest(root, tools, "run");
    nextest.args(arguments);
    run_command(nextest)
}

/// Tests that are ignored in an ordinary pass and belong to `profile`: binary and name.
pub fn ignored(root: &Path, tools: &Tools, profile: &str) -> Result<Vec<(String, String)>> {
    let mut list = nextest(root, tools, "list");
    list.args(["--profile", profile, "--run-ignored", "only", "--message-format", "oneline"]);
    let text = ask(list).context("nextest could not list the tests")?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(binary, name)| (binary.to_owned(), name.to_owned())).collect())
}

fn nextest(root: &Path, tools: &Tools, verb: &str) -> std::process::Command {
    let arguments = ["nextest", verb, "--cargo-profile", "ci", "--workspace", "--all-features"];
    linted(without_ours(command(root, tools.nextest(), &arguments)))
}

/// The commit that is checked out; `-changed` if the tree is not as it was committed.
pub fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| ask(command(root, "git", arguments));
    let head = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let is_clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    if is_clean { head } else { head + "-changed" }
}

/// Where the record of the full pass of the current commit is.
pub fn full_record(root: &Path) -> PathBuf {
    root.join("target/passes").join(format!("full-{}.json", commit(root)))
}
