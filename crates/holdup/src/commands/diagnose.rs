//! `holdup diagnose`: judges a recording again, or those of several hosts as one case.

mod together;

use std::path::{Path, PathBuf};

use holdup_collect::watch::Options;
use holdup_collect::watch::collector;
use holdup_diagnose::{CHOICE, Case, Diagnosis, diagnose, diagnose_against};
use holdup_recording::{Batch, Manifest, Recording};
use holdup_signals::Window;

use super::pipeline_args::PipelineArgs;
use super::store::fetched::Fetched;
use super::thresholds::ThresholdArgs;
use super::window::{WindowArgs, range};
use super::{print_json, reported, slips};
use crate::failure::Failure;
use crate::terminal;

/// Judge a recording again, or a part of it
///
/// Recordings of several hosts over the same time are one case: the generator's, the app's, the
/// database's. holdup measures how far their clocks are apart.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup diagnose recordings/first
  holdup diagnose recordings/first --verbose
  holdup diagnose recordings/first --from 30s --to 90s --json
  holdup diagnose recordings/gen1 recordings/app1 recordings/db1
  holdup diagnose recordings/today --from 14:05 --to 14:20
  holdup diagnose recordings/today --last 15m
  holdup diagnose recordings/today --against recordings/last-week
  holdup diagnose recordings/first --threshold 'p99 < 250ms'
  holdup diagnose recordings/indexing --pipeline pipeline.yaml
  holdup diagnose recordings/orders-db --slow 14:03-14:20
  holdup diagnose recordings/first --on instance:db.r5.2xlarge --on volume:gp3:500G
  holdup diagnose clickhouse://reader@db7/holdup/first --last 15m
  holdup diagnose recordings/generator recordings/app recordings/database
  holdup diagnose recordings/first --request 4bf92f3577b34da6a3ce929d0e0e4736")]
pub struct Args {
    /// Directory or clickhouse://USER@HOST/DATABASE/RECORDING; several hosts' are one case
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,

    /// When users found it slow, e.g. 14:03-14:20 (UTC), or 14:03 if it lasts
    #[arg(long, value_name = "TIME")]
    slow: Option<String>,

    /// Compare with this healthy recording, a directory or an address, instead of the own baseline window
    #[arg(long, value_name = "RECORDING")]
    against: Option<PathBuf>,

    /// Print where the time of this one request went
    #[arg(long, value_name = "TRACE_ID", conflicts_with_all = ["fail_on_finding", "against", "thresholds"])]
    request: Option<String>,

    /// Machine or disk: instance:CLASS, volume:TYPE:SIZE; repeatable
    #[arg(long, value_name = "HARDWARE")]
    on: Vec<String>,

    /// Draw the run over time even without a terminal
    #[arg(long, conflicts_with_all = ["json", "request"])]
    chart: bool,

    /// Print all evidence, fixes, cleared and unchecked causes
    #[arg(long, short, conflicts_with_all = ["json", "request"])]
    verbose: bool,

    /// Print all, and how counters alone vote on each cause
    #[arg(long, conflicts_with_all = ["json", "request"])]
    counters: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    pipeline: PipelineArgs,

    /// Exit with 1 if a culprit is found
    #[arg(long)]
    fail_on_finding: bool,

    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let [argument] = &args.recordings[..] else { return together::run(&args) };
    if Fetched::hosts(argument)? > 1 {
        return together::run(&args);
    }
    // The breakdown of a single request looks at all rows.
    let part = args.request.is_none().then_some(&args.window);
    let fetched = Fetched::from_argument(argument, part)?;
    let dir = fetched.as_ref().map_or(argument.as_path(), Fetched::dir);
    let manifest = Recording::manifest(dir).map_err(Failure::unusable)?;
    let window = args.window.of(&manifest)?;
    let recording = match &args.request {
        Some(_) => Recording::open(dir),
        None => Recording::open_excerpt(dir, window.map(range), &CHOICE),
    };
    let mut recording = recording.map_err(Failure::unusable)?;
    slips::say_if_running(&recording);
    args.add_to(&mut recording.manifest)?;
    if let Some(course) = recording.course_mut() {
        args.add_to(&mut course.manifest)?;
    }
    add_hardware(&mut recording, &args.on)?;
    if let Some(trace_id) = &args.request {
        return one_request(&recording, window, trace_id, args.json);
    }
    let healthy = args.against.as_deref().map(opened).transpose()?;
    let diagnosis = match (&healthy, &args.against) {
        (Some(healthy), Some(dir)) => diagnose_against(&recording, window, healthy).map_err(|why| {
            Failure::Unusable(format!("cannot compare {} with {}: {why}", argument.display(), dir.display()))
        })?,
        _ => diagnose(&recording, window),
    };
    // Only a directory has what lies around the window.
    let is_around = args.is_drawn() && window.is_some() && fetched.is_none();
    let whole =
        is_around.then(|| Recording::open_excerpt(dir, None, &CHOICE)).transpose().map_err(Failure::unusable)?;
    args.say(whole.as_ref().unwrap_or(&recording), diagnosis)
}

/// A whole recording: a directory's, or one that is fetched from a store.
fn opened(argument: &Path) -> Result<Recording, Failure> {
    let fetched = Fetched::from_argument(argument, None)?;
    let dir = fetched.as_ref().map_or(argument, Fetched::dir);
    Recording::open(dir).map_err(Failure::unusable)
}

impl Args {
    /// Adds what the user says of a recording to its manifest.
    fn add_to(&self, manifest: &mut Manifest) -> Result<(), Failure> {
        self.thresholds.add_to(manifest)?;
        if !self.pipeline.stages().is_empty() {
            manifest.pipeline = self.pipeline.stages().to_vec();
        }
        self.slow.as_deref().map_or(Ok(()), |said| reported::add(manifest, said))
    }

    /// Whether the run is drawn over time.
    fn is_drawn(&self) -> bool {
        !self.json && (self.chart || terminal::is_seen())
    }

    /// Prints the verdict, drawn over `recording`, and checks what the exit code depends on.
    fn say(&self, recording: &Recording, diagnosis: Diagnosis) -> Result<(), Failure> {
        self.thresholds.check_judged(&diagnosis)?;
        if self.json {
            print_json(&diagnosis)?;
        } else {
            if self.is_drawn() {
                terminal::print(&terminal::timeline(recording));
            }
            let all: Vec<String> = self.recordings.iter().map(|one| one.display().to_string()).collect();
            let shown = PathBuf::from(all.join(" "));
            let is_whole = self.verbose || self.counters;
            let whole = || terminal::verbose(&diagnosis, self.counters);
            terminal::print(&if is_whole { whole() } else { terminal::brief(&diagnosis, Some(&shown)) });
        }
        self.thresholds.check_met(&diagnosis)?;
        if self.fail_on_finding && diagnosis.is_named() {
            return Err(Failure::No(diagnosis.headline));
        }
        Ok(())
    }
}

/// Adds the settings of machines and disks that were named afterwards.
fn add_hardware(recording: &mut Recording, addresses: &[String]) -> Result<(), Failure> {
    for address in addresses {
        let mut told = Batch::default();
        let wrong = |error: String| Failure::Unusable(error.replace("--watch", "--on"));
        if !["instance:", "volume:"].iter().any(|known| address.starts_with(known)) {
            let expected = "expected a type, e.g. volume:gp3:500G:3000:125M or instance:db.r5.2xlarge";
            return Err(Failure::Unusable(format!("--on {address}: {expected}")));
        }
        let mut hardware = collector(address, &Options::default()).map_err(|error| wrong(error.to_string()))?;
        hardware.settings(&mut told).map_err(|error| wrong(error.to_string()))?;
        recording.tables.settings.rows.append(&mut told.settings);
        recording.tables.settings.present = true;
    }
    Ok(())
}

fn one_request(recording: &Recording, window: Option<Window>, trace_id: &str, json: bool) -> Result<(), Failure> {
    let case = Case::new(recording, window);
    let Some(request) = holdup_diagnose::ledger::accounts::request(&case, trace_id) else {
        // An import has the spans of a request, and no row of its client.
        if let Some(spans) = holdup_diagnose::services::request(&case, trace_id) {
            if json {
                return print_json(&spans);
            }
            terminal::print(&holdup_diagnose::services::waterfall_text(&spans));
            return Ok(());
        }
        let (kind, id) = ("32 hex digits, as in the verdict's accounts.examples[].trace_id", trace_id.escape_debug());
        return Err(Failure::Unusable(format!("{id}: no request of this recording has that trace id ({kind})")));
    };
    if json {
        return print_json(&request);
    }
    terminal::print(&terminal::request(&request));
    Ok(())
}
