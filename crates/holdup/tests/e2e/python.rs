//! Other people's readers: Python with DuckDB, pandas and jsonschema, as `cargo xtask setup` puts into target/py.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::program::{Finished, finish, root, skip};

/// Runs `py/SCRIPT` with `arguments`; it must find nothing wrong. False if there is no Python to run it.
pub fn check<S: AsRef<OsStr>>(script: &str, arguments: &[S]) -> bool {
    let Some(done) = run(script, arguments) else { return false };
    // What they look at is no matter of time.
    if !done.status.success() {
        holdup_witness::certain(&format!("{script}:\n{}{}", done.stdout, done.stderr));
    }
    true
}

/// Runs `py/SCRIPT`; none if there is no Python to run it.
pub fn run<S: AsRef<OsStr>>(script: &str, arguments: &[S]) -> Option<Finished> {
    Some(finish(command(script)?.args(arguments), 300))
}

/// The command that runs `py/SCRIPT`; none if there is no Python to run it.
pub fn command(script: &str) -> Option<Command> {
    let python = root().join("target/py/bin/python");
    if !python.exists() {
        skip("target/py has no Python with DuckDB; run: cargo xtask setup");
        return None;
    }
    let scripts = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/py"));
    let mut command = Command::new(python);
    command.arg("-B").arg(scripts.join(script));
    Some(command)
}
