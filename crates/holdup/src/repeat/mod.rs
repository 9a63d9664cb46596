//! Plays the same load several times in a fair order, with a command between runs that may switch
//! versions: the common part of `holdup run --repeat`, `--interleave`, `holdup replay` to two
//! servers and `holdup capacity`. The commands decide what is played and judged.

pub mod interleave;
pub mod order;
pub mod quota;
pub mod switch;

use std::path::Path;

use holdup_recording::clock;
use holdup_recording::folder::Folder;

use crate::failure::Failure;

/// The seed of the order: the given one, or one that is drawn now.
pub fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| clock::now_ns().unsigned_abs() % 1_000_000)
}

/// The folder of all recordings, made if it is missing.
///
/// # Errors
/// If it cannot be made.
pub fn folder(dir: &Path) -> Result<Folder, Failure> {
    Folder::create(dir).map_err(|error| Failure::Unusable(format!("{}: {error}", dir.display())))
}
