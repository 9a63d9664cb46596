//! holdup beside its peers: the same load from each, paired, on the same machine, with what they cost and what they
//! say. This file is the table of contents; `bench/README.md` says what is measured how.

mod figures;
mod host;
mod lateness;
mod marks;
mod process;
mod report;
mod responder;
mod results;
mod runner;
mod scenarios;
mod servers;
mod session;
mod system;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// holdup beside its peers.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the tools beside each other and write results, raw texts and a report
    Peers(session::Options),
    /// Make the report of a folder of results again
    Report {
        /// The folder
        folder: PathBuf,
    },
    /// The bundled server
    Responder(responder::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Peers(options) => session::run(&options),
        Command::Report { folder } => session::report(&folder),
        Command::Responder(options) => responder::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
