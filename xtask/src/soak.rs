//! `cargo xtask soak`: watches a real MariaDB, a real PostgreSQL, the host and 200 processes for slices of minutes, under a small
//! steady load, and looks whether holdup itself stays as it was: memory, open files, threads, and the size of its recording. Each
//! slice is kept by commit in `target/soak/slices.json`, so that hours are made of many runs. CI does not soak.

mod holdup;
mod judge;
mod processes;
mod promise;
mod record;
mod sample;
mod servers;
mod trend;
mod uses;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::steps::{cargo, run as run_command};
use crate::tests;
use holdup::{Holdup, Plan};
use processes::Workers;
use promise::Promise;
use record::{End, Record, Slice};
use sample::Sample;
use servers::Servers;

/// Processes that are watched by their ids.
const PROCESSES: usize = 200;

/// Time between two looks at holdup.
const EVERY: Duration = Duration::from_secs(5);

/// Longest that the watch may take to end: it merges its tables and judges the recording.
const END_WITHIN: Duration = Duration::from_secs(900);

/// What the words behind `soak` ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// Slices of so many minutes, in one recording.
    Soak { minutes: u64, slices: u64 },
    /// The sum over all slices so far.
    Score,
    /// To be one of the watched processes: internal.
    Worker { is_busy: bool },
}

impl Wish {
    /// # Errors
    /// If the words are not those of the usage.
    pub fn parse(words: &[&str]) -> Result<Self> {
        match words {
            ["--score"] => return Ok(Self::Score),
            ["worker", kind] => return Ok(Self::Worker { is_busy: *kind == "busy" }),
            _ => {}
        }
        let (mut minutes, mut slices) = (20, 1);
        for pair in words.chunks(2) {
            match pair {
                ["--minutes", count] => minutes = count.parse().context("--minutes takes a whole number")?,
                ["--slices", count] => slices = count.parse().context("--slices takes a whole number")?,
                _ => bail!("cargo xtask soak takes --minutes N, --slices N or --score, not {}", pair.join(" ")),
            }
        }
        if minutes == 0 || slices == 0 {
            bail!("--minutes and --slices take at least 1");
        }
        Ok(Self::Soak { minutes, slices })
    }
}

/// Does what was asked for.
///
/// # Errors
/// If something can't be started, or a slice is not as it should be.
pub fn run(root: &Path, wish: &Wish) -> Result<()> {
    match wish {
        Wish::Worker { is_busy } => {
            processes::work(*is_busy);
            Ok(())
        }
        Wish::Score => {
            print!("{}", Record::load(&path(root))?.score());
            Ok(())
        }
        Wish::Soak { minutes, slices } => soak(root, *minutes, *slices),
    }
}

fn path(root: &Path) -> PathBuf {
    root.join("target/soak/slices.json")
}

fn soak(root: &Path, minutes: u64, slices: u64) -> Result<()> {
    // The commit is that of the build: the tree may change while this runs.
    let commit = tests::commit(root);
    run_command(cargo(root, &["build", "--release", "-p", "holdup"]))?;
    let promise = Promise::read(root)?;
    let folder = root.join("target/soak/run");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;

    let length = Duration::from_secs(60 * minutes);
    let servers = Servers::start(root)?;
    let workers = Workers::start(PROCESSES)?;
    let plan = Plan {
        root,
        folder: &folder,
        servers: &servers,
        pids: &workers.pids(),
        length: length * u32::try_from(slices)?,
    };
    let mut holdup = Holdup::start(&plan)?;
    let mut record = Record::load(&path(root))?;
    let mut troubles = Vec::new();
    for number in 0..slices {
        let samples = look(&mut holdup, &servers, length)?;
        let mut slice = Slice::new(&commit, minutes, number, &samples);
        slice.judge(&promise, PROCESSES);
        println!("{}", slice.text());
        troubles.extend(slice.troubles.iter().cloned());
        record.slices.push(slice);
        record.save(&path(root))?;
    }
    let end = end(&mut holdup)?;
    println!("   {}", end.text());
    troubles.extend(end.troubles());
    if let Some(slice) = record.slices.last_mut() {
        slice.end = Some(end);
    }
    record.save(&path(root))?;
    print!("{}", record.score());
    if !troubles.is_empty() {
        bail!("not as it should be:\n  {}", troubles.join("\n  "));
    }
    Ok(())
}

/// Looks at holdup for `length`, and makes sessions, statements and processes come and go meanwhile.
fn look(holdup: &mut Holdup, servers: &Servers, length: Duration) -> Result<Vec<Sample>> {
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < length {
        samples.push(holdup.sample()?);
        servers.come_and_go(samples.len())?;
        let next = EVERY * u32::try_from(samples.len())?;
        std::thread::sleep(next.min(length).saturating_sub(begun.elapsed()));
    }
    samples.push(holdup.sample()?);
    Ok(samples)
}

/// Waits until the watch has ended by itself.
fn end(holdup: &mut Holdup) -> Result<End> {
    let begun = Instant::now();
    let mut peak_bytes = 0;
    loop {
        if let Some(code) = holdup.ended()? {
            return holdup.end(code, begun.elapsed(), peak_bytes);
        }
        peak_bytes = peak_bytes.max(holdup.peak_bytes());
        if begun.elapsed() > END_WITHIN {
            bail!("holdup watch has not ended {} s after its time", END_WITHIN.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!(Wish::parse(&[]).unwrap(), Wish::Soak { minutes: 20, slices: 1 });
        let wish = Wish::parse(&["--slices", "9", "--minutes", "2"]).unwrap();
        assert_eq!(wish, Wish::Soak { minutes: 2, slices: 9 });
        assert_eq!(Wish::parse(&["--score"]).unwrap(), Wish::Score);
        for wrong in [&["--minutes"][..], &["--minutes", "0"], &["--hours", "3"]] {
            assert!(Wish::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
