//! How a command ends: exit codes and the one line that says why.

use std::ffi::OsString;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::No(why) | Self::Unusable(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// The result of `command`. A panic of its own thread, e.g. in a reader of a file, is an unusable
/// input like any other: exit code 2, and what is on disk stays readable.
pub fn guarded(command: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(command))
        .unwrap_or_else(|_| Err(Failure::Unusable("holdup panicked, see above; please report this".to_owned())))
}

/// Prints the reason to stderr and returns the exit code. The reason may repeat a wrong argument,
/// so secrets in it are redacted.
pub fn exit(result: Result<(), Failure>, arguments: &[OsString]) -> ExitCode {
    let code = say(result, arguments);
    crate::terminal::outlet::flush();
    code
}

fn say(result: Result<(), Failure>, arguments: &[OsString]) -> ExitCode {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_reader_is_in_the_exit_code() {
        let result = guarded(|| panic!("on purpose"));
        assert!(matches!(&result, Err(Failure::Unusable(why)) if why.contains("report")), "{result:?}");
        assert_eq!(format!("{:?}", exit(result, &[])), format!("{:?}", ExitCode::from(2)));
    }
}
