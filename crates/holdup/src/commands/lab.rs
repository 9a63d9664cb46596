//! `holdup lab`: plays an incident on real servers, variant by variant.

mod by_hand;

use std::path::PathBuf;
use std::time::Duration;

use holdup_compare::recordings;
use holdup_diagnose::Diagnosis;
use holdup_load::scenario::Scenario;
use holdup_recording::{Limits, Recording};

use super::{Output, REPORT, SLOW, demonstrate, duration, print_json, where_it_is};
use crate::failure::Failure;
use crate::html::Report;
use crate::lab::{Lab, expected, recovered};
use crate::progress::Progress;
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

pub fn run(args: Args) -> Result<(), Failure> {
    let Some(name) = &args.name else { return list(&args) };
    let lab = Lab::find(name, args.labs.as_deref()).map_err(Failure::unusable)?;
    for wanted in &args.variant {
        if !lab.variants.iter().any(|v| v.name == *wanted) {
            let names: Vec<&str> = lab.variants.iter().map(|v| v.name.as_str()).collect();
            return Err(Failure::Unusable(format!(
                "{name} has no variant \"{wanted}\"; there are: {}",
                names.join(", ")
            )));
        }
    }
    let stop = crate::stop::stop_flag()?;
    let say = |text: &str| {
        if !args.output.quiet {
            errln!("{text}");
        }
    };
    let dir = args.output.empty_dir(&lab.name)?;
    let stage = lab.set_up(&say, &stop).map_err(lab_failure)?;
    let mut runs: Vec<(String, Recording, Diagnosis)> = Vec::new();
    let mut wrong = Vec::new();
    for variant in lab.variants.iter().filter(|v| args.variant.is_empty() || args.variant.contains(&v.name)) {
        say(&format!("{}: {}", variant.name, variant.title));
        let place = dir.join(&variant.name);
        let as_expected = |d: &Diagnosis| expected::unexpected(&variant.expect, d).is_none();
        let (recording, diagnosis) = demonstrate(&place, &say, as_expected, || {
            let mut act = stage.start(&variant.name, &say, &stop).map_err(lab_failure)?;
            let paste = args.by_hand.then(|| stage.start_by_hand(&mut act, &variant.name, &say, &stop));
            let paste = paste.transpose().map_err(lab_failure)?;
            let file = act.scenario_file.display().to_string();
            let scenario = Scenario::parse(&act.scenario, &file).map_err(Failure::unusable)?;
            let mut progress = Progress::new(args.output.quiet, Some(scenario.load.length()));
            let session = Session {
                name: &variant.name,
                scenario: Some(&scenario),
                watch_for: None,
                thresholds: Vec::new(),
                watch: &act.watch,
                interval: args.interval.or(lab.interval).unwrap_or(INTERVAL),
                dir: &place,
                partial: false,
                slow: Some(SLOW),
                limits: Limits::default(),
            };
            let recorded = session::record(&session, &mut progress, &stop)?;
            let dead = act.dead();
            if let Some(paste) = paste {
                by_hand::keep(&paste, &place)?;
            }
            act.stop();
            match dead {
                Some(dead) if !recorded.interrupted => Err(Failure::Unusable(format!("{}: {dead}", variant.name))),
                _ => Ok(recorded),
            }
        })?;
        let mut strayed = Vec::new();
        if let Some(recover) = &variant.expect.recovered {
            match runs.iter().find(|(name, ..)| *name == recover.against) {
                Some((_, _, calm)) => strayed = recovered::strayed(&calm.ledger, &diagnosis.ledger, &recover.places),
                None => say(&format!("{}: not compared with {}, which was not run", variant.name, recover.against)),
            }
        }
        if let Some(knee) = &variant.expect.knee {
            let other = knee.above.as_ref().and_then(|above| runs.iter().find(|(name, ..)| name == above));
            if let (Some(above), None) = (&knee.above, other) {
                say(&format!("{}: its knee is not compared with that of {above}, which was not run", variant.name));
            }
            strayed.extend(expected::knee(&diagnosis, other.map(|(name, _, d)| (name.as_str(), d))));
        }
        let unexpected = expected::unexpected(&variant.expect, &diagnosis).into_iter().chain(strayed);
        let by_hand = args.by_hand.then(|| by_hand::judge(&place, &variant.expect, &say)).transpose()?.flatten();
        wrong.extend(unexpected.chain(by_hand).map(|what| format!("{}: {what}", variant.name)));
        if !args.output.json {
            outln!("{}", terminal::brief(&diagnosis, Some(&recording.dir)));
        }
        runs.push((variant.name.clone(), recording, diagnosis));
    }
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
    if args.output.json {
        let mut all: serde_json::Map<String, serde_json::Value> = runs
            .iter()
            .map(|(name, _, diagnosis)| Ok((name.clone(), serde_json::to_value(diagnosis).map_err(Failure::unusable)?)))
            .collect::<Result<_, Failure>>()?;
        for (key, comparison) in &comparisons {
            all.insert((*key).to_owned(), serde_json::to_value(comparison).map_err(Failure::unusable)?);
        }
        print_json(&all)?;
    } else {
        for (_, comparison) in &comparisons {
            terminal::print(&terminal::comparison(comparison, false));
        }
        where_it_is(&dir, Some(&report));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::No(format!("not as the lab expects: {}", wrong.join("; ")))) }
}

fn list(args: &Args) -> Result<(), Failure> {
    let labs = Lab::all(args.labs.as_deref()).map_err(Failure::unusable)?;
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

fn lab_failure(error: crate::lab::LabError) -> Failure {
    match error {
        crate::lab::LabError::Interrupted => Failure::Interrupted,
        other => Failure::unusable(other),
    }
}
