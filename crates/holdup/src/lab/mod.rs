//! Runs the labs: incidents on real servers, each with a faulty, a fixed and a decoy variant. A lab
//! is a folder whose `lab.yaml` says what to install, set up, start, wait for, watch and stop. This
//! module executes it and knows no lab by name, so a new lab needs no code. It sends no load and
//! judges nothing: the `lab` command does, with the contents of an [`Act`].
//!
//! - `library`: finds the labs.
//! - `definition`, `fields`: parse a `lab.yaml`.
//! - `placeholder`: `{port.db}`, `{dir}` and the like.
//! - `stage`: the variants' common folder, ports and setup. `act`: one variant's processes.
//! - `process`, `ready`: one process, from its start to its guaranteed end.
//! - `expected`, `recovered`: compare a variant's diagnosis with the lab's expectation.
//!
//! No failure holds a secret of the lab: quoted ends of logs have passed `Scope::redact`.

mod act;
mod command;
mod definition;
mod ending;
pub mod expected;
mod fields;
mod library;
mod placeholder;
mod process;
mod ready;
pub mod recovered;
mod signal;
mod stage;
#[cfg(test)]
mod tests;

pub use definition::{Expect, Lab};
pub use ready::{accepts, answers_200};
#[allow(unused_imports, reason = "what the functions of `Lab` give; a caller need not name them")]
pub use {act::Act, definition::Variant, stage::Stage};

use std::path::PathBuf;

use crate::failure::Failure;

/// The failure of `doing` something with a file or folder of a lab: `read`, `make`, …
fn cannot(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.into();
    move |error| Failure::Unusable(format!("failed to {doing} {}: {error}", path.display()))
}
