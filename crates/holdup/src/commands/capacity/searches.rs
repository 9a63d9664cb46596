//! The searches of `holdup capacity`: played value by value, or read again from disk. A file beside
//! the recordings maps each of them to its value.

use std::path::{Path, PathBuf};

use holdup_compare::capacity::{self, Run};
use holdup_diagnose::diagnose;
use holdup_load::scenario::Scenario;
use holdup_recording::folder::Folder;
use holdup_recording::{Recording, files};
use serde::{Deserialize, Serialize};

use super::Args;
use crate::commands::LARGEST_BYTES;
use crate::failure::Failure;
use crate::repeat;
use crate::repeat::order::balanced;
use crate::repeat::quota::Quota;

/// File in the folder of the recordings.
pub const CAPACITY: &str = "capacity.json";

/// The varied setting, the result of each search, and how the series ended.
type SearchSeries = (Option<String>, Vec<Run>, Result<(), Failure>);

/// The content of [`CAPACITY`].
#[derive(Serialize, Deserialize)]
struct SeriesFile {
    /// The varied setting; none if there was none.
    axis: Option<String>,
    /// Name of the scenario.
    scenario: String,
    /// The seed of the order.
    seed: u64,
    /// In the order of measurement.
    runs: Vec<Search>,
}

#[derive(Serialize, Deserialize)]
struct Search {
    value: Option<f64>,
    /// Counts from 1.
    round: u32,
    /// Its recording, relative to this file.
    path: String,
}

/// Plays all searches.
///
/// # Errors
/// If nothing can be measured at all. A later failure is part of the result.
pub fn play(args: &Args) -> Result<SearchSeries, Failure> {
    let first = scenario(args)?;
    let axis = args.vary.as_ref().map(|vary| vary.axis.clone());
    check_command(args)?;
    let stop = crate::stop::stop_flag()?;
    let quota = args.cgroup.as_deref().map(Quota::for_cgroup).transpose()?;
    let dir = args.output.empty_dir(&format!("{}-capacity", first.name))?;
    let held = repeat::folder(&dir)?;
    let say = |text: &str| args.output.say(text);
    let values: Vec<Option<&(String, f64)>> =
        args.vary.as_ref().map_or_else(|| vec![None], |vary| vary.values.iter().map(Some).collect());
    let seed = repeat::seed(args.order_seed);
    let order = balanced(values.len(), args.repeat, seed);
    let within = first.search.as_ref().map_or(0.0, |search| search.budget.as_secs_f64());
    let longest = match within * order.len() as f64 {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", (seconds / 60.0).ceil()),
    };
    let searches = if order.len() == 1 { "1 search" } else { &format!("{} searches", order.len()) };
    say(&format!("{searches}, {longest} at most (order drawn by --order-seed {seed})"));
    if let Some(quota) = &quota {
        say(&format!("{} has {}; holdup restores it at the end", quota.folder().display(), quota.before()));
    }
    let mut made = SeriesFile { axis: axis.clone(), scenario: first.name.clone(), seed, runs: Vec::new() };
    let (mut runs, mut ended) = (Vec::new(), Ok(()));
    for (at, (round, which)) in order.iter().enumerate() {
        let value = values[*which];
        let name =
            axis.as_deref().zip(value).map(|(axis, (text, _))| (format!("{axis}={text}"), format!("{axis}-{text}")));
        let (what, path) = name.unwrap_or_else(|| ("the search".to_owned(), "run".to_owned()));
        let path = format!("{path}-{round}");
        say(&format!("search {} of {}: {what}, round {round}", at + 1, order.len()));
        let one = Search { value: value.map(|(_, value)| *value), round: *round, path };
        match search(args, &first, quota.as_ref(), value, &what, &held, &one, &stop) {
            Ok((run, headline, outcome)) => {
                say(&format!("  {headline}"));
                // A search that was cut off counts if it has an answer: its interval shows how good
                // that is.
                if outcome.is_ok() || run.knee.is_some() {
                    runs.push(run);
                    made.runs.push(one);
                    write(&held, &made)?;
                }
                ended = outcome;
            }
            Err(failure) => ended = Err(failure),
        }
        if ended.is_err() {
            break;
        }
    }
    say(&format!("recordings  {}", dir.display()));
    Ok((axis, runs, ended))
}

/// The scenario, whose load must be a search.
fn scenario(args: &Args) -> Result<Scenario, Failure> {
    let scenario = args.scenario.scenario(&args.flags)?;
    if scenario.search.is_none() {
        let way =
            "make its load a search: load: {search: {from: 10, most: 5000}, connections: 500}, or --search with --url";
        return Err(Failure::Unusable(format!("{}: capacity needs a search; {way}", scenario.name)));
    }
    Ok(scenario)
}

fn check_command(args: &Args) -> Result<(), Failure> {
    let Some(vary) = &args.vary else { return Ok(()) };
    let placeholder = format!("{{{}}}", vary.axis);
    match &args.with {
        Some(command) if !command.contains(&placeholder) => Err(Failure::Unusable(format!(
            "--with: the command does not contain {placeholder}, so it cannot set the value"
        ))),
        None if args.cgroup.is_none() => Err(Failure::Unusable(format!(
            "--vary: nothing sets {}: add --with 'COMMAND with {placeholder}', or --cgroup CGROUP for a CPU quota",
            vary.axis
        ))),
        _ => Ok(()),
    }
}

/// Sets the value and searches.
#[allow(clippy::too_many_arguments, reason = "what a search is made of, each of it once")]
fn search(
    args: &Args,
    first: &Scenario,
    quota: Option<&Quota>,
    value: Option<&(String, f64)>,
    what: &str,
    dir: &Folder,
    one: &Search,
    stop: &std::sync::atomic::AtomicBool,
) -> Result<(Run, String, Result<(), Failure>), Failure> {
    if let Some((quota, (_, cpus))) = quota.zip(value) {
        quota.set(*cpus)?;
    }
    let command = args.with.as_ref().zip(args.vary.as_ref()).zip(value);
    let command = command.map(|((command, vary), (text, _))| command.replace(&format!("{{{}}}", vary.axis), text));
    args.switch.switch(what, command.as_deref(), &first.target, dir, stop)?;
    let watch_quota = |scenario: &mut Scenario| {
        // The cgroup's own counters show whether the quota is the limit.
        if let Some(quota) = quota.filter(|_| !scenario.watch.is_empty()) {
            scenario.watch.push(format!("cgroup:{}", quota.folder().display()));
        }
    };
    let place = dir.path().join(&one.path);
    let (recorded, diagnosis, reported) =
        args.scenario.play(&args.flags, watch_quota, &place, args.output.quiet, stop)?;
    let run = capacity::run(&recorded.recording, &diagnosis, one.value, one.round, &one.path);
    let outcome = if recorded.interrupted { Err(Failure::Interrupted) } else { reported };
    Ok((run, diagnosis.headline, outcome))
}

fn write(dir: &Folder, made: &SeriesFile) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(made).map_err(Failure::unusable)?;
    files::replace(&dir.place().join(CAPACITY), (text + "\n").as_bytes())
        .map_err(|error| Failure::Unusable(format!("{}: {error}", dir.path().join(CAPACITY).display())))
}

/// Judges earlier recordings: folders with a [`CAPACITY`], and single recordings. A single
/// recording's value is in the folder above if this command made it.
///
/// # Errors
/// If a path is neither, cannot be read, or the recordings vary different settings.
pub fn again(from: &[PathBuf]) -> Result<SearchSeries, Failure> {
    let mut axis: Option<Option<String>> = None;
    let mut runs = Vec::new();
    for path in from {
        let (of, searches) = searches_in(path)?;
        if axis.get_or_insert_with(|| of.clone()) != &of {
            let name = |axis: &Option<String>| axis.clone().unwrap_or_else(|| "nothing".to_owned());
            let (a, b) = (name(&axis.unwrap_or_default()), name(&of));
            return Err(Failure::Unusable(format!("{}: it varies {b}, but the others vary {a}", path.display())));
        }
        for (value, recording) in searches {
            let round = runs.iter().filter(|run: &&Run| run.value == value).count() as u32 + 1;
            let name = recording.display().to_string();
            let recording = Recording::open(&recording).map_err(Failure::unusable)?;
            runs.push(capacity::run(&recording, &diagnose(&recording, None), value, round, &name));
        }
    }
    Ok((axis.unwrap_or_default(), runs, Ok(())))
}

/// The varied setting, and each value with its recording.
type ValuedRecordings = (Option<String>, Vec<(Option<f64>, PathBuf)>);

fn searches_in(path: &Path) -> Result<ValuedRecordings, Failure> {
    if path.join(CAPACITY).is_file() {
        let made = read(path)?;
        let runs = made.runs.iter().map(|search| (search.value, path.join(&search.path))).collect();
        return Ok((made.axis, runs));
    }
    let above = path.parent().filter(|above| above.join(CAPACITY).is_file());
    if let Some((above, name)) = above.zip(path.file_name()) {
        let made = read(above)?;
        if let Some(search) = made.runs.iter().find(|search| Path::new(&search.path) == Path::new(name)) {
            return Ok((made.axis, vec![(search.value, path.to_owned())]));
        }
    }
    Ok((None, vec![(None, path.to_owned())]))
}

fn read(dir: &Path) -> Result<SeriesFile, Failure> {
    let file = dir.join(CAPACITY);
    let bad = |error: String| Failure::Unusable(format!("{}: {error}", file.display()));
    let text = files::read_text(&file, LARGEST_BYTES).map_err(|error| bad(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| bad(error.to_string()))
}
