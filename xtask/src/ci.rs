//! Exactly what CI runs and a person runs, in order: cheap and telling steps first, real servers last.

use std::path::Path;

use anyhow::Result;

use crate::steps::{cargo, command, run as run_command, step};
use crate::{docs, flaky, fuzz, setup, tidy};

/// The whole pass.
pub fn run(root: &Path) -> Result<()> {
    let begun = std::time::Instant::now();
    let tools = step("set-up", "see above for what to install", || setup::run(root))?;
    step("format", "run: cargo fmt --all", || run_command(cargo(root, &["fmt", "--all", "--check"])))?;
    step("lints", "mend what clippy says above", || {
        run_command(cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    })?;
    step("tidy", "mend what it says above", || tidy::run(root))?;
    step("docs", "run: cargo xtask docs", || docs::check(root))?;
    step("web", "see web/README.md; in web/: npm ci && npm run check", || {
        let web = root.join("web");
        for arguments in [&["ci", "--no-progress"][..], &["run", "check"]] {
            let mut npm = command(&web, tools.npm(), arguments);
            npm.env("PATH", tools.path());
            run_command(npm)?;
        }
        Ok(())
    })?;
    let said = step("tests", "run the one that failed: cargo test -p CRATE NAME", || flaky::tests(root))?;
    let fuzzed = step("fuzz", "mend what the input above breaks, then keep it in fuzz/seeds/", || {
        fuzz::run(root, fuzz::SECONDS)
    });
    // Last, where it is read.
    said.iter().for_each(|line| println!("{line}"));
    fuzzed?;
    println!("== all fine, {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}
