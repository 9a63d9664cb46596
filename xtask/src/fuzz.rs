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
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// Every target for so many seconds, or a multiple.
    Each { seconds: u32 },
    /// Only targets that have had fewer inputs than this over all runs, each for at most so many seconds.
    Short { inputs: u64, seconds: u32 },
}

impl Wish {
    /// # Errors
    /// If the words are not those of the usage.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let seconds = |text: &str| text.parse().context("--seconds takes a whole number");
        let inputs = |text: &str| text.parse().context("--inputs takes a whole number");
        Ok(match words {
            [] => Self::Each { seconds: SECONDS },
            ["--seconds", text] => Self::Each { seconds: seconds(text)? },
            ["--inputs", text] => Self::Short { inputs: inputs(text)?, seconds: SECONDS_TO_CATCH_UP },
            ["--inputs", first, "--seconds", second] | ["--seconds", second, "--inputs", first] => {
                Self::Short { inputs: inputs(first)?, seconds: seconds(second)? }
            }
            _ => bail!("cargo xtask fuzz takes --seconds N and --inputs N, not {}", words.join(" ")),
        })
    }
}

/// Memory that the fuzzer itself and its corpus take is far below; an input that needs more is a find.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=32", "-timeout=10"];

/// Targets whose threads allocate and free across the end of an input. libFuzzer then looks for leaks
/// after every one, which took half of their time; what leaks for long is found by the limit above.
const WITH_THREADS: [&str; 3] = ["growing", "kernel_files", "recording"];

/// Does what was asked for, and says how often each target was executed, now and in all.
///
/// # Errors
/// If a target can't be built or run, or finds an input that does harm.
pub fn run(root: &Path, wish: &Wish) -> Result<()> {
    match *wish {
        Wish::Each { seconds } => each(root, seconds),
        Wish::Short { inputs, seconds } => short(root, inputs, seconds),
    }
}

/// Builds all targets and runs those that are short of `inputs`, one after another: those that are nearly there first. Counts are
/// kept after each, so that a run that is ended is gone on with by the next.
fn short(root: &Path, inputs: u64, seconds: u32) -> Result<()> {
    let binaries = build(root)?;
    let counts = Counts::of(root);
    for (target, missing) in counts.short(TARGETS.map(|(target, _)| target), inputs)? {
        let executions = fuzz(root, &binaries.join(target), target, seconds, Some(missing))?;
        println!("   {target}: {executions} executions, no find; {}", count(&counts, target, executions)?);
    }
    let missing = counts.short(TARGETS.map(|(target, _)| target), inputs)?;
    for (target, missing) in &missing {
        println!("   {target}: {missing} inputs short of {inputs}");
    }
    println!("   {} of {} targets have had {inputs} inputs", TARGETS.len() - missing.len(), TARGETS.len());
    Ok(())
}

/// Builds all targets and runs each for `seconds`, or a multiple; as many side by side as there are CPUs.
fn each(root: &Path, seconds: u32) -> Result<()> {
    let binaries = build(root)?;
    let waiting = Mutex::new(TARGETS.iter());
    let counts = Mutex::new(Counts::of(root));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<()> {
        while let Some((target, times)) = next() {
            let seconds = seconds * times;
            let executions = fuzz(root, &binaries.join(target), target, seconds, None)?;
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            println!(
                "   {target}: {executions} executions in {seconds} s, no find; {}",
                count(&counts, target, executions)?
            );
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|_| bail!("a worker of the fuzzers panicked")))
    })
}

/// The same for one target.
pub fn one(root: &Path, target: &str, seconds: u32) -> Result<()> {
    let binaries = build(root)?;
    let executions = fuzz(root, &binaries.join(target), target, seconds, None)?;
    println!("   {target}: {executions} executions; {}", count(&Counts::of(root), target, executions)?);
    Ok(())
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
        assert_eq!(Wish::parse(&[]).unwrap(), Wish::Each { seconds: SECONDS });
        assert_eq!(Wish::parse(&["--seconds", "2"]).unwrap(), Wish::Each { seconds: 2 });
        let wish = Wish::Short { inputs: 200_000, seconds: SECONDS_TO_CATCH_UP };
        assert_eq!(Wish::parse(&["--inputs", "200000"]).unwrap(), wish);
        let wish = Wish::parse(&["--seconds", "60", "--inputs", "7"]).unwrap();
        assert_eq!(wish, Wish::Short { inputs: 7, seconds: 60 });
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
