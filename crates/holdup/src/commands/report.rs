//! `holdup report`: writes a recording as one self-contained HTML file.

use std::path::PathBuf;

use holdup_diagnose::{CHOICE, diagnose};
use holdup_recording::Recording;
use holdup_store::Address;

use super::store::fetched::Fetched;
use super::window::{WindowArgs, range};
use super::{REPORT, slips};
use crate::failure::Failure;
use crate::html::Report;

/// Write a recording's report: one self-contained HTML file with interactive charts
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  holdup report recordings/first -o first.html\n  holdup report recordings/today --from 14:05 --to 14:20\n  holdup report clickhouse://reader@db7/holdup/first --last 15m -o first.html"
)]
pub struct Args {
    /// Directory of the recording, or clickhouse://USER@HOST/DATABASE/RECORDING
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// File to write [default: report.html in the recording]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let is_stored = args.recording.to_str().is_some_and(Address::is_meant);
    if is_stored && args.output.is_none() {
        let why = "a recording of a store has no directory for its report; name a file: -o first.html";
        return Err(Failure::Unusable(why.to_owned()));
    }
    let fetched = Fetched::from_argument(&args.recording, Some(&args.window))?;
    let dir = fetched.as_ref().map_or(args.recording.as_path(), Fetched::dir);
    let window = args.window.of(&Recording::manifest(dir).map_err(Failure::unusable)?)?;
    let recording = Recording::open_excerpt(dir, window.map(range), &CHOICE).map_err(Failure::unusable)?;
    slips::say_if_running(&recording);
    let diagnosis = diagnose(&recording, window);
    let path = args.output.unwrap_or_else(|| args.recording.join(REPORT));
    let name = recording.manifest.name.as_str();
    Report::new(name, &[(name, &recording, &diagnosis)], None).write(&path)?;
    outln!("{}", path.display());
    Ok(())
}
