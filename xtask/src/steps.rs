//! One step of a pass: its name, how long it took, and what to do if it failed. And commands, run or asked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

/// Whether this is root.
pub fn is_root() -> bool {
    ask(command(Path::new("/"), "id", &["-u"])).as_deref() == Some("0")
}

/// Folder for what is kept from checkout to checkout: root's own home is closed to the users that servers run as.
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if is_root() {
        PathBuf::from("/var/cache")
    } else {
        set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).unwrap_or_else(std::env::temp_dir)
    };
    base.join("holdup")
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
