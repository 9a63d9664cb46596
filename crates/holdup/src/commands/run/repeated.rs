//! `holdup run --repeat` and `--interleave`: plays the same load several times, on one version or
//! on several that a command switches between, in a fair order. `compare` evaluates the runs.

use std::path::PathBuf;

use holdup_compare::recordings::{Group, Options, Run, groups};
use holdup_load::scenario::Scenario;

use super::super::print_json;
use super::{Args, outcome, say_notes};
use crate::failure::Failure;
use crate::repeat::interleave::{Interleave, Turn, checked_name, prefix_failure};
use crate::repeat::order::balanced;
use crate::repeat::switch::SwitchArgs;
use crate::{repeat, terminal};

/// Default repeats of interleaved versions: a useful interval takes this many.
const REPEATS: u32 = 5;

/// Most repeats.
const MOST: i64 = 1_000;

#[derive(clap::Args)]
#[command(next_help_heading = "More than once")]
pub struct RepeatArgs {
    /// Play it this many times, each version with --interleave [default: 1, or 5 with --interleave]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST), conflicts_with_all = ["out", "metrics", "shard", "start_at", "store"])]
    repeat: Option<u32>,

    /// Compare versions in turns, each with the sh command that switches to it
    #[arg(long, value_name = "NAME=COMMAND", num_args = 1.., value_parser = version, conflicts_with_all = ["out", "metrics", "shard", "start_at", "store"])]
    interleave: Vec<Version>,

    /// Seed of the order in which versions are played
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,

    #[command(flatten)]
    switch: SwitchArgs,
}

/// A version to measure, and the command that switches to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    name: String,
    /// None if the version already runs.
    command: Option<String>,
}

fn version(text: &str) -> Result<Version, String> {
    let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND, e.g. 'after=./deploy.sh v2'")?;
    let name = checked_name(name).map_err(|why| format!("{why}, e.g. 'v1.2=./deploy.sh v1.2'"))?;
    if command.trim().is_empty() {
        return Err(format!(
            "{name} has no command: give the one that switches to it, or `true` if there is nothing to do"
        ));
    }
    Ok(Version { name: name.to_owned(), command: Some(command.to_owned()) })
}

impl RepeatArgs {
    /// The versions and how often to measure each; none for a single run.
    pub fn versions(&self) -> Result<Option<(Vec<Version>, u32)>, Failure> {
        let names: Vec<&str> = self.interleave.iter().map(|version| version.name.as_str()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Failure::Unusable(format!("--interleave: two versions are called {}", twice.1)));
        }
        match (&self.interleave[..], self.repeat) {
            ([], None | Some(1)) => Ok(None),
            ([], Some(rounds)) => Ok(Some((Vec::new(), rounds))),
            ([one], _) => Err(Failure::Unusable(format!(
                "--interleave: {} alone cannot be compared; name another version: 'A=COMMAND' 'B=COMMAND'",
                one.name
            ))),
            (several, rounds) => Ok(Some((several.to_vec(), rounds.unwrap_or(REPEATS)))),
        }
    }
}

/// Plays all runs. `first` is the checked scenario.
pub fn run(args: &Args, first: &Scenario, (versions, rounds): &(Vec<Version>, u32)) -> Result<(), Failure> {
    let repeats = &args.repeats;
    let one = [Version { name: folder(&first.name), command: None }];
    let versions = if versions.is_empty() { &one[..] } else { &versions[..] };
    let stop = crate::stop::stop_flag()?;
    let dir = args.output.empty_dir(&first.name)?;
    let held = repeat::folder(&dir)?;
    say_notes(args, first);
    let say = |text: &str| args.output.say(text);
    let seed = repeat::seed(repeats.order_seed);
    let order = balanced(versions.len(), *rounds, seed);
    let turns: Vec<&str> = order.iter().map(|(_, which)| versions[*which].name.as_str()).collect();
    if versions.len() > 1 {
        say(&format!("{} runs: {} (order drawn by --order-seed {seed})", order.len(), turns.join(" ")));
    }
    let names = versions.iter().map(|version| version.name.clone()).collect();
    let mut done = Interleave { order: Vec::new(), versions: names, seed, scenario: first.name.clone() };
    let mut measured: Vec<Group> =
        versions.iter().map(|version| Group { name: version.name.clone(), runs: Vec::new() }).collect();
    let mut ended = Ok(());
    for (at, (round, which)) in order.iter().enumerate() {
        let version = &versions[*which];
        let path = format!("{}-{round}", version.name);
        let what = format!("{} of round {round}", version.name);
        say(&format!("run {} of {}: {}, round {round}", at + 1, order.len(), version.name));
        let switched = repeats.switch.switch(&version.name, version.command.as_deref(), &first.target, &held, &stop);
        let quiet = args.output.quiet;
        let played = switched.and_then(|()| args.scenario.play(&args.flags, |_| {}, &dir.join(&path), quiet, &stop));
        let outcome = played.and_then(|(recorded, diagnosis, reported)| {
            say(&format!("  {}", diagnosis.headline));
            // A run that was cut off cannot stand beside complete ones.
            if !recorded.interrupted && recorded.trouble.is_none() {
                let name = dir.join(&path).display().to_string();
                let course = recorded.recording.course().unwrap_or(&recorded.recording);
                let run = Run::from_recording(name, course, &diagnosis, Some(*round));
                measured[*which].runs.push(run);
                done.order.push(Turn { name: version.name.clone(), round: *round, path: PathBuf::from(path) });
                done.write(&held)?;
            }
            reported.and_then(|()| outcome(args, &recorded, &diagnosis))
        });
        match outcome {
            Ok(()) => {}
            Err(Failure::No(why)) => ended = merged(ended, &what, &why),
            Err(failure) => {
                ended = Err(prefix_failure(&what, failure));
                break;
            }
        }
    }
    measured.retain(|group| !group.runs.is_empty());
    if measured.is_empty() {
        return ended;
    }
    let comparison = groups(&measured, Options::default());
    if args.output.json {
        print_json(&comparison)?;
    } else {
        // A single version has no differences, so the user wants all measurements.
        terminal::print(&terminal::comparison(&comparison, measured.len() == 1));
        outln!("\nrecordings  {}", dir.display());
    }
    ended
}

/// Adds one run's failed check to the earlier ones: none of them ends the series.
fn merged(before: Result<(), Failure>, what: &str, why: &str) -> Result<(), Failure> {
    let before = match before {
        Err(Failure::No(text)) => text + "\n",
        _ => String::new(),
    };
    Err(Failure::No(format!("{before}{what}: {why}")))
}

/// A scenario's name as the name of a folder.
fn folder(name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect();
    if clean.is_empty() { "run".to_owned() } else { clean }
}
