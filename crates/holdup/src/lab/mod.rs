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

mod act;
mod command;
mod definition;
mod ending;
mod error;
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
pub use error::LabError;
pub use ready::{accepts, answers_200};
#[allow(unused_imports, reason = "what the functions of `Lab` give; a caller need not name them")]
pub use {act::Act, definition::Variant, stage::Stage};
