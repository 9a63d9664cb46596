//! Runs the labs: incidents on real servers, each with a faulty, a fixed and a decoy variant. A lab is a folder with a
//! `lab.yaml` that says what to install, set up, start, wait for, watch and stop; this module carries it out and knows
//! no lab by name, so that adding one touches no code. It puts no load on anything and judges nothing: the `lab` command
//! does, with what an [`Act`] hands it.
//!
//! - `library`: where labs lie, and which there are.
//! - `definition`, `fields`: what a `lab.yaml` may say.
//! - `placeholder`: `{port.db}`, `{dir}` and the like.
//! - `stage`: what the variants share: folder, ports, setup. `act`: one variant's processes.
//! - `process`, `ready`: one process, from its start to its certain end.
//! - `expected`, `recovered`: whether a variant's diagnosis is what the lab expects.

mod act;
mod definition;
mod error;
pub mod expected;
mod fields;
mod library;
mod placeholder;
mod process;
mod ready;
pub mod recovered;
mod stage;
#[cfg(test)]
mod tests;

pub use definition::Lab;
pub use error::LabError;
pub use ready::{accepts, answers_200};
#[allow(unused_imports, reason = "what the functions of `Lab` give; a caller need not name them")]
pub use {act::Act, definition::Variant, stage::Stage};
