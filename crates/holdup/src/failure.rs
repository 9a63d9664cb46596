//! How a command ends: exit codes and the one line that says why.

use std::fmt::Display;
use std::process::ExitCode;

/// A command's end other than "fine".
#[derive(Debug)]
pub enum Failure {
    /// The answer is "no": an objective was missed, or a culprit found with `--fail-on-finding`. Exit 1.
    No(String),
    /// Unusable input or target: nothing was measured, or a search was refused an answer. Exit 2.
    Unusable(String),
    /// Interrupted; what was measured is kept. Exit 130.
    Interrupted,
}

impl Failure {
    /// Unusable because of `error`.
    pub fn unusable(error: impl Display) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// Says why on stderr and turns it into the exit code.
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::No(why)) => {
            if !why.is_empty() {
                errln!("{why}");
            }
            ExitCode::from(1)
        }
        Err(Failure::Unusable(why)) => {
            errln!("{style}error:{style:#} {why}");
            ExitCode::from(2)
        }
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}
