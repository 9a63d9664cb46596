//! Exactly what CI runs and a person runs. Each crate is compiled once: what lints is the compiler of the tests. What is
//! fetched and the web part go on beside that. It deliberately leaves out what takes hours: that is `full.rs`.

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::setup::Tools;
use crate::steps::{cargo, command, run as run_command, step};
use crate::{build, setup, supply, tests, tidy};

/// The whole pass.
pub fn run(root: &Path) -> Result<()> {
    let begun = Instant::now();
    step("format", "run: cargo fmt --all", || run_command(cargo(root, &["fmt", "--all", "--check"])))?;
    step("tidy", "mend what it says above", || tidy::run(root))?;
    let tools = thread::scope(|scope| {
        let beside = scope.spawn(|| set_up(root));
        let built = step("build and lints", "mend what the compiler and clippy say above", || build::all(root));
        let set_up = beside.join().unwrap_or_else(|_| bail!("the set-up panicked"));
        built.and(set_up)
    })?;
    step("examples in comments", "run: cargo test --doc", || build::examples(root))?;
    let pass = step("tests", "run the one that failed: cargo xtask test NAME", || tests::all(root, &tools))?;
    step("tidy: what tests cost", "mend what it says above", || tidy::pace(root, pass.cost))?;
    // Last, where it is read.
    println!("== all fine, {:.0} s", begun.elapsed().as_secs_f64());
    println!("{}", pass.line());
    Ok(())
}

/// What the tests need; the web part and the look at what others wrote, which need a part of that.
fn set_up(root: &Path) -> Result<Tools> {
    let tools = step("set-up", "see above for what to install", || setup::run(root))?;
    step("web", "see web/README.md; in web/: npm ci && npm run check", || {
        let web = root.join("web");
        for arguments in [&["ci", "--no-progress"][..], &["run", "check"]] {
            let mut npm = command(&web, tools.npm(), arguments);
            npm.env("PATH", tools.path());
            run_command(npm)?;
        }
        Ok(())
    })?;
    step("supply chain", "see deny.toml; run it alone: cargo xtask supply", || supply::run(root, &tools))?;
    Ok(tools)
}
