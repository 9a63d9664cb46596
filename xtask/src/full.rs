//! `cargo xtask ci --full`: what an ordinary pass leaves out because it takes hours: tests marked `#[ignore = "full: …"]`, every
//! lab with all its variants, and the fuzzers. Each item's result is kept at once, by commit, so that a run goes on where the one
//! before stopped. What failed or could not be judged stays owed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::setup::Tools;
use crate::steps::{cargo, command, run as run_command};
use crate::tests::{self, Outcome, Pass, Test};
use crate::{fuzz, setup};

/// Seconds for each fuzzer; those of what users write get a multiple.
const FUZZ_SECONDS: u32 = 60;

/// Something to do that can be done by itself.
enum Item {
    /// Binary and name.
    Test(String, String),
    Lab(String),
    /// A lab's fault as standard tools alone show it.
    ByHand(String),
    Fuzz(&'static str, u32),
}

impl Item {
    fn name(&self) -> String {
        match self {
            Self::Test(binary, name) => format!("{binary} {name}"),
            Self::Lab(name) => format!("lab {name}"),
            Self::ByHand(name) => format!("lab {name} by hand"),
            Self::Fuzz(target, _) => format!("fuzz {target}"),
        }
    }

    fn run(&self, root: &Path, tools: &Tools) -> Result<Test> {
        let begun = Instant::now();
        let (outcome, why) = match self {
            Self::Test(binary, name) => {
                let filter = format!("binary_id(={binary}) & test(={name})");
                let pass = tests::run(root, tools, "full", &["--run-ignored", "only", "-E", &filter])?;
                let test = pass.tests.into_iter().next().context("nextest ran no test of that name")?;
                (test.outcome, test.why)
            }
            Self::Lab(name) => passed(lab(root, name, &[])),
            Self::ByHand(name) => passed(lab(root, name, &["--by-hand", "--variant=faulty"])),
            Self::Fuzz(target, seconds) => passed(fuzz::one(root, target, *seconds)),
        };
        Ok(Test { name: self.name(), outcome, seconds: begun.elapsed().as_secs_f64(), why })
    }
}

/// What of it, and for how long.
#[derive(Default)]
pub struct Slice {
    /// No item is begun later than this after the start.
    pub length: Option<Duration>,
    /// Only items whose name holds this.
    pub only: Option<String>,
}

impl Slice {
    /// Of the words behind `ci --full`.
    ///
    /// # Errors
    /// If they are not `--minutes N` and `--only WORD`.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut slice = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--minutes", minutes] => {
                    let minutes: u64 = minutes.parse().context("--minutes takes a whole number")?;
                    slice.length = Some(Duration::from_secs(60 * minutes));
                }
                ["--only", word] => slice.only = Some((*word).to_owned()),
                _ => bail!("cargo xtask ci --full takes --minutes N and --only WORD, not {}", pair.join(" ")),
            }
        }
        Ok(slice)
    }
}

/// Goes on until everything is done or `slice` is over. Prints what came of each item, and what is still owed.
///
/// # Errors
/// If an item failed or is owed.
pub fn run(root: &Path, slice: &Slice) -> Result<()> {
    let begun = Instant::now();
    let tools = setup::run(root)?;
    let mut items = items(root, &tools)?;
    items.retain(|item| slice.only.as_ref().is_none_or(|word| item.name().contains(word)));
    let path = tests::full_record(root);
    let mut record = Pass::load(&path)?.unwrap_or_default();
    record.commit = tests::commit(root);
    for (number, item) in items.iter().enumerate() {
        let name = item.name();
        if record.tests.iter().any(|test| test.name == name && test.outcome == Outcome::Passed) {
            continue;
        }
        if slice.length.is_some_and(|length| begun.elapsed() > length) {
            println!("== the slice is over");
            break;
        }
        println!("== {} of {}: {name}", number + 1, items.len());
        let test = item.run(root, &tools)?;
        record.tests.retain(|test| test.name != name);
        record.tests.push(test);
        record.cost.seconds = record.tests.iter().map(|test| test.seconds).sum();
        record.save(&path)?;
    }
    settle(&items, &record)
}

/// Prints the table; it is the same however often the run was interrupted.
fn settle(items: &[Item], record: &Pass) -> Result<()> {
    let mut owed = Vec::new();
    for item in items {
        let name = item.name();
        let test = record.tests.iter().find(|test| test.name == name);
        let word = match test.map(|test| test.outcome) {
            Some(Outcome::Passed) => "passed",
            Some(Outcome::Failed) => "FAILED",
            Some(Outcome::Undecided) => "undecided",
            Some(Outcome::Skipped) => "skipped",
            None => "owed",
        };
        println!("   {word:<9}  {:6.0} s  {name}", test.map_or(0.0, |test| test.seconds));
        if word != "passed" {
            owed.push(name);
        }
    }
    println!("   commit {}: {} of {} passed", record.commit, items.len() - owed.len(), items.len());
    if !owed.is_empty() {
        bail!("still owed, go on with the same command:\n  {}", owed.join("\n  "));
    }
    Ok(())
}

fn items(root: &Path, tools: &Tools) -> Result<Vec<Item>> {
    let mut items: Vec<Item> =
        tests::ignored(root, tools, "full")?.into_iter().map(|(binary, name)| Item::Test(binary, name)).collect();
    let labs = std::fs::read_dir(root.join("labs")).context("failed to read labs/")?.flatten();
    let mut labs: Vec<String> = labs
        .filter(|entry| entry.path().join("lab.yaml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    labs.sort();
    let by_hand = |name: &String| {
        let text = std::fs::read_to_string(root.join("labs").join(name).join("lab.yaml")).unwrap_or_default();
        text.lines().any(|line| line.starts_with("by_hand:"))
    };
    let by_hand: Vec<Item> = labs.iter().filter(|name| by_hand(name)).cloned().map(Item::ByHand).collect();
    items.extend(labs.into_iter().map(Item::Lab));
    items.extend(by_hand);
    items.extend(fuzz::TARGETS.map(|(target, times)| Item::Fuzz(target, FUZZ_SECONDS * times)));
    Ok(items)
}

fn passed(result: Result<()>) -> (Outcome, String) {
    match result {
        Ok(()) => (Outcome::Passed, String::new()),
        Err(error) => (Outcome::Failed, format!("{error:#}")),
    }
}

/// A lab with these flags, each variant with the verdict that the lab expects, by a release build. Recordings of what failed stay
/// for a look.
fn lab(root: &Path, name: &str, flags: &[&str]) -> Result<()> {
    run_command(cargo(root, &["build", "--release", "-p", "holdup", "--features", "labs"]))?;
    let folder = if flags.is_empty() { name.to_owned() } else { format!("{name}-by-hand") };
    let out = root.join("target/full").join(folder);
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("failed to remove {}", out.display()))?;
    }
    let mut lab = command(root, root.join("target/release/holdup"), &["lab", name, "--quiet", "--output"]);
    lab.arg(&out).args(flags);
    run_command(lab)
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn a_slice_is_read() {
        let slice = Slice::parse(&["--only", "lab", "--minutes", "20"]).unwrap();
        assert_eq!((slice.length, slice.only.as_deref()), (Some(Duration::from_secs(1_200)), Some("lab")));
        assert!(Slice::parse(&["--minutes"]).is_err() && Slice::parse(&["--hours", "2"]).is_err());
    }

    #[test]
    fn what_is_not_passed_is_owed() {
        let items = [Item::Lab("a".to_owned()), Item::Fuzz("b", 1)];
        let test = |name: &str, outcome| Test { name: name.to_owned(), outcome, seconds: 1.0, why: String::new() };
        let mut record = Pass { tests: vec![test("lab a", Outcome::Passed)], ..Pass::default() };
        assert!(settle(&items, &record).unwrap_err().to_string().ends_with("\n  fuzz b"));
        record.tests.push(test("fuzz b", Outcome::Undecided));
        assert!(settle(&items, &record).is_err());
        record.tests[1].outcome = Outcome::Passed;
        assert!(settle(&items, &record).is_ok());
    }
}
