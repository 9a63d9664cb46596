//! One step of a pass: its name, how long it took, and what to do if it failed. And commands, run or asked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::child;

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
    let status = child::run(&mut command)?.status;
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

/// What `cargo run` sets of the program that it runs. Build scripts of some crates (ring) look at these: with those of xtask, cargo
/// would compile them and all above them again, and once more when it is run without them.
const OF_US: [&str; 3] = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_"];

/// Cargo, as it was when it started us.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    without_ours(command(root, program, arguments))
}

/// A command that starts cargo, without what ours told us.
pub fn without_ours(mut command: Command) -> Command {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| OF_US.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Cargo runs this test with them.
    #[test]
    fn cargo_is_not_told_of_xtask() {
        assert_eq!(std::env::var("CARGO_PKG_NAME").as_deref(), Ok("xtask"));
        let command = cargo(Path::new("/"), &[]);
        let removed: Vec<&OsStr> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
            assert!(removed.contains(&OsStr::new(name)), "{name}: {removed:?}");
        }
    }
}
