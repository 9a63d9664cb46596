//! What can go wrong with a lab, in words that say what to do about it. No message holds a secret of the lab: the ends
//! of logs that are quoted here have passed `Scope::redact`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use holdup_load::yaml::YamlError;

use super::process::Ending;

/// Why a lab could not be read, set up or started.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// `lab.yaml` or the scenario says something that is not understood.
    #[error(transparent)]
    Definition(#[from] YamlError),

    /// No lab is called that.
    #[error("there is no lab \"{name}\"; {hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name, and all there are; or where labs were looked for.
        hint: String,
    },

    /// The lab has no such variant.
    #[error("lab {lab} has no variant \"{variant}\"; {hint}")]
    UnknownVariant {
        /// The lab.
        lab: String,
        /// The name asked for.
        variant: String,
        /// The nearest, and all it has.
        hint: String,
    },

    /// Something has to be installed first.
    #[error("lab {lab} needs what is not installed here:\n{text}")]
    Needs {
        /// The lab.
        lab: String,
        /// What the command that looked for it said: what is missing and how to install it.
        text: String,
    },

    /// A command of `needs`, `setup` or `then` failed.
    #[error("{what} failed: \"{command}\" {ending}{log}")]
    Command {
        /// Which part of the lab: `setup of hidden-queue`.
        what: String,
        /// The command, as it was run.
        command: String,
        /// How it ended.
        ending: Ending,
        /// The end of what it wrote.
        log: String,
    },

    /// A command of `needs`, `setup` or `then` took too long and was ended.
    #[error("{what} took longer than {within:?} and was ended: \"{command}\"{log}")]
    CommandTooLong {
        /// Which part of the lab.
        what: String,
        /// The command, as it was run.
        command: String,
        /// The longest it may take.
        within: Duration,
        /// The end of what it wrote.
        log: String,
    },

    /// A program could not be started at all.
    #[error("failed to start {what}: \"{program}\": {source}; is it installed, and on the path?")]
    Start {
        /// The process or the part of the lab.
        what: String,
        /// The program.
        program: String,
        /// Why.
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
    #[error("{process} was not ready within {within:?}: waited for {waited_for}{log}")]
    NotReady {
        /// The process, by its name in `lab.yaml`.
        process: String,
        /// What would have shown that it is ready.
        waited_for: String,
        /// How long that may take.
        within: Duration,
        /// The end of its log.
        log: String,
    },

    /// A port that was free when the lab was set up is not any more.
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
        /// What refers to it.
        what: String,
        /// The process that would have to run.
        process: String,
    },

    /// A file or folder could not be read or made.
    #[error("failed to {doing} {}: {source}", path.display())]
    File {
        /// `read`, `make`, …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// No free ports on loopback.
    #[error("failed to find free ports on 127.0.0.1: {0}")]
    Ports(io::Error),

    /// Whoever runs the lab asked it to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    pub(super) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
