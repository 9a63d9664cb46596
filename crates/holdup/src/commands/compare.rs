//! `holdup compare`: shows recordings side by side, and which differences are proven.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use holdup_compare::recordings::{Change, Comparison, Group, Options, Run, groups};
use holdup_compare::statements::{self, CompareOptions, Report as Statements, Verdict};
use holdup_diagnose::{CHOICE, Diagnosis, diagnose};
use holdup_recording::{Recording, files};
use holdup_signals::Window;

use super::compare_groups::{NamedGroup, read};
use super::store::fetched::Inputs;
use super::window::{WindowArgs, range};
use super::{LARGEST_BYTES, compare_history, print_json};
use crate::failure::Failure;
use crate::html::Report;
use crate::replay::REPLAY;
use crate::{markdown, terminal};

/// Compare recordings: what is better, worse, or undecided
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup compare recordings/before recordings/after
  holdup compare puma=recordings/puma falcon=recordings/falcon pool=recordings/fibre-pool
  holdup compare old=rec/old-1,rec/old-2,rec/old-3 new=rec/new-1,rec/new-2,rec/new-3
  holdup compare clickhouse://reader@db7/holdup/before recordings/after
  holdup compare recordings/monday recordings/tuesday --from 14:05 --to 14:20   the same time of each
  holdup compare recordings/ab                       the result of holdup run --interleave
  holdup compare before after --markdown > pull-request.md
  holdup compare main branch --fail-on worse --quiet
  holdup compare --history recordings/nightly        which build made it worse for good, if any
  holdup compare --history recordings/nightly --since v1.42 --fail-on worse
  holdup compare --statements recordings/upgrade     the result of holdup replay to two servers
  holdup compare --statements old=rec/old-1,rec/old-2 new=rec/new-1,rec/new-2   replays of one log

The first is the baseline. One recording of each shows only large differences, because a single run cannot show the spread
between runs. Five interleaved repeats of each find a change of 10 %.

Exit codes: 0 compared, 1 something is worse and --fail-on worse was given, 2 unusable input.")]
pub struct Args {
    /// Recording, folder of repeats, or address in a store; the first is the baseline
    #[arg(value_name = "[NAME=]PATH[,PATH…]", required = true)]
    recordings: Vec<String>,

    /// Read the recordings as builds in order of time: what got worse or better for good, and since which build
    #[arg(long, conflicts_with_all = ["statements", "markdown", "html"])]
    history: bool,

    /// Begin the history with this recording, e.g. after a change that is meant to stay
    #[arg(long, value_name = "NAME", requires = "history")]
    since: Option<String>,

    /// Compare by statement the two servers of a holdup replay; repeats are rounds
    #[arg(long, conflicts_with_all = ["markdown", "html"])]
    statements: bool,

    /// Compare the mix's concurrency with what the new server carries, in statements, e.g. 12
    #[arg(long, value_name = "N", requires = "statements", value_parser = carries)]
    carries: Option<f64>,

    /// Print all rows, also those without a difference
    #[arg(long)]
    all: bool,

    /// Print the comparison as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown, e.g. for a pull request
    #[arg(long)]
    markdown: bool,

    /// Write the comparison as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Exit with 1 if a headline figure is worse than the baseline
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    window: WindowArgs,

    /// Compare although the measuring machines have different CPUs
    #[arg(long)]
    across_machines: bool,

    /// Print only errors
    #[arg(short, long, conflicts_with_all = ["json", "markdown"])]
    quiet: bool,
}

/// The differences that make the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A headline figure is worse than the baseline.
    Worse,
}

/// Reads a number of concurrent statements.
pub(super) fn carries(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0, e.g. 12 or 2.5".to_owned())
}

/// Compares two servers that played one log, statement by statement. Rounds that only one of them
/// played are left out.
///
/// # Errors
/// If a recording cannot be read, or there is nothing that both have played.
pub(super) fn by_statements(old: &NamedGroup, new: &NamedGroup, carries: Option<f64>) -> Result<Statements, Failure> {
    let played = |of: &NamedGroup, round: Option<u32>| of.recordings.iter().any(|(_, other)| *other == round);
    let both = |round: Option<u32>| round.is_none() || played(old, round) && played(new, round);
    let open = |of: &NamedGroup| {
        let mut paths: Vec<_> = of.recordings.iter().filter(|(_, round)| both(*round)).collect();
        // Without rounds they keep the order of the command line.
        paths.sort_by_key(|(_, round)| *round);
        paths
            .into_iter()
            .map(|(path, _)| Recording::open(path).map_err(Failure::unusable))
            .collect::<Result<Vec<_>, _>>()
    };
    let (olds, news) = (open(old)?, open(new)?);
    // Without texts, statements are named by their digests.
    let texts = |(path, _): &(PathBuf, Option<u32>)| -> Option<BTreeMap<String, String>> {
        let facts: serde_json::Value =
            serde_json::from_slice(&files::read(&path.join(REPLAY), LARGEST_BYTES).ok()?).ok()?;
        serde_json::from_value(facts.get("texts")?.clone()).ok()
    };
    let texts = old.recordings.first().and_then(texts).unwrap_or_default();
    let known = CompareOptions { texts, carries };
    statements::compare((&old.name, &olds), (&new.name, &news), &known).map_err(Failure::Unusable)
}

fn print_statements(args: &Args) -> Result<(), Failure> {
    let named = read(&args.recordings)?;
    let [old, new] = named.as_slice() else {
        return Err(Failure::Unusable(format!(
            "--statements compares two servers, the old one and the new one; you named {}",
            named.len()
        )));
    };
    let report = by_statements(old, new, args.carries)?;
    match () {
        () if args.json => print_json(&report)?,
        () if args.quiet => {}
        () => terminal::print(&terminal::statements(&report, args.all)),
    }
    let is_worse = report.statements.iter().any(|s| s.change.verdict == Verdict::Slower || s.differs.is_some());
    if args.fail_on == Some(FailOn::Worse) && is_worse {
        return Err(Failure::No(report.prediction.text));
    }
    Ok(())
}

fn print_history(args: &Args, inputs: &Inputs) -> Result<(), Failure> {
    let options = Options { across_machines: args.across_machines };
    let found = compare_history::read(inputs, args.since.as_deref(), options)?;
    match () {
        () if args.json => print_json(&found)?,
        () if args.quiet => {}
        () => terminal::print(&terminal::history(&found, args.all)),
    }
    match (args.fail_on, found.verdict) {
        (Some(FailOn::Worse), Change::Worse) => Err(Failure::No(found.headline)),
        (Some(FailOn::Worse), Change::NotComparable) => Err(Failure::Unusable(found.headline)),
        _ => Ok(()),
    }
}

/// The recording in `dir`, and its part to compare if not all.
fn opened(dir: &Path, window: &WindowArgs) -> Result<(Recording, Option<Window>), Failure> {
    let window = window.of(&Recording::manifest(dir).map_err(Failure::unusable)?)?;
    let recording = match window {
        Some(part) => Recording::open_excerpt(dir, Some(range(part)), &CHOICE),
        None => Recording::open(dir),
    };
    Ok((recording.map_err(Failure::unusable)?, window))
}

pub fn run(mut args: Args) -> Result<(), Failure> {
    if args.window.is_given() && (args.statements || args.history) {
        let why = "--from, --to and --last compare recordings; leave out --statements and --history";
        return Err(Failure::Unusable(why.to_owned()));
    }
    let inputs = Inputs::fetch(&args.recordings, &args.window)?;
    args.recordings.clone_from(&inputs.texts);
    if args.statements {
        return print_statements(&args);
    }
    if args.history {
        return print_history(&args, &inputs);
    }
    let named = read(&args.recordings)?;
    let mut shown: Vec<(String, Recording, Diagnosis)> = Vec::new();
    let mut all: Vec<Group> = Vec::new();
    for NamedGroup { name, recordings } in named {
        let mut runs = Vec::new();
        for (path, round) in recordings {
            let (recording, window) = opened(&path, &args.window)?;
            let diagnosis = diagnose(&recording, window);
            runs.push(Run::from_window(inputs.shown(&path), &recording, window, &diagnosis, round));
            if args.html.is_some() && runs.len() == 1 {
                shown.push((name.clone(), recording, diagnosis));
            }
        }
        all.push(Group { name, runs });
    }
    let comparison = groups(&all, Options { across_machines: args.across_machines });
    if let Some(path) = &args.html {
        let title = all.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(" and ");
        let runs: Vec<_> = shown.iter().map(|(name, r, d)| (name.as_str(), r, d)).collect();
        Report::new(&title, &runs, Some(&comparison)).write(path)?;
    }
    match () {
        () if args.json => print_json(&comparison)?,
        () if args.markdown => terminal::print(&markdown::comparison(&comparison, args.all)),
        () if args.quiet => {}
        () => terminal::print(&terminal::comparison(&comparison, args.all)),
    }
    conclude(&comparison, args.fail_on)
}

fn conclude(comparison: &Comparison, fail_on: Option<FailOn>) -> Result<(), Failure> {
    if fail_on == Some(FailOn::Worse) && comparison.is_any_worse() {
        let headlines = comparison.columns.iter().filter_map(|column| column.headline.clone());
        return Err(Failure::No(headlines.collect::<Vec<_>>().join("\n")));
    }
    if fail_on.is_some() && !comparison.is_any_comparable() {
        let headlines = comparison.columns.iter().filter_map(|column| column.headline.clone());
        return Err(Failure::Unusable(headlines.collect::<Vec<_>>().join("\n")));
    }
    Ok(())
}
