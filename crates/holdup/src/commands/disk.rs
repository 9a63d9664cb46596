//! `holdup disk`: the labs' throttled disk. Hidden; the library does all the work.

use std::process::Command;

pub use holdup_lab::disk::DiskOptions as Args;

use crate::failure::Failure;

/// Exit code by which a lab's `needs` asks a person to act.
const NEEDS: i32 = 3;

pub fn run(options: &Args) -> Result<(), Failure> {
    let mut again = Command::new(std::env::current_exe().map_err(Failure::unusable)?);
    again.args(std::env::args_os().skip(1));
    holdup_lab::disk::run(options, again).map_err(|error| {
        if error.is_need() {
            if !error.is_said() {
                errln!("{error}");
            }
            std::process::exit(NEEDS);
        }
        Failure::unusable(error)
    })
}
