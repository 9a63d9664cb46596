//! The workspace's tests, of which those that failed are run again, alone: on a machine that stalls now and then a test
//! that measures can fail once. That is not hidden: what failed and then passed is named at the end of the pass, and so is
//! what the machine did not let be judged. What fails alone as well has failed. It repeats nothing that did not say which
//! test it was: a crash, what does not compile. It stops trying when the clock says so.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::build::linted;
use crate::steps::{Clock, cargo};

/// How often a test that failed is run again.
const AGAIN: usize = 2;

/// So many failures are no bad luck: nothing is run again.
const MOST: usize = 10;

/// So many of the tests that took longest are named at the end.
const LONGEST: usize = 20;

/// Runs all tests. What is to be said at the end of the pass, though they passed.
///
/// # Errors
/// If a test failed and did not pass alone, or something else went wrong than a test.
pub fn tests(root: &Path, clock: &Clock) -> Result<Vec<String>> {
    let mut seen = Seen::default();
    let is_well = watched(
        clock.told(linted(cargo(root, &["test", "--profile=ci", "--workspace", "--no-fail-fast"]))),
        &mut seen,
    )?;
    let mut said: Vec<String> = seen.pace.longest();
    said.append(&mut seen.undecided);
    if is_well {
        return Ok(said);
    }
    let count: usize = seen.failed.iter().map(|target| target.tests.len()).sum();
    if count == 0 || seen.failed.iter().any(|target| target.tests.is_empty()) {
        bail!("something failed that was no single test");
    }
    if count > MOST {
        bail!("{count} tests failed");
    }
    let mut failed = Vec::new();
    for target in &seen.failed {
        for test in &target.tests {
            let again =
                |said: &mut _| !clock.is_over() && passes_alone(root, clock, target, test, said).unwrap_or(false);
            match (1..=AGAIN).find(|_| again(&mut said)) {
                Some(1) => said.push(format!("flaky: {test} failed once and passed alone ({})", target.arguments)),
                Some(n) => said.push(format!("flaky: {test} failed {n} times and passed alone ({})", target.arguments)),
                None => failed.push(format!("cargo test {} -- --exact '{test}'", target.arguments)),
            }
        }
    }
    if failed.is_empty() {
        return Ok(said);
    }
    for line in &said {
        println!("{line}");
    }
    let how =
        if clock.is_over() { "failed, with no time left to try again" } else { "failed, and failed alone as well" };
    bail!("{how}:\n  {}", failed.join("\n  "))
}

fn passes_alone(root: &Path, clock: &Clock, target: &Target, test: &str, said: &mut Vec<String>) -> Result<bool> {
    println!("== again, alone: {test}");
    // Of the whole workspace, as before: for one package alone its dependencies might have other features, and be built again.
    let mut arguments = vec!["test", "--profile=ci", "--workspace"];
    arguments.extend(target.kind());
    arguments.extend(["--", "--exact", test]);
    let mut seen = Seen::default();
    let is_well = watched(clock.told(linted(cargo(root, &arguments))), &mut seen)?;
    said.append(&mut seen.undecided);
    // A name that is none would pass as well.
    Ok(is_well && seen.passed > 0)
}

/// Runs it with its output on ours and looked at; whether it succeeded. Standard output and errors are one stream, for
/// only their order says which test was of which target.
fn watched(mut command: Command, seen: &mut Seen) -> Result<bool> {
    let (reader, writer) = std::io::pipe().context("no pipe could be made")?;
    // With CI set, a test that lacks what it needs fails: here nothing is skipped in silence.
    command.env("CI", "1").env("CARGO_TERM_COLOR", "never");
    command.stdout(writer.try_clone().context("a pipe could not be shared")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
    // It holds the ends to write to.
    drop(command);
    let (mut reader, mut line, begun) = (BufReader::new(reader), Vec::new(), Instant::now());
    while reader.read_until(b'\n', &mut line).context("could not read what the tests say")? > 0 {
        // Who reads along may have gone: the tests are to end all the same.
        let _ = std::io::stdout().write_all(&line);
        let text = String::from_utf8_lossy(&line);
        seen.pace.take(text.trim_end(), begun.elapsed());
        seen.take(text.trim_end());
        line.clear();
    }
    Ok(child.wait().context("could not wait for the tests")?.success())
}

/// A target that failed.
#[derive(Debug, PartialEq)]
struct Target {
    /// What tells it apart, for cargo: `-p holdup --test e2e`.
    arguments: String,
    /// Its tests that failed; empty if it did not say.
    tests: Vec<String>,
}

impl Target {
    /// Without the package.
    fn kind(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.arguments.split_whitespace().collect();
        if words.first() == Some(&"-p") {
            words.drain(..2.min(words.len()));
        }
        words
    }
}

/// What the output of `cargo test --no-fail-fast` says, line by line.
#[derive(Default)]
struct Seen {
    failed: Vec<Target>,
    /// Tests that passed, of all targets.
    passed: usize,
    undecided: Vec<String>,
    /// The list that is being read, or was last. Tests that fail may print what looks like one: the last counts.
    list: Vec<String>,
    is_in_list: bool,
    /// The list was closed by a count that agrees with it.
    is_sure: bool,
    pace: Pace,
}

/// Which tests the pass waited for: from when the one before ended to when they did. Of tests that run side by side that is less than they took.
#[derive(Default)]
struct Pace {
    /// When the test before ended, since the pass began.
    last: Duration,
    waited: Vec<(Duration, String)>,
}

impl Pace {
    fn take(&mut self, line: &str, now: Duration) {
        let name = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")).map(|(name, _)| name);
        if let Some(name) = name {
            self.waited.push((now.saturating_sub(self.last), name.to_owned()));
        }
        // Between the targets is compiling and starting.
        if name.is_some() || line.starts_with("running ") {
            self.last = now;
        }
    }

    /// The tests that were waited for longest.
    fn longest(mut self) -> Vec<String> {
        self.waited.sort_by(|a, b| b.cmp(a));
        self.waited.truncate(LONGEST);
        self.waited.iter().map(|(waited, name)| format!("waited for {:4} s: {name}", waited.as_secs())).collect()
    }
}

impl Seen {
    fn take(&mut self, line: &str) {
        if line == "failures:" {
            self.list.clear();
            self.is_in_list = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let count = |word: &str| {
                let mut parts = result.split([';', '.']).map(str::trim);
                parts.find_map(|part| part.strip_suffix(word)?.trim().parse::<usize>().ok())
            };
            self.passed += count("passed").unwrap_or(0);
            self.is_sure = count("failed") == Some(self.list.len());
            self.is_in_list = false;
        } else if let Some(arguments) = rerun(line) {
            let list = std::mem::take(&mut self.list);
            let tests = if self.is_sure { list } else { Vec::new() };
            self.failed.push(Target { arguments: arguments.to_owned(), tests });
            self.is_sure = false;
        } else if line.trim_start().starts_with("Running ") || line.trim_start().starts_with("Doc-tests ") {
            self.list.clear();
            self.is_sure = false;
        } else if line.starts_with("undecided: ") {
            self.undecided.push(line.to_owned());
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.is_in_list) {
            self.list.push(name.to_owned());
        } else if !line.is_empty() {
            self.is_in_list = false;
        }
    }
}

/// What cargo says how to run a target again that failed.
fn rerun(line: &str) -> Option<&str> {
    let said = line.strip_prefix("error: test failed, ").or_else(|| line.strip_prefix("error: doctest failed, "))?;
    said.strip_prefix("to rerun pass `")?.strip_suffix('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Seen {
        let mut seen = Seen::default();
        text.lines().for_each(|line| seen.take(line));
        seen
    }

    #[test]
    fn the_tests_of_each_target_that_failed() {
        let seen = seen(
            "     Running unittests src/lib.rs (target/debug/deps/knee-325b)

running 2 tests
test tests::good ... ok
test tests::bad ... FAILED

failures:

---- tests::bad stdout ----
failures:
    printed::by_it

thread 'tests::bad' panicked at src/lib.rs:7:73:
failures:
    evil
note: run with `RUST_BACKTRACE=1`


failures:
    tests::bad

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `-p knee --lib`
     Running tests/fine.rs (target/debug/deps/fine-346f)

running 1 test

undecided: fine::ok: the machine stalled in too many attempts:
  disturbed: it was late
test fine::ok ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/e2e/main.rs (target/debug/deps/e2e-07fd)

failures:
    search::the_knee
    sql::it

test result: FAILED. 40 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `-p holdup --test e2e`
   Doc-tests ff

failures:
    src/lib.rs - x (line 2)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

all doctests ran in 0.50s; merged doctests compilation took 0.36s
error: doctest failed, to rerun pass `-p ff --doc`
error: 3 targets failed:
    `-p knee --lib`
",
        );
        let target = |arguments: &str, tests: &[&str]| Target {
            arguments: arguments.to_owned(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
        };
        assert_eq!(
            seen.failed,
            [
                target("-p knee --lib", &["tests::bad"]),
                target("-p holdup --test e2e", &["search::the_knee", "sql::it"]),
                target("-p ff --doc", &["src/lib.rs - x (line 2)"]),
            ]
        );
        assert_eq!((seen.passed, seen.failed[1].kind()), (42, vec!["--test", "e2e"]));
        assert_eq!(seen.undecided, ["undecided: fine::ok: the machine stalled in too many attempts:"]);
    }

    #[test]
    fn what_the_pass_waited_for() {
        let mut pace = Pace::default();
        for (line, s) in
            [("running 2 tests", 100), ("test a::b ... ok", 103), ("test c ... FAILED", 110), ("test result: ok.", 200)]
        {
            pace.take(line, Duration::from_secs(s));
        }
        assert_eq!(pace.longest(), ["waited for    7 s: c", "waited for    3 s: a::b"]);
    }

    #[test]
    fn what_crashed_named_no_test() {
        let seen = seen(
            "     Running tests/one.rs (target/debug/deps/one-07fd)

failures:
    bad

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `--test one`
     Running tests/two.rs (target/debug/deps/two-4845)

running 1 test
error: test failed, to rerun pass `--test two`

Caused by:
  process didn't exit successfully: `two-4845` (signal: 6, SIGABRT: process abort signal)
",
        );
        let tests: Vec<usize> = seen.failed.iter().map(|target| target.tests.len()).collect();
        assert_eq!((seen.failed[1].arguments.as_str(), tests), ("--test two", vec![1, 0]));
    }

    #[test]
    fn a_list_that_is_not_as_long_as_it_says_is_not_trusted() {
        let seen = seen(
            "failures:
    one

test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `--test one`
",
        );
        assert_eq!(seen.failed[0].tests, Vec::<String>::new());
    }
}
