//! One subcommand per file: its arguments with their help, and its calls into the libraries.

pub mod advise;
pub mod bundle;
pub mod capacity;
pub mod compare;
mod compare_groups;
mod compare_history;
pub mod completion;
pub mod demo;
mod describe;
pub mod diagnose;
pub mod digest;
#[cfg(feature = "labs")]
pub mod disk;
#[cfg(not(feature = "labs"))]
#[path = "no_disk.rs"]
pub mod disk;
pub mod doctor;
pub mod explain;
pub mod gate;
pub mod generate;
mod http_args;
pub mod import;
pub mod init;
pub mod lab;
mod load_args;
mod log_args;
pub mod man;
pub mod mcp;
mod moment;
mod output_args;
mod pipeline_args;
pub mod replay;
pub mod report;
mod reported;
pub mod run;
mod scenario_args;
pub mod settle;
mod slips;
mod sql_args;
pub mod store;
mod thresholds;
pub mod top;
pub mod watch;
mod window;

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_diagnose::{Diagnosis, diagnose};
use holdup_recording::{Limits, RecordError, Recording};

use self::pipeline_args::PipelineArgs;
use crate::failure::Failure;
use crate::html::Report;
use crate::recorded::Recorded;
use crate::secret_values::{Values, values};
use crate::session::Session;
use crate::{session, terminal};

/// Largest scenario, and largest file of facts beside a recording, in bytes.
pub const LARGEST_BYTES: u64 = 64 << 20;

/// File name of the report in a recording.
const REPORT: &str = "report.html";

/// The output flags of every command that records.
#[derive(clap::Args)]
struct Output {
    /// Directory of the recording [default: recordings/NAME-TIME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,

    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

impl Output {
    /// Prints a line of progress.
    fn say(&self, text: &str) {
        if !self.quiet {
            errln!("{text}");
        }
    }

    /// The directory to write to: the given one, or a new one for `name`.
    fn dir(&self, name: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| session::default_dir(name))
    }

    /// The same for a folder of several recordings, which must be empty.
    fn empty_dir(&self, name: &str) -> Result<PathBuf, Failure> {
        let dir = self.dir(name);
        if std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Failure::unusable(RecordError::Occupied(dir)));
        }
        Ok(dir)
    }
}

/// How sources are read.
#[derive(clap::Args)]
struct Sampling {
    /// Source to watch: host, pid:N, mysql://…, postgresql://…, prometheus:URL; repeatable; @FILE has one a line
    #[arg(long, value_name = "SOURCE", value_parser = values)]
    watch: Vec<Values>,

    /// Time between samples
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,

    /// Accept sources that lack a grant and can be read only in part
    #[arg(long)]
    partial: bool,

    /// Look up the statements of requests slower than this at once; or `off`
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = slow)]
    slow: Slow,

    /// Finish the recording at this size, e.g. 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,

    /// Pause writing while less disk is free [default: 1 % of it, at most 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = floor)]
    min_free: Option<u64>,

    #[command(flatten)]
    pipeline: PipelineArgs,

    /// Mark this recording as part of a case, e.g. incident-4711
    ///
    /// Use the same ID on every host. `holdup diagnose` refuses recordings of different ids.
    #[arg(long, value_name = "ID", value_parser = recording_id)]
    recording_id: Option<String>,
}

/// Longest id of a case, bytes.
const ID_BYTES_MAX: usize = 100;

/// Parses the id of a case.
fn recording_id(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-:".contains(c);
    if text.is_empty() || text.len() > ID_BYTES_MAX || !text.chars().all(is_plain) {
        return Err("expected letters, digits and . _ - :, at most 100 bytes, e.g. incident-4711".to_owned());
    }
    Ok(text.to_owned())
}

/// Smallest size limit of a recording: the manifest needs that much.
const SIZE_MIN: u64 = 1 << 20;

/// Parses the size limit of a recording.
fn size(text: &str) -> Result<u64, String> {
    let bytes = holdup_load::scenario::parse_bytes(text)?;
    if bytes < SIZE_MIN { Err("expected at least 1MiB".to_owned()) } else { Ok(bytes) }
}

/// Parses how much disk must stay free; 0 is allowed.
fn floor(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { holdup_load::scenario::parse_bytes(text) }
}

impl Sampling {
    /// The sources to watch.
    fn watched(&self) -> Vec<String> {
        Values::list(&self.watch)
    }

    /// The session that records the sources `watch` into `dir`.
    fn session<'a>(&'a self, name: &'a str, watch: &'a [String], dir: &'a Path) -> Session<'a> {
        Session {
            pipeline: self.pipeline.stages(),
            partial: self.partial,
            slow: self.slow.0,
            limits: Limits { max_bytes: self.max_size, min_free_bytes: self.min_free, ..Limits::default() },
            recording_id: self.recording_id.as_deref(),
            ..Session::new(name, watch, self.interval, dir)
        }
    }
}

/// Requests are slow from this response time on, unless --slow says otherwise.
const SLOW: Duration = Duration::from_millis(500);

/// The response time from which requests count as slow; `None` if slow requests are not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slow(Option<Duration>);

/// Parses a duration, or `off`.
fn slow(text: &str) -> Result<Slow, String> {
    if text == "off" {
        return Ok(Slow(None));
    }
    duration(text).map(|threshold| Slow(Some(threshold))).map_err(|why| format!("{why}; or use off"))
}

/// Parses a duration of the command line.
pub fn duration(text: &str) -> Result<Duration, String> {
    holdup_load::yaml::parse_duration(text)
}

/// Prints `value` as JSON on stdout.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::unusable)?;
    outln!("{text}");
    Ok(())
}

/// Judges a recording, writes its report beside it, and prints the verdict.
///
/// # Errors
/// If something other than the user cut the recording off, e.g. a full disk. The verdict on the
/// existing part is printed first.
fn conclude(recorded: &Recorded, json: bool) -> Result<Diagnosis, Failure> {
    let recording = &recorded.recording;
    let (diagnosis, reported) = judge(recorded);
    let path = recording.dir.join(REPORT);
    if json {
        print_json(&diagnosis)?;
    } else {
        if terminal::is_seen() {
            terminal::print(&terminal::timeline(recording));
        }
        where_it_is(&recording.dir, reported.is_ok().then_some(&path));
        terminal::print(&terminal::brief(&diagnosis, Some(&recording.dir)));
    }
    recorded.whole()?;
    reported.map(|()| diagnosis)
}

/// Judges a recording and writes its report beside it, which may fail.
fn judge(recorded: &Recorded) -> (Diagnosis, Result<(), Failure>) {
    let recording = &recorded.recording;
    let diagnosis = diagnose(recording, None);
    let name = recording.manifest.name.as_str();
    let path = recorded.folder.place().join(REPORT);
    let reported = Report::new(name, &[(name, recording, &diagnosis)], None).write(&path);
    (
        diagnosis,
        reported.map_err(|failure| match failure {
            Failure::Unusable(why) => Failure::Unusable(recorded.folder.shown(&why)),
            other => other,
        }),
    )
}

/// How often a demonstration is repeated because this machine was stalled or overloaded.
const PLAYED_AGAIN: u32 = 2;

/// Records with `play` into `dir` and judges the recording. A demonstration's expected verdict is
/// known (`shows`). If a hypervisor or the generator itself spoiled the run and the verdict is
/// missing, holdup keeps the recording beside the new one, plays again, and says so.
fn demonstrate(
    dir: &Path,
    say: &dyn Fn(&str),
    shows: impl Fn(&Diagnosis) -> bool,
    mut play: impl FnMut() -> Result<Recorded, Failure>,
) -> Result<(Recording, Diagnosis), Failure> {
    let mut attempt = 1;
    loop {
        let recorded = play()?;
        if recorded.interrupted {
            say(&format!("interrupted; the recording so far is in {}", dir.display()));
            return Err(Failure::Interrupted);
        }
        recorded.whole()?;
        let diagnosis = diagnose(&recorded.recording, None);
        match diagnosis.spoiled() {
            Some(spoiled) if attempt <= PLAYED_AGAIN && !shows(&diagnosis) => {
                let aside = dir.with_extension(format!("disturbed-{attempt}"));
                say(&format!("{spoiled}: that run is kept in {}; playing again", aside.display()));
                std::fs::rename(dir, &aside).map_err(Failure::unusable)?;
                attempt += 1;
            }
            _ => return Ok((recorded.recording, diagnosis)),
        }
    }
}

fn where_it_is(recording: &Path, report: Option<&PathBuf>) {
    outln!(
        "
recording  {}",
        recording.display()
    );
    if let Some(report) = report {
        outln!("report     {}", report.display());
    }
}
