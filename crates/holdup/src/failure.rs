//! How a command ends: exit codes and the one line that says why.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use crate::secret::redact_arguments;

/// Any end of a command other than success.
#[derive(Debug)]
pub enum Failure {
    /// The answer is "no": an objective was missed, or --fail-on-finding saw a culprit. Exit 1.
    No(String),
    /// Unusable input or target: nothing was measured, or a search found no answer. Exit 2.
    Unusable(String),
    /// Interrupted; the recording so far is kept. Exit 130.
    Interrupted,
}

impl Failure {
    /// Unusable because of `error`.
    pub fn unusable(error: impl Display) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// Prints the reason to stderr and returns the exit code. The reason may repeat a wrong argument,
/// so secrets in it are redacted.
pub fn exit(result: Result<(), Failure>, arguments: &[OsString]) -> ExitCode {
    let style = crate::terminal::style::AnsiColor::Red.on_default().bold();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::No(why)) => {
            if !why.is_empty() {
                errln!("{}", redact_arguments(&why, arguments));
            }
            ExitCode::from(1)
        }
        Err(Failure::Unusable(why)) => {
            errln!("{style}error:{style:#} {}", redact_arguments(&why, arguments));
            ExitCode::from(2)
        }
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}

/// Prints clap's message on the command line: help, or an error, which may repeat an argument.
pub fn arguments(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if error.use_stderr() {
        crate::terminal::print_error(&redact_arguments(&error.render().to_string(), arguments));
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
