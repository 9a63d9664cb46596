//! `holdup bundle`: writes the answer on a recording as one JSON file.

use std::path::PathBuf;

use holdup_diagnose::{CHOICE, diagnose};
use holdup_recording::Recording;
use holdup_recording::files::replace;

use super::slips;
use super::store::fetched::Fetched;
use super::window::{WindowArgs, range};
use crate::bundle::bundle;
use crate::failure::Failure;

/// Write one file for an issue or an assistant: verdict, evidence, what was cleared
///
/// Passwords and literals of statements are redacted; names of hosts, tables and users are not. Look at
/// it before you publish it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup bundle recordings/first -o bundle.json
  holdup bundle recordings/today --from 14:05 --to 14:20 -o bundle.json
  holdup bundle clickhouse://reader@db7/holdup/first --last 15m
  holdup bundle recordings/first | jq '.findings[].cause'")]
pub struct Args {
    /// Directory of the recording, or clickhouse://USER@HOST/DATABASE/RECORDING
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let fetched = Fetched::from_argument(&args.recording, Some(&args.window))?;
    let dir = fetched.as_ref().map_or(args.recording.as_path(), Fetched::dir);
    let window = args.window.of(&Recording::manifest(dir).map_err(Failure::unusable)?)?;
    let recording = Recording::open_excerpt(dir, window.map(range), &CHOICE).map_err(Failure::unusable)?;
    slips::say_if_running(&recording);
    let text = bundle(&recording, &diagnose(&recording, window)).map_err(Failure::unusable)?;
    let Some(path) = args.output else {
        outln!("{text}");
        return Ok(());
    };
    replace(&path, (text + "\n").as_bytes()).map_err(|e| Failure::Unusable(format!("{}: {e}", path.display())))?;
    outln!("{}", path.display());
    Ok(())
}
