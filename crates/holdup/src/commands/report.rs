//! `holdup report`: writes a recording as one self-contained HTML file.

use std::path::PathBuf;

use holdup_diagnose::{CHOICE, diagnose};
use holdup_recording::Recording;

use super::{REPORT, slips};
use crate::failure::Failure;
use crate::html::Report;

/// Write a recording's report: one self-contained HTML file with interactive charts
#[derive(clap::Args)]
#[command(after_help = "Example:\n  holdup report recordings/first -o first.html")]
pub struct Args {
    /// Directory of the recording
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// File to write [default: report.html in the recording]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let recording = Recording::open_excerpt(&args.recording, None, &CHOICE).map_err(Failure::unusable)?;
    slips::say_if_running(&recording);
    let diagnosis = diagnose(&recording, None);
    let path = args.output.unwrap_or_else(|| args.recording.join(REPORT));
    let name = recording.manifest.name.as_str();
    Report::new(name, &[(name, &recording, &diagnosis)], None).write(&path)?;
    outln!("{}", path.display());
    Ok(())
}
