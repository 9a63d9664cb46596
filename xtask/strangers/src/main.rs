//! The stranger bench: live faults drawn by seed, that no rule was made for, and what the judge makes of them. `cargo
//! xtask strangers` is the way to call it; docs/strangers.md says what a draw is.

mod bench;
mod blame;
mod corpus;
mod draw;
mod edition;
mod env;
mod faults;
mod judge;
mod kinds;
mod ledger;
mod load;
mod ordinary;
mod play;
mod random;
mod report;
mod rules;
mod scenario;
mod score;
mod slice;
mod statements;
mod symptom;
mod topology;
mod trim;
mod truth;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::corpus::Corpus;
use crate::draw::{Dose, Draw};
use crate::ledger::{Ledger, Worth};
use crate::report::Table;
use crate::slice::Slice;
use crate::truth::Truth;

/// Play faults that no rule was made for, and score the judge on them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask strangers")]
struct Cli {
    /// Play the draws of these seeds; below 1000 they are for learning
    #[arg(long, value_name = "FROM..TO", default_value = "0..82", value_parser = seeds)]
    seeds: Range<u64>,

    /// Begin no draw after so many minutes
    #[arg(long, value_name = "MINUTES")]
    slice: Option<u64>,

    /// Play only draws with this fault
    #[arg(long, value_name = "FAULT")]
    only: Option<String>,

    /// Print the draws instead of playing them
    #[arg(long)]
    list: bool,

    /// Play this fault once, at an intensity of 0 to 1, into a corpus of trials that is never scored
    #[arg(long, value_name = "FAULT=INTENSITY", value_parser = dose)]
    try_out: Vec<Dose>,

    /// Score the judge on the corpus
    #[arg(long, conflicts_with_all = ["list", "try_out"])]
    score: bool,

    /// Score fresh seeds as well: they count for these rules, and are spent for others
    #[arg(long, requires = "score")]
    fresh: bool,

    /// Print each draw that clients felt with its answers, too
    #[arg(long, requires = "score")]
    each: bool,

    /// Print which verdicts moved since the rules whose hash begins so
    #[arg(long, value_name = "RULES", conflicts_with_all = ["list", "try_out", "score"])]
    blame: Option<String>,

    /// Print the kinds of faults as a table for docs/strangers/kinds.md
    #[arg(long)]
    kinds: bool,

    /// Play the cases of the ordinary service that are missing, and print how holdup judges each
    #[arg(long, conflicts_with_all = ["list", "try_out", "score", "blame"])]
    ordinary: bool,

    /// Only this case of the ordinary service
    #[arg(long, value_name = "NAME", requires = "ordinary")]
    case: Option<String>,

    /// Folder of corpus and state [default: target/strangers]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// The program under test, with the feature `labs` [default: beside this program]
    #[arg(long, value_name = "PROGRAM")]
    holdup: Option<PathBuf>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not FROM..TO, e.g. 1000..1082");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

fn dose(text: &str) -> Result<Dose, String> {
    let (name, intensity) = text.split_once('=').ok_or_else(|| format!("`{text}` is not FAULT=INTENSITY"))?;
    let fault = faults::by_name(name).ok_or_else(|| format!("no fault is called `{name}`; --kinds lists them"))?;
    let intensity: f64 = intensity.parse().map_err(|_| format!("`{intensity}` is not a number"))?;
    if !(0.0..=1.0).contains(&intensity) {
        return Err(format!("`{intensity}` is not between 0 and 1"));
    }
    Ok(Dose { fault: fault.name.to_owned(), intensity })
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().context("the checkout is gone")?;
    let dir = cli.dir.clone().unwrap_or_else(|| root.join("target/strangers"));
    let corpus = Corpus { folder: dir.join("corpus") };
    if cli.kinds {
        print!("{}", kinds::table());
        return Ok(());
    }
    if cli.list {
        cli.seeds.clone().for_each(|seed| println!("{}", Draw::new(seed)));
        return Ok(());
    }
    if cli.score {
        return score(&root, &dir, &corpus, cli);
    }
    if let Some(prefix) = &cli.blame {
        let draws = corpus.read()?;
        let (hash, before) = blame::kept(&dir.join("answers"), prefix)?;
        let now = judge::all(&draws)?;
        println!("rules {hash} -> {}", rules::hash(&root)?);
        print!("{}", blame::moved(&draws, &before, &now));
        return Ok(());
    }
    let holdup = play::program(cli.holdup.clone())?;
    if cli.ordinary {
        return ordinary::run(&root, &holdup, &dir.join("ordinary"), cli.case.as_deref());
    }
    if !cli.try_out.is_empty() {
        return try_out(&root, &holdup, &dir, cli);
    }
    let most = cli.slice.map(|minutes| Duration::from_secs(60 * minutes));
    let (seeds, only) = (cli.seeds.clone(), cli.only.clone());
    Slice { seeds, most, corpus, state: dir.join("played.jsonl"), only }.play(&root, &holdup)
}

/// Plays faults that were named, on the topology of a seed, and says what clients felt and what the judge says.
fn try_out(root: &Path, holdup: &Path, dir: &Path, cli: &Cli) -> Result<()> {
    let corpus = Corpus { folder: dir.join("trials") };
    let mut bench = bench::Bench::start(root, holdup)?;
    for (seed, dose) in (cli.seeds.start..).zip(&cli.try_out) {
        let draw = Draw::with(seed, vec![dose.clone()]);
        println!("{draw}");
        match play::play(&mut bench, &draw, &corpus) {
            Ok(play::Outcome::Skipped(why)) => println!("  skipped: {why}"),
            Ok(play::Outcome::Played(truth)) => {
                let symptom = &truth.symptom;
                let (ratio, wall, kib) = (symptom.ratio(), truth.wall_s, truth.bytes / 1_024);
                println!("  x {ratio:.2}, {:?} -> {:?}, {wall:.1} s, {kib} KiB", symptom.baseline, symptom.fault);
                let answers = judge::all(&[(corpus.draw(seed), *truth)])?;
                answers.iter().for_each(|(key, answer)| println!("  {key}: {answer:?}"));
            }
            Err(error) => {
                println!("  failed: {error:#}");
                drop(bench);
                bench = bench::Bench::start(root, holdup)?;
            }
        }
    }
    Ok(())
}

fn score(root: &Path, dir: &Path, corpus: &Corpus, cli: &Cli) -> Result<()> {
    let hash = rules::hash(root)?;
    println!("rules {hash}\n");
    let mut ledger = Ledger::read(&root.join("xtask/strangers/ledger.txt"))?;
    let draws = corpus.read()?;
    if cli.fresh {
        ledger.spend(draws.iter().map(|(_, truth)| truth.draw.seed), &hash)?;
    }
    let worth = |truth: &Truth| ledger.worth(truth.draw.seed, &hash);
    // Fresh seeds are not even judged: a verdict that was seen is a verdict that may be tuned on.
    let seen: Vec<(PathBuf, Truth)> = draws.iter().filter(|(_, t)| worth(t) != Worth::Fresh).cloned().collect();
    let answers = judge::all(&seen)?;
    blame::keep(&dir.join("answers"), &hash, &answers)?;
    let titles = [(Worth::Counts, "counts"), (Worth::Learning, "for learning"), (Worth::Spent, "spent on other rules")];
    for (kind, title) in titles {
        let chosen: Vec<&(PathBuf, Truth)> = seen.iter().filter(|(_, truth)| worth(truth) == kind).collect();
        if !chosen.is_empty() {
            let title = format!("{} draws, {title}", chosen.len());
            println!("{}", Table::new(chosen, &answers).text(&title));
        }
    }
    if cli.each {
        print!("{}", report::each(&seen, &answers));
    }
    if seen.len() < draws.len() {
        println!("{} fresh draws are not judged; --fresh scores them, once", draws.len() - seen.len());
    }
    Ok(())
}
