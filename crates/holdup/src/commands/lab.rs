//! `holdup lab`: plays an incident on real servers, variant by variant.

mod by_hand;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_compare::recordings;
use holdup_diagnose::Diagnosis;
use holdup_load::scenario::Scenario;
use holdup_recording::Recording;

use super::{Output, REPORT, SLOW, demonstrate, duration, print_json, where_it_is};
use crate::failure::Failure;
use crate::html::Report;
use crate::lab::{Lab, Stage, Variant, expected, recovered};
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::session::{self, Session};
use crate::terminal;

/// Reproduce an incident on real servers: faulty, fixed, and a decoy
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup lab                               list the labs
  holdup lab hidden-queue
  holdup lab hidden-queue --variant faulty --json
  holdup lab hidden-queue --by-hand

A lab installs the servers it needs with apt if it may; otherwise it says what to install. The servers
listen on free loopback ports, keep their data in a temporary folder, and are stopped at the end. Labs with
a slow disk or a document store need a holdup built with the feature `labs`: in the clone, cargo lab NAME.")]
pub struct Args {
    /// Lab; lists all without one
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Run only this variant; repeatable [default: all]
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,

    /// Also record with standard tools alone (top, iostat, SHOW STATUS …), and judge what they show
    #[arg(long, requires = "name")]
    by_hand: bool,

    /// Folder of the labs [default: labs/ here or above the program]
    #[arg(long, value_name = "DIR")]
    labs: Option<PathBuf>,

    /// Time between samples [default: the lab's, or 500ms]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    interval: Option<Duration>,

    #[command(flatten)]
    output: Output,
}

/// The time between samples if neither the user nor the lab sets it.
const INTERVAL: Duration = Duration::from_millis(500);

/// A variant that was played: its name, its recording and the diagnosis of that.
type Played = (String, Recording, Diagnosis);

pub fn run(args: Args) -> Result<(), Failure> {
    let Some(name) = &args.name else { return list(&args) };
    let lab = Lab::find(name, args.labs.as_deref())?;
    args.variant.iter().try_for_each(|wanted| lab.variant(wanted).map(drop))?;
    if args.by_hand {
        lab.check_by_hand()?;
    }
    let stop = crate::stop::stop_flag()?;
    let say = |text: &str| args.output.say(text);
    let dir = args.output.empty_dir(&lab.name)?;
    let stage = lab.set_up(&say, &stop)?;
    let interval = args.interval.or(lab.interval).unwrap_or(INTERVAL);
    let mut runs: Vec<Played> = Vec::new();
    let mut wrong = Vec::new();
    for variant in lab.variants.iter().filter(|v| args.variant.is_empty() || args.variant.contains(&v.name)) {
        say(&format!("{}: {}", variant.name, variant.title));
        let place = dir.join(&variant.name);
        let as_expected = |d: &Diagnosis| expected::unexpected(&variant.expect, d).is_none();
        let (recording, diagnosis) = demonstrate(&place, &say, as_expected, || {
            let how = Play { dir: &place, interval, by_hand: args.by_hand, is_quiet: args.output.quiet };
            play(&stage, &variant.name, &how, &say, &stop)
        })?;
        let mut unexpected = strayed(variant, &diagnosis, &runs, &say);
        if args.by_hand {
            unexpected.extend(by_hand::judge(&place, &variant.expect, &say)?);
        }
        wrong.extend(unexpected.iter().map(|what| format!("{}: {what}", variant.name)));
        if !args.output.json {
            outln!("{}", terminal::brief(&diagnosis, Some(&recording.dir)));
        }
        runs.push((variant.name.clone(), recording, diagnosis));
    }
    report(&lab, &runs, &dir, args.output.json)?;
    if wrong.is_empty() { Ok(()) } else { Err(Failure::No(format!("not as the lab expects: {}", wrong.join("; ")))) }
}

/// How a variant is recorded.
struct Play<'a> {
    /// The recording's folder.
    dir: &'a Path,
    /// Time between samples.
    interval: Duration,
    /// Whether standard tools record it too.
    by_hand: bool,
    is_quiet: bool,
}

/// Plays a variant once, and records it.
fn play(
    stage: &Stage<'_>,
    variant: &str,
    how: &Play<'_>,
    say: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Recorded, Failure> {
    let mut act = stage.start(variant, say, stop)?;
    let paste = how.by_hand.then(|| stage.start_by_hand(&mut act, variant, say, stop)).transpose()?;
    let file = act.scenario_file.display().to_string();
    let scenario = Scenario::parse(&act.scenario, &file).map_err(Failure::unusable)?;
    let mut progress = Progress::new(how.is_quiet, Some(scenario.load.length()));
    let watched = Session::new(variant, &act.watch, how.interval, how.dir);
    let session = Session { scenario: Some(&scenario), slow: Some(SLOW), ..watched };
    let recorded = session::record(&session, &mut progress, stop)?;
    let dead = act.dead();
    if let Some(paste) = paste {
        by_hand::keep(&paste, how.dir)?;
    }
    act.stop();
    match dead {
        Some(dead) if !recorded.interrupted => Err(Failure::Unusable(format!("{variant}: {dead}"))),
        _ => Ok(recorded),
    }
}

/// How a variant's diagnosis is not as the lab expects, by itself and beside the `runs` before it.
fn strayed(variant: &Variant, diagnosis: &Diagnosis, runs: &[Played], say: &dyn Fn(&str)) -> Vec<String> {
    let mut all: Vec<String> = expected::unexpected(&variant.expect, diagnosis).into_iter().collect();
    if let Some(recover) = &variant.expect.recovered {
        match runs.iter().find(|(name, ..)| *name == recover.against) {
            Some((_, _, baseline)) => {
                all.extend(recovered::strayed(&baseline.ledger, &diagnosis.ledger, &recover.places));
            }
            None => say(&format!("{}: not compared with {}, which was not run", variant.name, recover.against)),
        }
    }
    if let Some(knee) = &variant.expect.knee {
        let other = knee.above.as_ref().and_then(|above| runs.iter().find(|(name, ..)| name == above));
        if let (Some(above), None) = (&knee.above, other) {
            say(&format!("{}: its knee is not compared with that of {above}, which was not run", variant.name));
        }
        all.extend(expected::knee(diagnosis, other.map(|(name, _, d)| (name.as_str(), d))));
    }
    all
}

/// Writes the report of all variants, and prints how they compare.
fn report(lab: &Lab, runs: &[Played], dir: &Path, is_json: bool) -> Result<(), Failure> {
    let shown: Vec<_> = runs.iter().map(|(name, recording, diagnosis)| (name.as_str(), recording, diagnosis)).collect();
    // Searches choose their own rates, so they are compared only with each other.
    let (searches, offered): (Vec<_>, Vec<_>) = shown.iter().copied().partition(|(_, _, d)| d.search.is_some());
    let comparisons: Vec<_> = [("comparison", offered), ("comparison_of_searches", searches)]
        .into_iter()
        .filter(|(_, runs)| runs.len() > 1)
        .map(|(key, runs)| (key, recordings::recordings(&runs)))
        .collect();
    let report = dir.join(REPORT);
    Report::new(&lab.title, &shown, comparisons.first().map(|(_, comparison)| comparison)).write(&report)?;
    if is_json {
        let mut all: serde_json::Map<String, serde_json::Value> = runs
            .iter()
            .map(|(name, _, diagnosis)| Ok((name.clone(), serde_json::to_value(diagnosis).map_err(Failure::unusable)?)))
            .collect::<Result<_, Failure>>()?;
        for (key, comparison) in &comparisons {
            all.insert((*key).to_owned(), serde_json::to_value(comparison).map_err(Failure::unusable)?);
        }
        return print_json(&all);
    }
    for (_, comparison) in &comparisons {
        terminal::print(&terminal::comparison(comparison, false));
    }
    where_it_is(dir, Some(&report));
    Ok(())
}

fn list(args: &Args) -> Result<(), Failure> {
    let labs = Lab::all(args.labs.as_deref())?;
    if labs.is_empty() {
        return Err(Failure::Unusable(
            "no labs found; run this in a checkout of holdup, or name the folder with --labs".to_owned(),
        ));
    }
    if args.output.json {
        let all: Vec<_> = labs.iter().map(|l| serde_json::json!({"name": l.name, "title": l.title})).collect();
        return print_json(&all);
    }
    let widest = labs.iter().map(|lab| lab.name.len()).max().unwrap_or(0);
    for lab in labs {
        outln!("{:<widest$}  {}", lab.name, lab.title);
    }
    Ok(())
}
