//! The stranger bench: live faults drawn by seed, that no rule was made for. `cargo
//! xtask strangers` is the way to call it; docs/strangers.md says what a draw is.

mod draw;
mod env;
mod faults;
mod kinds;
mod load;
mod random;
mod scenario;
mod statements;
mod topology;

use std::ops::Range;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::draw::Draw;

/// Play faults that no rule was made for, and score the judge on them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask strangers")]
struct Cli {
    /// Seeds of draws; below 1000 they are for learning
    #[arg(long, value_name = "FROM..TO", default_value = "0..82", value_parser = seeds)]
    seeds: Range<u64>,

    /// Print the draws
    #[arg(long)]
    list: bool,

    /// Print the kinds of faults as a table for docs/strangers.md
    #[arg(long)]
    kinds: bool,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not FROM..TO, e.g. 1000..1082");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if cli.kinds {
        print!("{}", kinds::table());
        return Ok(());
    }
    if cli.list {
        cli.seeds.clone().for_each(|seed| println!("{}", Draw::new(seed)));
        return Ok(());
    }
    Ok(())
}
