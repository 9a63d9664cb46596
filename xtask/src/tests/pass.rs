//! What came of the tests, kept as JSON, and whether that is green. A test passed, failed, could not be judged because the
//! machine stalled (`undecided`), or said that it lacks what it needs (`skipped`). It runs nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::junit::Case;

/// So many undecided tests are a machine's bad moment; more are no evidence for anything.
const MOST_UNDECIDED: usize = 3;

/// Tests of labs and the demo stand for the mission: without them a pass says nothing.
const NEVER_UNDECIDED: [&str; 2] = ["lab::", "demo::"];

/// So many of the slowest tests are printed.
const SLOWEST: usize = 10;

/// How a test ended.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    Failed,
    Undecided,
    Skipped,
}

/// One test of a pass.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub struct Test {
    /// Binary and test: `holdup::e2e demo::names_the_pool`.
    pub name: String,
    pub outcome: Outcome,
    pub seconds: f64,
    /// Why it was skipped or undecided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// All tests of a pass.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Pass {
    pub commit: String,
    #[serde(flatten)]
    pub cost: Cost,
    pub tests: Vec<Test>,
}

impl Test {
    pub fn from_case(case: Case) -> Self {
        let said = |word: &str| case.said.lines().find_map(|line| line.strip_prefix(word)).map(str::to_owned);
        let (outcome, why) = match (case.has_failed, said("undecided: "), said("skipped: ")) {
            (true, Some(why), _) => (Outcome::Undecided, why),
            (true, None, _) => (Outcome::Failed, String::new()),
            (false, _, Some(why)) => (Outcome::Skipped, why),
            (false, _, None) => (Outcome::Passed, String::new()),
        };
        Self { name: format!("{} {}", case.binary, case.name), outcome, seconds: case.seconds, why }
    }
}

impl Pass {
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let parsed = serde_json::from_str(&text);
        parsed.map(Some).with_context(|| format!("{} is not the record of a pass; remove it", path.display()))
    }

    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
    }

    pub fn count(&self, outcome: Outcome) -> usize {
        self.tests.iter().filter(|test| test.outcome == outcome).count()
    }

    fn names(&self, outcome: Outcome) -> BTreeSet<&str> {
        self.tests.iter().filter(|test| test.outcome == outcome).map(|test| test.name.as_str()).collect()
    }

    /// What makes it red; empty if it is green. `before` is the pass before this one on the same machine.
    pub fn red(&self, before: Option<&Self>) -> Vec<String> {
        let mut red: Vec<String> = self.names(Outcome::Failed).iter().map(|name| format!("failed: {name}")).collect();
        let undecided = self.names(Outcome::Undecided);
        if undecided.len() > MOST_UNDECIDED {
            red.push(format!("{} tests undecided, at most {MOST_UNDECIDED} may be", undecided.len()));
        }
        let twice = before.map(|before| before.names(Outcome::Undecided)).unwrap_or_default();
        for name in undecided {
            let test = name.rsplit(' ').next().unwrap_or(name);
            if NEVER_UNDECIDED.iter().any(|module| test.starts_with(module)) {
                red.push(format!("undecided, which it may never be: {name}"));
            } else if twice.contains(name) {
                red.push(format!("undecided twice in a row: {name}"));
            }
        }
        if self.count(Outcome::Passed) == 0 {
            red.push("no test passed".to_owned());
        }
        red
    }

    /// For the end of the pass, where it is read: the slowest tests, and what was not judged.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let mut slowest: Vec<&Test> = self.tests.iter().collect();
        slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for test in slowest.iter().take(SLOWEST) {
            let _ = writeln!(text, "   {:6.1} s  {}", test.seconds, test.name);
        }
        for test in self.tests.iter().filter(|test| !test.why.is_empty()) {
            let word = if test.outcome == Outcome::Undecided { "undecided" } else { "skipped" };
            let _ = writeln!(text, "   {word}: {}: {}", test.name, test.why);
        }
        let total: f64 = self.tests.iter().map(|test| test.seconds).sum();
        let undecided = self.count(Outcome::Undecided);
        let Cost { seconds, cpu_seconds, others_ratio } = self.cost;
        let _ = writeln!(
            text,
            "   {total:.0} s of tests in {seconds:.0} s, {cpu_seconds:.0} s of CPU time, {:.0} % of the CPUs used by others; {undecided} undecided",
            100.0 * others_ratio
        );
        text
    }

    /// The line that says it all.
    pub fn line(&self) -> String {
        let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(|o| self.count(o));
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(tests: &[(&str, Outcome)]) -> Pass {
        let test = |(name, outcome): &(&str, Outcome)| Test {
            name: format!("holdup::e2e {name}"),
            outcome: *outcome,
            seconds: 1.0,
            why: String::new(),
        };
        Pass { tests: tests.iter().map(test).collect(), ..Pass::default() }
    }

    #[test]
    fn a_case_is_what_it_says() {
        let case = |has_failed, said: &str| Case { has_failed, said: said.to_owned(), ..Case::default() };
        let outcome = |has_failed, said| Test::from_case(case(has_failed, said)).outcome;
        assert_eq!(outcome(false, "fine"), Outcome::Passed);
        assert_eq!(outcome(false, "x\nskipped: no disk"), Outcome::Skipped);
        assert_eq!(outcome(true, "thread panicked at a:1:\nundecided: late"), Outcome::Undecided);
        assert_eq!(outcome(true, "it said: undecided: no"), Outcome::Failed);
        assert_eq!(outcome(false, "undecided: but then it held"), Outcome::Passed);
    }

    #[test]
    fn what_is_red() {
        use Outcome::{Failed, Passed, Undecided};
        assert!(pass(&[("a", Passed)]).red(None).is_empty());
        assert_eq!(pass(&[("a", Passed), ("b", Failed)]).red(None), ["failed: holdup::e2e b"]);
        let one = pass(&[("a", Passed), ("b", Undecided)]);
        assert!(one.red(None).is_empty() && one.red(Some(&pass(&[("b", Passed)]))).is_empty());
        assert_eq!(one.red(Some(&one)), ["undecided twice in a row: holdup::e2e b"]);
        let four = pass(&[("a", Passed), ("b", Undecided), ("c", Undecided), ("d", Undecided), ("e", Undecided)]);
        assert_eq!(four.red(None), ["4 tests undecided, at most 3 may be"]);
        let lab = pass(&[("a", Passed), ("lab::smoke", Undecided)]);
        assert_eq!(lab.red(None), ["undecided, which it may never be: holdup::e2e lab::smoke"]);
        assert_eq!(pass(&[]).red(None), ["no test passed"]);
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let dir = std::env::temp_dir().join(format!("xtask-pass-{}", std::process::id()));
        let written = pass(&[("a", Outcome::Passed), ("b", Outcome::Undecided)]);
        written.save(&dir.join("deep/pass.json")).unwrap();
        assert_eq!(Pass::load(&dir.join("deep/pass.json")).unwrap(), Some(written));
        assert_eq!(Pass::load(&dir.join("none.json")).unwrap(), None);
        fs::remove_dir_all(dir).unwrap();
    }
}
