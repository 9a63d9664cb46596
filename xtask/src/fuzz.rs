//! Lets fuzzers loose on what reads the bytes of strangers. The targets and their seeds are in `fuzz/`; what is
//! built and found goes to `target/fuzz/`. An input that was found to do harm becomes a seed once it is mended.

mod counts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};

use counts::Counts;

use crate::steps::{ask, command, run as run_command};
use crate::{child, setup};

/// Each a binary of `fuzz/`, with seeds of its name, and how many times [`SECONDS`] it is run: what users write, in languages
/// of their own, has more ways to be odd than what servers say.
pub const TARGETS: [(&str, u32); 22] = [
    ("access", 3),
    ("template", 3),
    ("scenario", 3),
    ("import", 3),
    ("pasted", 2),
    ("cloud", 2),
    ("together", 2),
    ("http1_response", 1),
    ("http2_session", 1),
    ("hpack", 1),
    ("wire", 1),
    ("capture", 1),
    ("mongodb", 2),
    ("kernel_files", 1),
    ("statement", 2),
    ("otlp", 1),
    ("packets", 1),
    ("kubernetes", 1),
    ("app_servers", 1),
    ("logs", 3),
    ("growing", 1),
    ("recording", 3),
];

/// Seconds for a target unless told.
pub const SECONDS: u32 = 20;

/// Most seconds for a target that is short of a number of inputs, unless told.
const SECONDS_TO_CATCH_UP: u32 = 1_800;

/// What the words behind `fuzz` ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Only targets that have had fewer inputs than this over all runs.
    inputs: Option<u64>,
    /// Seconds for each: at most where a number of inputs is asked for, else a multiple of them.
    seconds: Option<u32>,
}

impl Wish {
    /// # Errors
    /// If the words are not those of the usage.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut wish = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--seconds", text] => wish.seconds = Some(text.parse().context("--seconds takes a whole number")?),
                ["--inputs", text] => wish.inputs = Some(text.parse().context("--inputs takes a whole number")?),
                _ => bail!("cargo xtask fuzz takes --seconds N and --inputs N, not {}", words.join(" ")),
            }
        }
        Ok(wish)
    }
}

/// A target, its seconds, and how many inputs it is short of, if that is what counts.
type Run = (&'static str, u32, Option<u64>);

/// Memory that the fuzzer itself and its corpus take is far below; an input that needs more is a find.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=32", "-timeout=10"];

/// Targets whose threads allocate and free across the end of an input. libFuzzer then looks for leaks
/// after every one, which took half of their time; what leaks for long is found by the limit above.
const WITH_THREADS: [&str; 3] = ["growing", "kernel_files", "recording"];

/// Does what was asked for, and says how often each target was executed, now and in all. Targets run as many side by side as there are
/// CPUs; those that are short of inputs one after another, those that are nearly there first. Counts are kept after each, so that a
/// run that is ended is gone on with by the next.
///
/// # Errors
/// If a target can't be built or run, or finds an input that does harm.
pub fn run(root: &Path, wish: &Wish) -> Result<()> {
    let targets = || TARGETS.map(|(target, _)| target);
    let counts = Counts::of(root);
    let Some(inputs) = wish.inputs else {
        let seconds = wish.seconds.unwrap_or(SECONDS);
        let runs = TARGETS.map(|(target, times)| (target, seconds * times, None));
        return all(root, &counts, &runs, thread::available_parallelism().map_or(1, usize::from));
    };
    let seconds = wish.seconds.unwrap_or(SECONDS_TO_CATCH_UP);
    let short = counts.short(targets(), inputs)?;
    let runs: Vec<Run> = short.into_iter().map(|(target, missing)| (target, seconds, Some(missing))).collect();
    all(root, &counts, &runs, 1)?;
    let missing = counts.short(targets(), inputs)?;
    for (target, missing) in &missing {
        println!("   {target}: {missing} inputs short of {inputs}");
    }
    println!("   {} of {} targets have had {inputs} inputs", TARGETS.len() - missing.len(), TARGETS.len());
    Ok(())
}

/// One target for so many seconds.
pub fn one(root: &Path, target: &'static str, seconds: u32) -> Result<()> {
    all(root, &Counts::of(root), &[(target, seconds, None)], 1)
}

/// Builds all targets and runs these, so many side by side.
fn all(root: &Path, counts: &Counts, runs: &[Run], side_by_side: usize) -> Result<()> {
    let binaries = build(root)?;
    let (waiting, counts) = (Mutex::new(runs.iter()), Mutex::new(counts));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<()> {
        while let Some(&(target, seconds, inputs)) = next() {
            let executions = fuzz(root, &binaries.join(target), target, seconds, inputs)?;
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let counted = count(&counts, target, executions)?;
            println!("   {target}: {executions} executions in at most {seconds} s, no find; {counted}");
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..side_by_side).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|_| bail!("a worker of the fuzzers panicked")))
    })
}

/// Adds to the file of counts; what it has then.
fn count(counts: &Counts, target: &str, executions: u64) -> Result<String> {
    let (here, total) = counts.add(target, executions)?;
    Ok(format!("{here} of this commit, {total} in all"))
}

/// Builds the targets; the folder they are in.
fn build(root: &Path) -> Result<PathBuf> {
    let tool = setup::cargo_fuzz(root)?;
    // It needs a compiler flag that only nightly takes without being told to.
    let nightly = ask(command(root, "rustup", &["run", "nightly", "rustc", "--version"])).is_some();
    let with_compiler = |mut command: Command| {
        // The cargo that started us would else be the one that builds.
        command.env_remove("CARGO").env_remove("RUSTC");
        if nightly {
            command.env("RUSTUP_TOOLCHAIN", "nightly")
        } else {
            command.env("RUSTC_BOOTSTRAP", "1")
        };
        command
    };
    let version = ask(with_compiler(command(root, "rustc", &["-vV"]))).context("could not ask rustc for its host")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let arguments = ["build", "--fuzz-dir", "fuzz", "--target-dir", "target/fuzz", "--target", host];
    run_command(with_compiler(command(root, tool, &arguments)))
        .context("could not build the fuzz targets; besides Rust they need a C++ compiler (g++ or clang++)")?;
    Ok(root.join("target/fuzz").join(host).join("release"))
}

/// Runs one target, with at most so many inputs if a number is given; returns how many it executed.
fn fuzz(root: &Path, binary: &Path, target: &str, seconds: u32, inputs: Option<u64>) -> Result<u64> {
    // Whole paths: a target may go to another folder, away from files that its inputs could name.
    let place = |folder: &str| format!("{}/{folder}/{target}", root.display());
    let (corpus, finds, seeds) = (place("target/fuzz/corpus"), place("target/fuzz/finds") + "/", place("fuzz/seeds"));
    for folder in [&corpus, &finds] {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {folder}"))?;
    }
    let time = format!("-max_total_time={seconds}");
    let prefix = format!("-artifact_prefix={finds}");
    let mut arguments = vec![time.as_str(), &prefix, "-print_final_stats=1", &corpus, &seeds];
    arguments.extend(LIMITS);
    if WITH_THREADS.contains(&target) {
        arguments.push("-detect_leaks=0");
    }
    let inputs = inputs.map(|inputs| format!("-runs={inputs}"));
    arguments.extend(inputs.as_deref());
    let mut fuzzer = command(root, binary, &arguments);
    let output = child::run(fuzzer.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let lines: Vec<&str> = said.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(80)..].join("\n"));
        bail!("{target} found an input that does harm, see above; it is kept in {finds}");
    }
    executions(&said).filter(|&count| count > 0).ok_or_else(|| anyhow!("{target} ran, but executed nothing"))
}

/// From the statistics that libFuzzer ends with.
fn executions(said: &str) -> Option<u64> {
    let count = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let wish = |words: &[&str]| Wish::parse(words).map(|wish| (wish.inputs, wish.seconds)).unwrap();
        assert_eq!(wish(&[]), (None, None));
        assert_eq!(wish(&["--seconds", "2"]), (None, Some(2)));
        assert_eq!(wish(&["--inputs", "200000"]), (Some(200_000), None));
        assert_eq!(wish(&["--seconds", "60", "--inputs", "7"]), (Some(7), Some(60)));
        for wrong in [&["--seconds"][..], &["--inputs", "many"], &["hpack"]] {
            assert!(Wish::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_the_fuzzer_says() {
        assert_eq!(executions("Done\nstat::number_of_executed_units: 4711\nstat::x: 1\n"), Some(4711));
        assert_eq!(executions("INFO: no statistics"), None);
    }

    #[test]
    fn each_target_has_a_file_and_seeds() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let mut files: Vec<String> = fs::read_dir(fuzz.join("fuzz_targets"))
            .expect("targets")
            .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut listed = TARGETS.map(|(target, _)| target.to_owned());
        listed.sort();
        assert_eq!(files, listed);
        for (target, _) in TARGETS {
            assert!(fs::read_dir(fuzz.join("seeds").join(target)).expect("seeds").count() > 0, "{target}");
        }
    }
}
