//! Several kinds of files, and recordings of the same time, as one recording. Each kind is read
//! into a recording of its own beside the target; then their rows come together on the clock of the
//! first, as far as both saw the same requests, counters or loads. The offset and its error are
//! said: in the output, as an event, and in the coverage.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_import::clocks::{Offset, Segments, offset, offset_by_segments};
use holdup_recording::manifest::{Manifest, RunState};
use holdup_recording::rows::Event;
use holdup_recording::writer::{RecordError, Recorder};
use holdup_recording::{Batch, Coverage, Labels, Recording, files};

use super::sorted::{FileKind, is_recording};
use super::{InputFile, Report, guard, text};
use crate::failure::Failure;
use crate::recorded::end_at;

/// The source of the event that says how far a clock was off.
const SOURCE: &str = "import";

/// Parts this far apart belong to other times, nanoseconds: a paste is an instant, and comes
/// minutes before or after another.
const APART_NS: i64 = 600_000_000_000;

/// Files of a recording that belong to its tables, or are made anew.
const OWN_FILES: [&str; 3] = ["manifest.json", "metrics.json", "report.html"];

/// The parts, and where they go.
pub(super) struct Request<'a> {
    pub groups: Vec<(FileKind, Vec<InputFile>)>,
    /// Recordings among the inputs.
    pub recordings: &'a [PathBuf],
    pub target: Target,
    /// Reads one group.
    pub read: &'a ReadGroup<'a>,
}

/// Reads the files of one kind into a recording at a directory.
type ReadGroup<'a> = dyn Fn(FileKind, Vec<InputFile>, &Path) -> Result<Report, Failure> + 'a;

/// Where the result goes.
pub(super) enum Target {
    /// A new recording.
    New(PathBuf),
    /// An existing one, whose clock counts.
    Into(PathBuf),
}

impl Target {
    fn dir(&self) -> &Path {
        match self {
            Self::New(dir) | Self::Into(dir) => dir,
        }
    }
}

/// One part in memory.
struct Part {
    name: String,
    manifest: Manifest,
    rows: Batch,
    /// The segments of a capture.
    segments: Option<Segments>,
    /// Where it is, if it is a recording of the user's.
    dir: Option<PathBuf>,
}

/// What is known of a part's clock.
struct Clock {
    part: String,
    against: String,
    offset: Option<Offset>,
    /// Series that were left out because the recording has its own.
    doubles: usize,
    overlaps: bool,
}

/// Reads all parts into one recording.
pub(super) fn import(request: Request<'_>) -> Result<Report, Failure> {
    let Request { groups, recordings, target, read } = request;
    let dir = target.dir().to_owned();
    let mut parts = Vec::new();
    match &target {
        Target::New(dir) if has_entries(dir) => return Err(Failure::unusable(RecordError::Occupied(dir.clone()))),
        Target::New(_) => {}
        Target::Into(dir) => parts.push(Part::open(dir, Some(dir))?),
    }
    for dir in recordings {
        parts.push(Part::open(dir, Some(dir))?);
    }
    let scratch = Scratch::beside(&dir)?;
    let (mut reports, mut failed, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let (mut nothing, mut left_out) = (Vec::new(), Vec::new());
    for (number, (kind, group)) in groups.into_iter().enumerate() {
        let names: Vec<String> = group.iter().map(|file| file.name.clone()).collect();
        let (name, place) = (names.join(", "), scratch.0.join(number.to_string()));
        // One file that cannot be read does not lose the others.
        match guard::caught(&name, || read(kind, group, &place)).unwrap_or_else(Err) {
            Ok(report) if report.nothing.is_some() => {
                failed.extend(report.failed);
                nothing.extend(report.nothing);
                left_out.extend(report.left_out);
            }
            Ok(mut report) => {
                failed.extend(report.failed.clone());
                let segments = report.segments.take();
                parts.push(Part { name, segments, ..Part::open(&place, None)? });
                reports.push(report);
            }
            // What it recorded before it failed says so itself.
            Err(failure) if is_recording(&place) => {
                failed.push(failure.to_string().split(guard::KEPT).next().unwrap_or_default().to_owned());
                parts.push(Part { name, ..Part::open(&place, None)? });
            }
            Err(failure) => {
                broken.push(guard::failed(&name, &failure, 0));
                failed.push(failure.to_string());
            }
        }
    }
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else {
        let why: Vec<String> = nothing.into_iter().chain(failed).collect();
        return Err(Failure::Unusable(why.join("; ")));
    };
    let clocks: Vec<Clock> = parts.map(|part| whole.join(part)).collect();
    let notes: String = left_out.iter().map(|file| format!("left out: {}\n", text::left_out_words(file))).collect();
    whole.manifest.coverage.extend(broken.into_iter().chain(left_out));
    if !failed.is_empty() {
        whole.manifest.state = RunState::Interrupted;
    }
    write(whole, &target)?;
    let failed = (!failed.is_empty()).then(|| format!("{}; the rest is kept in {}", failed.join("; "), dir.display()));
    Ok(Report {
        text: notes + &summary(&reports, &clocks, &scratch, &dir),
        json: json(reports, &clocks, &dir),
        next: vec![format!("next: holdup diagnose {}", dir.display())],
        failed,
        ..Report::default()
    })
}

fn has_entries(dir: &Path) -> bool {
    dir.is_file() || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// A folder for the parts, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(dir: &Path) -> Result<Self, Failure> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = parent.join(format!(".{name}.parts-{}", std::process::id()));
        let made = fs::create_dir_all(parent).and_then(|()| files::create_new_dir(&place));
        made.map_err(|e| Failure::Unusable(format!("{}: {e}; name another directory with -o", place.display())))?;
        Ok(Self(place))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Part {
    fn open(place: &Path, dir: Option<&PathBuf>) -> Result<Self, Failure> {
        let Recording { manifest, tables, .. } = Recording::open(place).map_err(Failure::unusable)?;
        if dir.is_some() && manifest.state == RunState::Running {
            let why = "still being recorded, or its holdup was killed; import into it when it has ended";
            return Err(Failure::Unusable(format!("{}: {why}", place.display())));
        }
        let name = place.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { name, manifest, rows: tables.into_batch(), segments: None, dir: dir.cloned() })
    }

    /// From its first moment to its last.
    fn span(&self) -> (i64, i64) {
        let (from, to) = (self.manifest.started_at, self.manifest.ended_at);
        (from, to.unwrap_or(from))
    }

    /// Takes in another part, on this one's clock.
    fn join(&mut self, mut part: Part) -> Clock {
        let captures = self.segments.as_ref().zip(part.segments.as_ref());
        let by_segments = captures.and_then(|(ours, theirs)| offset_by_segments(ours, theirs));
        let offset = by_segments.or_else(|| offset(&self.rows, &part.rows));
        if let Some(found) = offset.filter(Offset::is_known) {
            part.rows.move_times(found.offset_ns);
            part.segments.iter_mut().for_each(|segments| segments.move_times(found.offset_ns));
            part.manifest.started_at = part.manifest.started_at.saturating_add(found.offset_ns);
            part.manifest.ended_at = part.manifest.ended_at.map(|at| at.saturating_add(found.offset_ns));
        }
        let ((from, to), (own_from, own_to)) = (part.span(), self.span());
        let doubles = leave_out_doubles(&self.rows, &mut part.rows);
        let overlaps = from <= own_to.saturating_add(APART_NS) && own_from <= to.saturating_add(APART_NS);
        let against = self.name.clone();
        let clock = Clock { part: part.name.clone(), against, offset, doubles, overlaps };
        self.rows.events.push(clock.event(from));
        let words = clock.words();
        for mut coverage in part.manifest.coverage {
            let why: Vec<String> = coverage.why.take().into_iter().chain([words.clone()]).collect();
            coverage.why = Some(why.join("; "));
            self.add_coverage(coverage);
        }
        self.rows.append(part.rows);
        if let Some(segments) = part.segments {
            self.segments.get_or_insert_default().append(segments);
        }
        self.manifest.started_at = own_from.min(from);
        self.manifest.ended_at = Some(own_to.max(to));
        if part.manifest.state != RunState::Complete {
            self.manifest.state = part.manifest.state;
        }
        self.manifest.name = format!("{}, {}", self.manifest.name, part.manifest.name);
        if self.manifest.load.is_none() && part.manifest.load.is_some() {
            (self.manifest.load, self.manifest.phases) = (part.manifest.load, part.manifest.phases);
        }
        clock
    }

    /// Adds the coverage of a source; one that is there already gets the further reason.
    fn add_coverage(&mut self, coverage: Coverage) {
        match self.manifest.coverage.iter_mut().find(|known| known.source == coverage.source) {
            Some(known) => {
                let why: Vec<String> = known.why.take().into_iter().chain(coverage.why).collect();
                known.why = Some(why.join("; "));
                known.reads_total += coverage.reads_total;
                known.gaps_total += coverage.gaps_total;
            }
            None => self.manifest.coverage.push(coverage),
        }
    }
}

/// Removes series that `known` has, too: two counters of one thing must not mix. Returns their
/// number.
fn leave_out_doubles(known: &Batch, other: &mut Batch) -> usize {
    let own: BTreeSet<(&str, &str, &Labels)> =
        known.samples.iter().map(|row| (row.source.as_str(), row.metric.as_str(), &row.labels)).collect();
    let mut left_out: BTreeSet<(String, String, Labels)> = BTreeSet::new();
    other.samples.retain(|row| {
        let is_double = own.contains(&(row.source.as_str(), row.metric.as_str(), &row.labels));
        if is_double {
            left_out.insert((row.source.clone(), row.metric.clone(), row.labels.clone()));
        }
        !is_double
    });
    left_out.len()
}

impl Clock {
    /// The offset in words.
    fn words(&self) -> String {
        let Self { against, .. } = self;
        match &self.offset {
            None => {
                format!(
                    "its time stamps were taken as they are: it shares no trace id, counter, load or connection with {against}"
                )
            }
            Some(found) => {
                let (off, error) = (found.offset_ns as f64 / 1e9, found.error_ns as f64 / 1e9);
                // Packets tell microseconds.
                let error = if found.error_ns < 1_000_000 { format!("{error:.6}") } else { format!("{error:.3}") };
                let by = format!("by {} {}", found.count, found.by.words());
                if found.is_known() {
                    let way = if off > 0.0 { "behind" } else { "ahead of" };
                    format!("its clock was {:.3} s {way} that of {against} (± {error} s, {by}): moved", off.abs())
                } else {
                    format!("its clock agrees with that of {against} (± {error} s, {by})")
                }
            }
        }
    }

    fn event(&self, at: i64) -> Event {
        let mut labels = Labels::new([("part", self.part.as_str()), ("against", self.against.as_str())]);
        if let Some(found) = &self.offset {
            let moved = if found.is_known() { found.offset_ns } else { 0 };
            labels = labels
                .with("offset_seconds", format!("{:.6}", moved as f64 / 1e9))
                .with("error_seconds", format!("{:.6}", found.error_ns as f64 / 1e9))
                .with("by", format!("{} {}", found.count, found.by.words()));
        }
        let text = format!("{}: {}", self.part, self.words());
        Event { observed_at: at, source: SOURCE.to_owned(), kind: "clock_offset".to_owned(), text, labels }
    }
}

/// Writes the whole: a new recording, or the tables of an existing one.
fn write(whole: Part, target: &Target) -> Result<(), Failure> {
    let Part { mut manifest, mut rows, dir: from, .. } = whole;
    rows.samples.sort_by_key(|row| row.observed_at);
    rows.events.sort_by_key(|row| row.observed_at);
    let dir = target.dir();
    let (state, ended_at) = (manifest.state, manifest.ended_at);
    if let Target::Into(_) = target {
        manifest.tables.extend(rows.replace_tables(dir).map_err(Failure::unusable)?);
        return manifest.write(dir).map_err(|e| Failure::Unusable(format!("{}: {e}", dir.display())));
    }
    let recorder = Recorder::create(dir, &manifest).map_err(Failure::unusable)?;
    recorder.sink().push(rows);
    end_at(recorder, manifest, state, ended_at, dir)?;
    if let Some(from) = from {
        copy_other_files(&from, dir)?;
    }
    Ok(())
}

/// Copies what a recording has beside its tables: exact percentiles, the steps of a search.
fn copy_other_files(from: &Path, to: &Path) -> Result<(), Failure> {
    let unreadable = |e: std::io::Error| Failure::Unusable(format!("{}: {e}", from.display()));
    for entry in fs::read_dir(from).map_err(unreadable)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_other = !name.ends_with(".parquet") && !OWN_FILES.contains(&name.as_str());
        if is_other && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), to.join(&name)).map_err(unreadable)?;
        }
    }
    Ok(())
}

fn summary(reports: &[Report], clocks: &[Clock], scratch: &Scratch, dir: &Path) -> String {
    let mut text = String::new();
    // The parts were somewhere else for a moment; what they became is here.
    let place = scratch.0.display().to_string();
    for report in reports {
        for line in report.text.lines() {
            let line = line.split(" -> ").next().filter(|_| line.contains(&place)).unwrap_or(line);
            text += line;
            text.push('\n');
        }
    }
    for clock in clocks {
        text += &format!("clock: {}: {}\n", clock.part, clock.words());
        if clock.doubles > 0 {
            let (doubles, against) = (clock.doubles, &clock.against);
            text += &format!("note: {}: {doubles} series left out, which {against} has itself\n", clock.part);
        }
        if !clock.overlaps {
            let (part, against) = (&clock.part, &clock.against);
            text += &format!(
                "note: {part} has no time in common with {against}: check the time zone, and give the time of text with --at\n"
            );
        }
    }
    text + &format!("together -> {}\n", dir.display())
}

fn json(reports: Vec<Report>, clocks: &[Clock], dir: &Path) -> serde_json::Value {
    let clocks = clocks.iter().map(|clock| {
        let moved = clock.offset.filter(Offset::is_known).map_or(0, |found| found.offset_ns);
        serde_json::json!({
            "part": clock.part,
            "against": clock.against,
            "offset_seconds": clock.offset.map(|_| moved as f64 / 1e9),
            "error_seconds": clock.offset.map(|found| found.error_ns as f64 / 1e9),
            "by": clock.offset.map(|found| format!("{} {}", found.count, found.by.words())),
            "series_left_out": clock.doubles,
            "overlaps": clock.overlaps,
        })
    });
    let clocks: Vec<serde_json::Value> = clocks.collect();
    let parts: Vec<serde_json::Value> = reports
        .into_iter()
        .map(|report| {
            let mut json = report.json;
            json.as_object_mut().map(|json| json.remove("recording"));
            json
        })
        .collect();
    serde_json::json!({ "recording": dir.display().to_string(), "parts": parts, "clocks": clocks })
}
