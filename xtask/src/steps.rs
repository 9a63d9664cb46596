//! One step of a pass: its name, how long it took, and what to do if it failed. And commands, run or asked.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};

/// What tests that are tried again look at, too: seconds since 1970 after which nothing is.
const UNTIL: &str = "HOLDUP_PATIENCE_UNTIL";

/// Until when things are tried again.
pub struct Clock {
    /// Within tests.
    attempts: Instant,
    /// Whole tests.
    tests: Instant,
}

impl Clock {
    /// So long from now on.
    pub fn until(attempts: Duration, tests: Duration) -> Self {
        let now = Instant::now();
        Self { attempts: now + attempts, tests: now + tests }
    }

    /// Whether no test is to be run again.
    pub fn is_over(&self) -> bool {
        Instant::now() > self.tests
    }

    /// Tells a command's tests until when they make attempts.
    pub fn told(&self, mut command: Command) -> Command {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = now + self.attempts.saturating_duration_since(Instant::now());
        command.env(UNTIL, until.as_secs().to_string());
        command
    }
}

/// Runs `work` as a step called `name`; `way_out` is printed if it fails.
pub fn step<T>(name: &str, way_out: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let begun = Instant::now();
    let result = work();
    let seconds = begun.elapsed().as_secs_f64();
    match result {
        Ok(value) => {
            println!("== {name}: ok, {seconds:.1} s");
            Ok(value)
        }
        Err(error) => {
            println!("== {name}: FAILED after {seconds:.1} s");
            Err(error.context(format!("{name} failed; {way_out}")))
        }
    }
}

/// A command in `dir`.
pub fn command<S: AsRef<OsStr>>(dir: &Path, program: impl AsRef<OsStr>, arguments: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command
}

/// Runs it with its output on ours.
pub fn run(mut command: Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("could not start {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// Its standard output without white space around it, if it starts and succeeds.
pub fn ask(mut command: Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Cargo, as it was when it started us.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(root, program, arguments)
}
