//! The project's own automation: what CI runs, generated pages, stubs, and the tidy test. This file is the
//! table of contents. It builds and tests; it never publishes.

#![forbid(unsafe_code)]

mod bench;
mod build;
mod child;
mod ci;
mod full;
mod fuzz;
mod new;
mod release;
mod setup;
mod steps;
mod supply;
mod tests;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask ci                    what CI runs, in order; stops at the first step that fails
cargo xtask ci --full [--minutes N] [--only WORD]
                                  what that leaves out: long tests, every lab, fuzzers; goes on where it stopped
cargo xtask test [NAME] [FLAGS]   only tests, as the pass runs them; flags are those of cargo nextest run
cargo xtask setup                 only what the tests need: MariaDB, PostgreSQL, nginx, Prometheus, Python's readers, Node
cargo xtask fuzz [--seconds N]    the fuzzers, which CI does not run: each for N seconds (those of what users write: three times)
cargo xtask fuzz --inputs N [--seconds N]
                                  those that have had fewer than N inputs over all runs, one after another, at most 1800 s each
cargo xtask soak [--minutes N]    watches real servers and 200 processes for 20 minutes: holdup itself must not grow
cargo xtask supply                only the look at what others wrote: licences, sources, duplicates, advisories
cargo xtask tidy                  only the look at the code itself; lowers what the ratchet holds
cargo xtask docs [--check]        writes docs/causes/ and docs/collectors.md from the code, or says what is stale
cargo xtask new cause NAME        writes a cause's stub and says which lines to add where
cargo xtask new resource NAME     the same for a resource: what requests wait for
cargo xtask new collector NAME    the same for a collector
cargo xtask dist [--target CPU] [--out DIR] [--url BASE] [--twice] [--check] [--no-build]
                                  what a release consists of, in target/dist/: static programs, packages, an image, checksums;
                                  made twice and compared; installed and run in roots of their own
cargo xtask eval EXAM DIR [FLAGS] scores the judge on public data; --help says which exams and flags there are
cargo xtask strangers [FLAGS]     plays faults drawn by seed on live servers, and scores the judge on them; --help says which flags there are
cargo xtask bench [NAME] [FLAGS]  runs bench/NAME/NAME.py, unless told holdup beside its peers; --help says which flags there are";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    let root = root();
    match words {
        ["ci"] => ci::run(&root),
        ["ci", "--full", flags @ ..] => full::run(&root, &full::Slice::parse(flags)?),
        ["test", arguments @ ..] => tests::some(&root, &setup::run(&root)?, arguments),
        ["setup"] => setup::run(&root).and_then(|_| setup::end(&root)),
        ["fuzz", flags @ ..] => fuzz::run(&root, &fuzz::Wish::parse(flags)?),
        ["soak", flags @ ..] => bench::run(&root, &[&["soak"], flags].concat()),
        ["supply"] => supply::run(&root, &setup::run(&root)?),
        ["tidy"] => tidy::run(&root),
        ["docs"] => steps::run(steps::cargo(&root, &["run", "--quiet", "--profile=ci", "-p", "xtask-pages"])),
        ["docs", "--check"] => {
            steps::run(steps::cargo(&root, &["run", "--quiet", "--profile=ci", "-p", "xtask-pages", "--", "--check"]))
        }
        ["eval", flags @ ..] => {
            steps::run(steps::cargo(&root, &[&["run", "--quiet", "-p", "xtask-eval", "--"], flags].concat()))
        }
        // It runs for hours.
        ["strangers", flags @ ..] => {
            let packages = ["-p", "holdup", "-p", "xtask-strangers", "--features", "holdup/labs"];
            steps::run(steps::cargo(&root, &[&["build", "--release", "--quiet"][..], &packages].concat()))?;
            steps::run(steps::command(&root, root.join("target/release/xtask-strangers"), flags))
        }
        ["dist", flags @ ..] => release::run(&root, &release::Wish::parse(flags)?),
        ["new", kind, name] => new::stub(&root, kind, name),
        ["bench", flags @ ..] => bench::run(&root, flags),
        _ => bail!("usage:\n{USAGE}"),
    }
}

/// The checkout this program was built from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}
