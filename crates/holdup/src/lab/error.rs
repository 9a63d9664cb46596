//! Errors of labs, in words that say what to do. No message holds a secret of the lab: quoted ends
//! of logs have passed `Scope::redact`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use holdup_load::yaml::YamlError;

use super::ending::Ending;

/// Why a lab could not be read, set up or started.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// `lab.yaml` or the scenario is not valid.
    #[error(transparent)]
    Definition(#[from] YamlError),

    /// No lab has that name.
    #[error("no lab is called \"{name}\"; {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name and all names; or the folders that were searched.
        hint: String,
    },

    /// The lab has no such variant.
    #[error("lab {lab} has no variant \"{variant}\"; {hint}")]
    UnknownVariant {
        /// The lab.
        lab: String,
        /// The requested name.
        variant: String,
        /// The nearest name, and all of the lab's variants.
        hint: String,
    },

    /// The lab does not say how it is recorded by standard tools.
    #[error("lab {lab} cannot be recorded by hand: its lab.yaml has no \"by_hand\"; run it without --by-hand")]
    NotByHand {
        /// The lab.
        lab: String,
    },

    /// Something must be installed first.
    #[error("lab {lab} needs what is not installed here:\n{text}")]
    Needs {
        /// The lab.
        lab: String,
        /// The checking command's output: what is missing and how to install it.
        text: String,
    },

    /// A command of `needs`, `setup` or `then` failed.
    #[error("{what} failed: \"{command}\" {ending}{log}")]
    Command {
        /// The part of the lab: `setup of hidden-queue`.
        what: String,
        /// The command, as it was run.
        command: String,
        /// How it ended.
        ending: Ending,
        /// The end of its output.
        log: String,
    },

    /// A command of `needs`, `setup` or `then` took too long and was ended.
    #[error("{what} took longer than {within:?} and was ended: \"{command}\"{log}")]
    CommandTooLong {
        /// The part of the lab.
        what: String,
        /// The command, as it was run.
        command: String,
        /// The time limit.
        within: Duration,
        /// The end of its output.
        log: String,
    },

    /// A program could not be started at all.
    #[error("failed to start {what}: \"{program}\": {source}; is it installed, and on the path?")]
    Start {
        /// The process or the part of the lab.
        what: String,
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },

    /// A process ended before it was ready.
    #[error("{process} {ending} before it was ready{log}")]
    Died {
        /// The process, by its name in `lab.yaml`.
        process: String,
        /// How it ended.
        ending: Ending,
        /// The end of its log.
        log: String,
    },

    /// A process was not ready in time.
    #[error("{process} was not ready within {within:?}: it still lacks {waited_for}{log}")]
    NotReady {
        /// The process, by its name in `lab.yaml`.
        process: String,
        /// The sign of readiness it waited for.
        waited_for: String,
        /// The time limit.
        within: Duration,
        /// The end of its log.
        log: String,
    },

    /// A port that was free when the lab was set up has been taken.
    #[error("port.{name}: another program has taken port {port} of 127.0.0.1 meanwhile; run the lab again")]
    PortTaken {
        /// Its name in `lab.yaml`.
        name: String,
        /// The port.
        port: u16,
    },

    /// A process refers to another that does not run.
    #[error("variant {variant}: {what} refers to {{pid.{process}}}, which is not started before it")]
    NotStarted {
        /// The variant.
        variant: String,
        /// The part that refers to it.
        what: String,
        /// The process that would have to run.
        process: String,
    },

    /// A file or folder could not be read or created.
    #[error("failed to {doing} {}: {source}", path.display())]
    File {
        /// `read`, `make`, …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// No free ports on loopback.
    #[error("failed to find free ports on 127.0.0.1: {0}")]
    Ports(io::Error),

    /// The user asked the lab to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    pub(super) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
