//! Exams on data that nobody here wrote: how often the judge of counters is right. `cargo xtask eval` is the way to call
//! it. Labels only score; nothing is trained on them but the baselines that are printed beside.

#![forbid(unsafe_code)]

mod dbpa;
mod dbsherlock;
mod frozen;
mod neighbor;
mod options;
mod report;
mod sap_hana;
mod score;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use crate::options::Options;

/// Scores the judge of counters on public cases, whose labels it never saw.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask eval", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    exam: Exam,
}

#[derive(Debug, Subcommand)]
enum Exam {
    /// MySQL with one of eight anomalies or none, five-second rows, beside normal runs of the same hardware.
    Dbpa {
        /// A folder with labels.csv and a Parquet file for each class and hardware.
        dir: PathBuf,
        #[command(flatten)]
        options: Options,
    },
    /// A database's own performance tests over its builds: whether the gate of a history finds the regressions, and when.
    SapHana {
        /// A folder with metadata/dataset_details.csv and data/.
        dir: PathBuf,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// MySQL under TPC-C with an injected fault, one-second rows: episodes given, and found by holdup itself.
    Dbsherlock {
        /// A folder with labels.csv and the tables it names.
        dir: PathBuf,
        #[command(flatten)]
        options: Options,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    match Cli::parse().exam {
        Exam::Dbpa { dir, options } => dbpa::run(folder(&dir)?, &options),
        Exam::SapHana { dir, json } => sap_hana::run(folder(&dir)?, json),
        Exam::Dbsherlock { dir, options } => dbsherlock::run(folder(&dir)?, &options),
    }
}

/// The folder of a set, which must be there.
fn folder(dir: &std::path::Path) -> Result<&std::path::Path> {
    if !dir.is_dir() {
        bail!("{} is not a folder; give the one of the set, with labels.csv in it", dir.display());
    }
    Ok(dir)
}
