//! Runs the scripts of `bench/`, with a release build of holdup unless another one is named. What is measured how: `bench/README.md`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::steps::{cargo, command, run as run_command};

/// Names the holdup to measure in place of the release build.
const HOLDUP_VARIABLE: &str = "HOLDUP_BENCH_BIN";

/// `words` are a script's name, `peers` unless told, and the script's own flags.
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let (name, flags) = match words {
        [name, flags @ ..] if !name.starts_with('-') => (*name, flags),
        flags => ("peers", flags),
    };
    let script = root.join("bench").join(name).join(format!("{name}.py"));
    if !script.is_file() {
        bail!("{} is not there; bench/README.md says which scripts there are", script.display());
    }
    let holdup = match std::env::var_os(HOLDUP_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => {
            run_command(cargo(root, &["build", "--release", "-p", "holdup"]))?;
            root.join("target/release/holdup")
        }
    };
    let mut python = command(root, "python3", &["-B"]);
    python.arg(script).arg("--bin").arg(holdup).args(flags);
    run_command(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fits of schedules, slopes, and readers of other tools' reports, each with its examples.
    #[test]
    fn examples_of_the_scripts_hold() {
        let bench = crate::root().join("bench");
        for script in ["peers/figures.py", "peers/tools.py", "soak/soak.py"] {
            run_command(command(&bench, "python3", &["-B", "-m", "doctest", script])).unwrap();
        }
    }

    #[test]
    fn a_script_that_is_not_there_is_said() {
        let error = run(&crate::root(), &["nothing"]).unwrap_err();
        assert!(error.to_string().contains("nothing.py is not there"), "{error}");
    }
}
