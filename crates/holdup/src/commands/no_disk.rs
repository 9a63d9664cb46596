//! `holdup disk` without the feature `labs`: it says how to get the disk.

use crate::failure::Failure;

/// Exit code by which a lab's `needs` asks a person to act.
const NEEDS: i32 = 3;

/// Accepts any arguments that the disk would accept.
#[derive(clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

pub fn run(_: &Args) -> Result<(), Failure> {
    errln!(
        "this holdup is built without the labs' slow disk and document store (FUSE and LMDB); in the clone, run: cargo lab NAME"
    );
    std::process::exit(NEEDS)
}
