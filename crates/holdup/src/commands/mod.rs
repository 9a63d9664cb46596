//! One subcommand a file: its arguments with their help, and what it does with the libraries.

pub mod demo;
pub mod diagnose;
pub mod doctor;
pub mod explain;
pub mod lab;
pub mod report;
pub mod run;
pub mod watch;

use std::path::Path;

use holdup_diagnose::{Diagnosis, diagnose};
use holdup_recording::Recording;

use crate::failure::Failure;
use crate::html::Report;
use crate::progress::Progress;
use crate::terminal;

/// File name of the report in a recording.
const REPORT: &str = "report.html";

/// Reads a duration given on the command line.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    holdup_load::yaml::parse_duration(text)
}

/// Prints `value` as JSON on stdout.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::unusable)?;
    println!("{text}");
    Ok(())
}

/// Judges `recording`, leaves its report beside it, and prints the verdict.
fn conclude(recording: &Recording, json: bool, progress: &mut Progress) -> Result<Diagnosis, Failure> {
    let diagnosis = diagnose(recording, None);
    let name = recording.manifest.name.as_str();
    let page = Report::new(name, &[(name, recording, &diagnosis)], None).html();
    let path = recording.dir.join(REPORT);
    if let Err(error) = std::fs::write(&path, page) {
        progress.say(&format!("failed to write {}: {error}", path.display()));
    }
    if json {
        print_json(&diagnosis)?;
    } else {
        anstream::print!("{}", terminal::verdict(&diagnosis));
        where_it_is(&recording.dir, &path);
    }
    Ok(diagnosis)
}

fn where_it_is(recording: &Path, report: &Path) {
    println!("\nrecording  {}\nreport     {}", recording.display(), report.display());
}
