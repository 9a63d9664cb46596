//! The throttled disk as a separate program, for its tests and for trying things out. Labs use the
//! same code through `holdup disk`.

use std::process::{Command, ExitCode};

use clap::Parser;

/// A slow disk that tells the truth
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: holdup_lab::disk::DiskOptions,
}

fn main() -> ExitCode {
    let options = Cli::parse().options;
    let result = std::env::current_exe().map_err(|e| e.to_string()).and_then(|program| {
        let mut again = Command::new(program);
        again.args(std::env::args_os().skip(1));
        match holdup_lab::disk::run(&options, again) {
            Err(error) if error.is_need() => {
                if !error.is_said() {
                    eprintln!("{error}");
                }
                std::process::exit(3)
            }
            result => result.map_err(|e| e.to_string()),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
