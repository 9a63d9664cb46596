//! What every exam can be asked for.

use clap::Args;
use holdup_signals::time::counters::Family;

/// Flags of an exam.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
    /// Leave out what comes from a family of telemetry: host, sessions, locks, statements, storage, latency, settings. May be repeated.
    #[arg(long, value_name = "FAMILY", value_parser = family)]
    pub without: Vec<Family>,
    /// Score again without each family in turn.
    #[arg(long)]
    pub families: bool,
    /// Score again N times with every constant of the judge moved by up to a factor of 1.3, and report how far scores move.
    #[arg(long, value_name = "N")]
    pub jitter: Option<u64>,
    /// Print the accounts of the cases whose names begin so instead of scores: what spoke for each cause and what against.
    #[arg(long, value_name = "CASE")]
    pub show: Option<String>,
}

fn family(word: &str) -> Result<Family, String> {
    let names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    Family::ALL
        .into_iter()
        .find(|family| family.name() == word)
        .ok_or_else(|| format!("families are {}", names.join(", ")))
}
