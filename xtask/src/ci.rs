//! Exactly what CI runs and a person runs. Each crate is compiled once: what lints is the compiler of the tests. What is
//! fetched and the web part go on beside that. It deliberately does not fuzz: the fuzzers' seeds are a test.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::steps::{Clock, cargo, command, run as run_command, step};
use crate::{build, flaky, setup, tidy};

/// From the pass's beginning until when tests make a further attempt because the machine disturbed one: on one that always does, that is the longer half of all.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Until when what failed is run again, alone: with what every machine needs more it is within CI's 45 minutes.
const AGAIN: Duration = Duration::from_secs(40 * 60);

/// The whole pass.
pub fn run(root: &Path) -> Result<()> {
    let begun = Instant::now();
    let clock = Clock::until(PATIENCE, AGAIN);
    step("format", "run: cargo fmt --all", || run_command(cargo(root, &["fmt", "--all", "--check"])))?;
    step("tidy", "mend what it says above", || tidy::run(root))?;
    thread::scope(|scope| {
        let beside = scope.spawn(|| set_up(root));
        let built = step("build and lints", "mend what the compiler and clippy say above", || build::all(root));
        let set_up = beside.join().unwrap_or_else(|_| bail!("the set-up panicked"));
        built.and(set_up)
    })?;
    let said = step("tests", "run the one that failed: cargo test -p CRATE NAME", || flaky::tests(root, &clock))?;
    // Last, where it is read.
    said.iter().for_each(|line| println!("{line}"));
    println!("== all fine, {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What the tests need, and the web part, which needs a part of that.
fn set_up(root: &Path) -> Result<()> {
    let tools = step("set-up", "see above for what to install", || setup::run(root))?;
    step("web", "see web/README.md; in web/: npm ci && npm run check", || {
        let web = root.join("web");
        for arguments in [&["ci", "--no-progress"][..], &["run", "check"]] {
            let mut npm = command(&web, tools.npm(), arguments);
            npm.env("PATH", tools.path());
            run_command(npm)?;
        }
        Ok(())
    })
}
