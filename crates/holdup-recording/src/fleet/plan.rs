//! From directories to a fleet: the hosts' names, the time that all share, how much of each
//! recording is read, and the joined recording.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::clocks::{self, Measure};
use super::join::{self, Joined};
use super::part::{self, Part};
use super::{Fleet, loads};
use crate::excerpt::{Choice, Excerpt, Room, SAMPLES_MARGIN_NS, groups};
use crate::manifest::{Coverage, CoverageState};
use crate::{Manifest, OpenError, Recording, clock};

/// A part that lacks less than this of the judged time covers it, nanoseconds: sources start and
/// stop within a second or two of each other.
const EDGE_NS: i64 = 3_000_000_000;

/// A recording on the command line.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its directory.
    pub dir: PathBuf,
    /// What the user called it.
    pub shown: String,
}

/// Why recordings cannot be one case.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// One of them cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Two have no time in common.
    #[error("{0} and {1} have no time in common: {2} and {3}; give recordings of the same time")]
    Apart(String, String, String, String),
    /// Two have different ids.
    #[error("{0} has the recording id {1}, and {2} has {3}: they are not one case; give recordings with one id")]
    Ids(String, String, String, String),
    /// The same directory twice.
    #[error("{0} is given twice; name each recording once")]
    Twice(String),
    /// Two loads that are not parts of one.
    #[error("{0} and {1} are two loads: {2}; give one of them, or shards of one load (`holdup run --shard`)")]
    Loads(String, String, String),
}

/// Recordings that are to be one case.
#[derive(Clone, Debug)]
pub struct Plan {
    inputs: Vec<Input>,
    manifests: Vec<Manifest>,
    hosts: Vec<String>,
    /// The time that is judged.
    range: Range<i64>,
}

impl Plan {
    /// Reads the manifests of `inputs`.
    ///
    /// # Errors
    /// If one cannot be read, or two have no time in common.
    pub fn new(inputs: Vec<Input>) -> Result<Self, FleetError> {
        let mut known = BTreeSet::new();
        if let Some(twice) = inputs.iter().find(|input| !known.insert(place(input))) {
            return Err(FleetError::Twice(twice.shown.clone()));
        }
        let manifests: Vec<Manifest> =
            inputs.iter().map(|input| Recording::manifest(&input.dir)).collect::<Result<_, _>>()?;
        one_case(&inputs, &manifests)?;
        let spans: Vec<Range<i64>> = manifests.iter().map(span).collect();
        for (a, first) in spans.iter().enumerate() {
            for (b, second) in spans.iter().enumerate().skip(a + 1) {
                if first.start >= second.end || second.start >= first.end {
                    let (of_a, of_b) = (inputs[a].shown.clone(), inputs[b].shown.clone());
                    return Err(FleetError::Apart(of_a, of_b, words(first), words(second)));
                }
            }
        }
        if let Some((a, b, why)) = loads::conflict(&manifests) {
            return Err(FleetError::Loads(inputs[a].shown.clone(), inputs[b].shown.clone(), why.to_owned()));
        }
        let loaded = manifests.iter().any(|manifest| manifest.load.is_some());
        let judged = manifests.iter().zip(&spans).filter(|(manifest, _)| !loaded || manifest.load.is_some());
        let range = judged
            .map(|(_, span)| span.clone())
            .reduce(|all, span| all.start.min(span.start)..all.end.max(span.end))
            .unwrap_or_default();
        Ok(Self { hosts: names(&inputs, &manifests), inputs, manifests, range })
    }

    /// The time that is judged: that of the load, or of all recordings where none made a load.
    pub fn range(&self) -> Range<i64> {
        self.range.clone()
    }

    /// Opens all as one: whole if they fit in memory together, else their course and one stretch, as
    /// [`Recording::open_excerpt`] does. With `part` only that part is judged.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn open(self, part: Option<Range<i64>>, choice: &Choice, measure: Measure<'_>) -> Result<Fleet, FleetError> {
        let mut sizes = Vec::new();
        for input in &self.inputs {
            sizes.push(groups(&input.dir)?);
        }
        let all = sizes.concat();
        let fits = |range: &Range<i64>| Room::new(&all, None, choice.limits.whole_bytes).fits(range);
        if fits(&self.range) {
            let range = self.range.clone();
            return self.joined(&range, None, measure);
        }
        if let Some(part) = part.clone().filter(|part| fits(part)) {
            let mut fleet = self.joined(&part, None, measure)?;
            fleet.recording.excerpt = Some(Arc::new(Excerpt { stretch: part, course: None, step_ns: 0 }));
            return Ok(fleet);
        }
        let mut step_ns = 0;
        let mut courses = Vec::new();
        let mut each = *choice;
        each.limits.course_samples /= self.inputs.len().max(1);
        for input in &self.inputs {
            let (course, step) = Recording::open_course(&input.dir, &each)?;
            step_ns = step.max(step_ns);
            courses.push(course);
        }
        let course = self.join_parts(courses, &|_, _| None);
        let room = Room::new(&all, part, choice.limits.stretch_bytes);
        let stretch = (choice.stretch)(&course.0.recording, &room);
        let mut fleet = self.joined(&stretch, Some(course.0), measure)?;
        fleet.recording.latencies.clear();
        if let Some(excerpt) = fleet.recording.excerpt.as_mut().and_then(Arc::get_mut) {
            (excerpt.stretch, excerpt.step_ns) = (stretch, step_ns);
        }
        Ok(fleet)
    }

    /// The fleet, of each recording what lies in `range`.
    fn joined(&self, range: &Range<i64>, course: Option<Joined>, measure: Measure<'_>) -> Result<Fleet, FleetError> {
        let open = |range: &Range<i64>, number: usize| {
            let (dir, span) = (&self.inputs[number].dir, span(&self.manifests[number]));
            let reaches = |at: i64, margin: i64| at.saturating_add(margin);
            let is_longer = span.start < reaches(range.start, -SAMPLES_MARGIN_NS)
                || span.end != i64::MAX && span.end > reaches(range.end, SAMPLES_MARGIN_NS);
            if is_longer || course.is_some() {
                Recording::open_stretch(dir, range)
            } else {
                Recording::open_condensed(dir)
            }
        };
        let parts: Vec<Recording> =
            (0..self.inputs.len()).map(|number| open(range, number)).collect::<Result<_, _>>()?;
        let (Joined { mut recording, machines, owners, tables, coverage_hosts }, parts) =
            self.join_parts(parts, measure);
        let mut of_course = Vec::new();
        if let Some(joined) = course {
            of_course = joined.machines;
            let course = Some(joined.recording);
            recording.excerpt = Some(Arc::new(Excerpt { stretch: range.clone(), course, step_ns: 0 }));
        }
        let mut fleet = Fleet {
            recording,
            parts,
            range: self.range.clone(),
            coverage_hosts,
            owners,
            tables,
            machines,
            course: of_course,
            seen_from: None,
        };
        fleet.add_coverage();
        if let Some(first) = fleet.machines().first() {
            fleet.look_from(*first);
        }
        Ok(fleet)
    }

    /// Joins recordings that were read.
    fn join_parts(&self, mut recordings: Vec<Recording>, measure: Measure<'_>) -> (Joined, Vec<Part>) {
        let target = self.manifests.iter().find_map(part::target_port);
        let named = self.hosts.iter().zip(&self.inputs).zip(&recordings);
        let mut parts: Vec<Part> = named
            .map(|((host, input), recording)| Part {
                roles: part::roles(recording, target.as_deref()),
                ..Part::new(host.clone(), input.shown.clone(), recording)
            })
            .collect();
        let reference = parts.iter().position(|part| part.load.is_some()).unwrap_or_default();
        let clocks = clocks::place(&recordings, &self.hosts, reference, measure);
        for (number, ((part, recording), clock)) in parts.iter_mut().zip(&mut recordings).zip(clocks).enumerate() {
            part.is_reference = number == reference;
            if let Some(clock) = &clock {
                join::move_times(recording, clock.offset_ns);
            }
            part.clock = clock;
        }
        (join::join(recordings, &mut parts, &self.range), parts)
    }
}

impl Fleet {
    /// Says in the coverage which part covers only some of the time, and which clock is unknown.
    fn add_coverage(&mut self) {
        for part in &self.parts {
            for why in [self.gap(part), unmeasured(part)].into_iter().flatten() {
                let coverage = &mut self.recording.manifest.coverage;
                coverage.push(Coverage::new("recording", CoverageState::Partial, Some(why)));
                self.coverage_hosts.push(part.host.clone());
            }
        }
    }

    /// Which part of the judged time `part` lacks, in words.
    pub fn gap(&self, part: &Part) -> Option<String> {
        let covered = part.covered();
        let (from, to) = (covered.start.max(self.range.start), covered.end.min(self.range.end));
        let lacks = from.saturating_sub(self.range.start).max(self.range.end.saturating_sub(to));
        let all = self.range.end.saturating_sub(self.range.start);
        (self.range.end != i64::MAX && lacks > EDGE_NS).then(|| {
            let share = to.saturating_sub(from).max(0) as f64 / all.max(1) as f64;
            format!("was recorded from {} only, {:.0} % of the time that is judged", words(&(from..to)), 100.0 * share)
        })
    }
}

/// What is to be said of a clock that nothing was measured of.
fn unmeasured(part: &Part) -> Option<String> {
    (part.clock.is_none() && !part.is_reference).then(|| {
        "its clock was taken as right: it shares no requests with the other hosts (trace ids in spans or statements \
         would show them)"
            .to_owned()
    })
}

/// Checks that no two recordings have different ids. One without an id may be of any case.
fn one_case(inputs: &[Input], manifests: &[Manifest]) -> Result<(), FleetError> {
    let mut ids =
        inputs.iter().zip(manifests).filter_map(|(input, of)| Some((&input.shown, of.recording_id.as_ref()?)));
    let Some((first, id)) = ids.next() else { return Ok(()) };
    let differs = ids.find(|(_, other)| *other != id);
    differs
        .map_or(Ok(()), |(other, found)| Err(FleetError::Ids(first.clone(), id.clone(), other.clone(), found.clone())))
}

/// The directory itself, wherever links lead.
fn place(input: &Input) -> PathBuf {
    input.dir.canonicalize().unwrap_or_else(|_| input.dir.clone())
}

/// When it was recorded; a recording that goes on has no end.
fn span(manifest: &Manifest) -> Range<i64> {
    manifest.started_at..manifest.ended_at.unwrap_or(i64::MAX)
}

/// A time in words.
fn words(range: &Range<i64>) -> String {
    let end = if range.end == i64::MAX { "now".to_owned() } else { clock::rfc3339(range.end) };
    format!("{} to {end}", clock::rfc3339(range.start))
}

/// A name for each host: its own if all have one and none has another's, else its recording's.
fn names(inputs: &[Input], manifests: &[Manifest]) -> Vec<String> {
    let own: BTreeSet<&str> = manifests.iter().filter_map(|manifest| manifest.host.name.as_deref()).collect();
    if own.len() == manifests.len() {
        return manifests.iter().filter_map(|manifest| manifest.host.name.clone()).collect();
    }
    let base = |input: &Input| {
        let name = input.shown.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if name.is_empty() { "recording".to_owned() } else { name.to_owned() }
    };
    let mut names: Vec<String> = Vec::new();
    for input in inputs {
        let name = base(input);
        let same = inputs.iter().filter(|other| base(other) == name).count();
        // Folders of one name get a number.
        let number = names.len() + 1;
        names.push(if same > 1 { format!("{name}-{number}") } else { name });
    }
    names
}
