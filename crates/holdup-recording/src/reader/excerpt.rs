//! Recordings that do not fit in memory. Such a recording is read twice. The first pass reads its
//! *course*: requests, events, settings, and all samples thinned in time. From it the judge chooses
//! one *stretch*, around the onset of the episode, that the second pass reads in full. The times in
//! the files' row groups say which of them the second pass can skip.
//!
//! A recording that fits is read whole. If only a part of it is asked for, that part is read alone,
//! however short the recording is: so it makes no difference whether the rest is there at all.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{OpenError, Recording, SEARCH, joined};
use crate::condensed::{Condensed, Reader};
use crate::hlog;
use crate::rows::{Event, Exchange, Request, Sample, Session, Setting, Statement};
use crate::segment::{GroupSpan, SegmentError};
use crate::stored::{Part, Source, Table, group_spans, read_table};
use crate::table::Row;
use crate::tables::Tables;

/// How much of a recording is read into memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A recording of at most so many bytes in memory is read whole. An hour of 1,000 requests a
    /// second and 1,000 sessions takes some 400 MB.
    pub whole_bytes: u64,
    /// Bytes of the stretch that is read in full of a longer one. Beside it the course has to fit
    /// in 1 GB.
    pub stretch_bytes: u64,
    /// Samples that are kept of the course, and as many again of those that measure response time.
    pub course_samples: usize,
}

impl Limits {
    /// Within 1 GB in all.
    pub const GIGABYTE: Self = Self { whole_bytes: 448 << 20, stretch_bytes: 256 << 20, course_samples: 3 << 20 };
}

/// How the course is read, and which stretch is chosen from it.
#[derive(Clone, Copy)]
pub struct Choice {
    /// How much is read.
    pub limits: Limits,
    /// Whether samples of a metric measure response time, so that they are thinned last.
    pub is_fine: fn(&str) -> bool,
    /// The stretch to read in full.
    pub stretch: fn(&Recording, &Room<'_>) -> Range<i64>,
}

/// Which part of a recording is in memory.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// The stretch that was read in full, nanoseconds since the Unix epoch.
    pub stretch: Range<i64>,
    /// The course of all of it; none if only the stretch was asked for.
    pub course: Option<Recording>,
    /// Time between two samples of the course, at most, nanoseconds; 0 if all are there.
    pub step_ns: i64,
}

/// Rows around a stretch that are read with it: what happened in it may be written after it.
const MARGIN_NS: i64 = 10_000_000_000;

/// The same for samples: counters need a reading before it, and some sources are read once a minute.
pub(crate) const SAMPLES_MARGIN_NS: i64 = 60_000_000_000;

/// The stretch with `margin_ns` on either side.
fn with_margin(stretch: &Range<i64>, margin_ns: i64) -> Range<i64> {
    stretch.start.saturating_sub(margin_ns)..stretch.end.saturating_add(margin_ns)
}

/// The time of the rows of `table` that are read for `stretch`; all of them if none.
pub fn time_read(table: &str, stretch: &Range<i64>) -> Option<Range<i64>> {
    match table {
        _ if [Setting::TABLE, Event::TABLE].contains(&table) => None,
        _ if table == Sample::TABLE => Some(with_margin(stretch, SAMPLES_MARGIN_NS)),
        _ => Some(with_margin(stretch, MARGIN_NS)),
    }
}

/// Bytes of a row's texts, on average.
const TEXT_BYTES: usize = 128;

/// Memory of a row of table `R`, roughly.
fn row_bytes<R: Row>() -> usize {
    match R::TABLE {
        table if table == Sample::TABLE => 16,
        table if table == Statement::TABLE => 24,
        // Their texts are shared.
        table if table == Session::TABLE => size_of::<R>(),
        _ => size_of::<R>() + TEXT_BYTES,
    }
}

/// Where a recording's rows lie in time, and how much memory they take.
#[derive(Clone, Debug, Default)]
pub struct Extent(Vec<(GroupSpan, usize)>);

impl Extent {
    /// Adds `rows` rows of table `R` with times from `from` to `to`, both included.
    pub fn add<R: Row>(&mut self, rows: u64, from: i64, to: i64) {
        self.0.push((GroupSpan { from, to, rows }, row_bytes::<R>()));
    }

    /// Whether `part` fits in memory, so that [`Recording::open_excerpt`] reads it alone.
    pub fn fits(&self, part: &Range<i64>, limits: &Limits) -> bool {
        Room { groups: &self.0, part: None, bytes: limits.whole_bytes }.fits(part)
    }
}

/// The row groups of all tables of a directory, each with the memory of a row.
struct Groups<'d> {
    dir: &'d Path,
    all: Vec<(GroupSpan, usize)>,
}

impl Source for Groups<'_> {
    fn table<R: Row>(&mut self) -> Result<Table<R>, SegmentError> {
        self.all.extend(group_spans::<R>(self.dir)?.into_iter().map(|span| (span, row_bytes::<R>())));
        Ok(Table::absent())
    }
}

/// How much of a recording fits in memory.
pub struct Room<'r> {
    groups: &'r [(GroupSpan, usize)],
    /// The part that was asked for, if not all.
    pub part: Option<Range<i64>>,
    bytes: u64,
}

/// The row groups of the recording in `dir`, each with the memory of a row.
pub(crate) fn groups(dir: &Path) -> Result<Vec<(GroupSpan, usize)>, OpenError> {
    let mut groups = Groups { dir, all: Vec::new() };
    Tables::from_source(&mut groups)?;
    Ok(groups.all)
}

impl<'r> Room<'r> {
    /// Room of `bytes` for rows of `groups`.
    pub(crate) fn new(groups: &'r [(GroupSpan, usize)], part: Option<Range<i64>>, bytes: u64) -> Self {
        Self { groups, part, bytes }
    }
}

impl Room<'_> {
    /// Memory of the rows in `range`, bytes. Rows of a row group are taken as spread evenly.
    fn bytes_in(&self, range: &Range<i64>) -> u64 {
        let bytes = |(group, row_bytes): &(GroupSpan, usize)| {
            let (from, to) = (group.from.max(range.start), group.to.min(range.end));
            if from > to {
                return 0.0;
            }
            let length = |from: i64, to: i64| to.saturating_sub(from) as f64 + 1.0;
            let share = length(from, to) / length(group.from, group.to);
            group.rows as f64 * *row_bytes as f64 * share
        };
        self.groups.iter().map(bytes).sum::<f64>() as u64
    }

    /// The last time of any row, as far as the files say.
    fn last(&self) -> i64 {
        self.groups.iter().map(|(group, _)| group.to).filter(|to| *to < i64::MAX).max().unwrap_or(i64::MAX)
    }

    /// Whether the rows in `range` and next to it fit.
    pub fn fits(&self, range: &Range<i64>) -> bool {
        self.bytes_in(&with_margin(range, MARGIN_NS)) <= self.bytes
    }

    /// The longest stretch around `at` that fits, as far before it as after it where `within` has
    /// room.
    pub fn around(&self, at: i64, within: &Range<i64>) -> Range<i64> {
        let end = within.end.min(self.last().saturating_add(1));
        let reach = |ns: i64| at.saturating_sub(ns).max(within.start)..at.saturating_add(ns).min(end);
        let (mut short, mut long) = (0, end.saturating_sub(at).max(at.saturating_sub(within.start)).max(0));
        if self.fits(&reach(long)) {
            return reach(long);
        }
        while long - short > 1_000_000_000 {
            let middle = short + (long - short) / 2;
            if self.fits(&reach(middle)) { short = middle } else { long = middle }
        }
        reach(short)
    }
}

impl Recording {
    /// Opens the recording in `dir` for judging: as [`Self::open_condensed`] if it fits in memory,
    /// else its course and the stretch of `choice`. With `part` only that part is judged, so it is
    /// read alone if it fits: the rows that [`time_read`] says.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_excerpt(dir: &Path, part: Option<Range<i64>>, choice: &Choice) -> Result<Self, OpenError> {
        Self::manifest(dir)?;
        let limits = &choice.limits;
        let groups = groups(dir)?;
        let whole = Room::new(&groups, part.clone(), limits.whole_bytes);
        // The steps of a search are judged against each other.
        let is_search = dir.join(SEARCH).exists();
        if let Some(part) = part.filter(|part| !is_search && whole.fits(part)) {
            let mut recording = Self::open_stretch(dir, &part)?;
            recording.excerpt = Some(Arc::new(Excerpt { stretch: part, course: None, step_ns: 0 }));
            return Ok(recording);
        }
        if is_search || whole.fits(&(i64::MIN..i64::MAX)) {
            return Self::open_condensed(dir);
        }
        let (course, step_ns) = Self::open_course(dir, choice)?;
        let room = Room { bytes: limits.stretch_bytes, ..whole };
        let stretch = (choice.stretch)(&course, &room);
        let mut recording = Self::opened(dir, |dir| read_condensed(dir, Some(&stretch), |_| Vec::new()))?;
        recording.excerpt = Some(Arc::new(Excerpt { stretch, course: Some(course), step_ns }));
        Ok(recording)
    }

    /// The rows in `stretch` and next to it, all settings and events, and the load's latencies.
    pub(crate) fn open_stretch(dir: &Path, stretch: &Range<i64>) -> Result<Self, OpenError> {
        Self::opened(dir, |dir| read_condensed(dir, Some(stretch), hlog::read))
    }

    /// The course, and the time between its samples, nanoseconds.
    pub(crate) fn open_course(dir: &Path, choice: &Choice) -> Result<(Self, i64), OpenError> {
        let mut step_ns = 0;
        let course = Self::opened(dir, |dir| {
            let (tables, step) = read_course(dir, choice)?;
            step_ns = step;
            Ok((tables, hlog::read(dir)))
        })?;
        Ok((course, step_ns))
    }

    /// The course, if only a stretch of this recording was read in full.
    pub fn course(&self) -> Option<&Self> {
        self.excerpt.as_ref()?.course.as_ref()
    }

    /// The same, to add what was not recorded; none if the recording was cloned.
    pub fn course_mut(&mut self) -> Option<&mut Self> {
        Arc::get_mut(self.excerpt.as_mut()?)?.course.as_mut()
    }
}

/// All tables for judging, and what `latencies` reads beside them: whole, or with the rows in
/// `stretch` and next to it, and all settings and events.
pub(super) fn read_condensed(
    dir: &Path,
    stretch: Option<&Range<i64>>,
    latencies: impl FnOnce(&Path) -> Vec<hlog::Slice>,
) -> Result<(Tables, Vec<hlog::Slice>), OpenError> {
    let [near, near_samples] = [MARGIN_NS, SAMPLES_MARGIN_NS].map(|ns| stretch.map(|stretch| with_margin(stretch, ns)));
    let (near, near_samples) = (near.as_ref(), near_samples.as_ref());
    std::thread::scope(|scope| {
        let samples = scope.spawn(move || Reader::within(near_samples).samples(dir));
        let exchanges = read_table::<Exchange>(dir, near)?;
        let has_packets = !exchanges.rows.is_empty();
        let statements = scope.spawn(move || Reader::within(near).statements(dir, has_packets));
        let apart = [Sample::TABLE, Statement::TABLE, Exchange::TABLE];
        let mut tables = Tables::from_source(&mut Part(dir, |table| match table {
            _ if apart.contains(&table) => None,
            _ => Some(near.filter(|_| stretch.is_some_and(|stretch| time_read(table, stretch).is_some()))),
        }))?;
        let latencies = latencies(dir);
        let (samples, series) = joined(samples)?;
        let (statements, executions, totals) = joined(statements)?;
        (tables.samples, tables.statements, tables.exchanges) = (samples, statements, exchanges);
        tables.condensed = Some(Arc::new(Condensed { series, executions, totals }));
        Ok((tables, latencies))
    })
}

/// The tables of the course, and the time between its samples.
fn read_course(dir: &Path, choice: &Choice) -> Result<(Tables, i64), OpenError> {
    let most = choice.limits.course_samples;
    let reader = || Reader::thinned(most, choice.is_fine);
    let (samples, tables, totals) = std::thread::scope(|scope| {
        let samples = scope.spawn(|| reader().course_samples(dir));
        let course = [Request::TABLE, Setting::TABLE, Event::TABLE];
        let tables = Tables::from_source(&mut Part(dir, |table| course.contains(&table).then_some(None)))?;
        // Without requests, the counters of statements may be all that measures response time.
        let is_needed = tables.requests.rows.is_empty();
        let totals = is_needed.then(|| reader().totals(dir)).transpose()?;
        Ok::<_, OpenError>((joined(samples)?, tables, totals))
    })?;
    let ((samples, series, step_ns), mut tables) = (samples, tables);
    tables.samples = samples;
    let (statements, totals) = totals.unwrap_or_default();
    tables.statements = statements;
    tables.condensed = Some(Arc::new(Condensed { series, totals, ..Condensed::default() }));
    Ok((tables, step_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Host, Manifest};
    use crate::rows::Session;
    use crate::writer::write_table;
    use std::io::{Seek as _, SeekFrom, Write as _};

    const S: i64 = 1_000_000_000;
    const SECONDS: i64 = 4_000;

    /// 50 series a second, one of which is thinned last, a session and two statements.
    fn written() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest { ended_at: Some(SECONDS * S), ..Manifest::starting("long", 0, Host::default()) };
        manifest.write(dir.path()).unwrap();
        let sample = |second: i64, n: i64| Sample {
            observed_at: second * S,
            source: "host".into(),
            metric: if n == 0 { "fine".into() } else { format!("other_{n}") },
            value: (100 * second + n) as f64,
            ..Sample::default()
        };
        let samples = (0..SECONDS).map(|second| (0..50).map(|n| sample(second, n)).collect());
        write_table::<Sample>(dir.path(), samples).unwrap();
        let session = |second: i64| Session { observed_at: second * S, source: "mysql".into(), ..Session::default() };
        write_table::<Session>(dir.path(), (0..SECONDS).map(|second| vec![session(second)])).unwrap();
        let statement = |second: i64, kind: &str| Statement {
            observed_at: second * S,
            kind: kind.into(),
            calls: second,
            ..Statement::default()
        };
        let pair = |second| vec![statement(second, "execution"), statement(second, "digest_total")];
        write_table::<Statement>(dir.path(), (0..SECONDS).map(pair)).unwrap();
        let setting = Setting { name: "a".into(), ..Setting::default() };
        write_table::<Setting>(dir.path(), [vec![setting]]).unwrap();
        dir
    }

    const CHOICE: Choice = Choice {
        limits: Limits { whole_bytes: 1 << 20, stretch_bytes: 300_000, course_samples: 5_000 },
        is_fine: |metric| metric == "fine",
        stretch: |course, room| {
            assert!(course.tables.sessions.rows.is_empty());
            room.around(3_000 * S, &(0..SECONDS * S))
        },
    };

    fn points<'r>(recording: &'r Recording, metric: &str) -> &'r [(i64, f64)] {
        let condensed = recording.tables.condensed.as_ref().unwrap();
        condensed.series.by_metric[metric].values().next().unwrap()
    }

    #[test]
    fn a_stretch_is_read_in_full_and_the_rest_as_its_course() {
        let dir = written();
        let recording = Recording::open_excerpt(dir.path(), None, &CHOICE).unwrap();
        let stretch = recording.excerpt.as_ref().unwrap().stretch.clone();
        let seconds = (stretch.end - stretch.start) / S;
        assert_eq!((stretch.start + stretch.end) / 2, 3_000 * S);
        // Some 1,100 bytes a second.
        assert!((200..350).contains(&seconds), "{seconds}");
        let instants = |margin_ns: i64| -> Vec<i64> {
            let near = with_margin(&stretch, margin_ns);
            (0..SECONDS).map(|second| second * S).filter(|at| near.contains(at)).collect()
        };
        let times = |of: &[(i64, f64)]| of.iter().map(|(at, _)| *at).collect::<Vec<i64>>();
        assert_eq!(times(points(&recording, "other_7")), instants(SAMPLES_MARGIN_NS));
        let expected = instants(MARGIN_NS);
        let sessions = recording.tables.sessions.rows.iter().map(|row| row.observed_at);
        assert_eq!(sessions.collect::<Vec<i64>>(), expected);
        let condensed = recording.tables.condensed.as_ref().unwrap();
        assert_eq!(condensed.executions.within(i64::MIN, i64::MAX).count(), expected.len());
        assert_eq!(condensed.totals[0].readings.len(), expected.len());

        let course = recording.course().unwrap();
        assert_eq!(points(course, "fine").len(), SECONDS as usize);
        let step_ns = recording.excerpt.as_ref().unwrap().step_ns;
        assert_eq!((step_ns, points(course, "other_7").len()), (64 * S, 63));
        let totals = &course.tables.condensed.as_ref().unwrap().totals;
        assert!((600..=1_250).contains(&totals[0].readings.len()), "{}", totals[0].readings.len());
        assert_eq!((course.tables.settings.rows.len(), recording.tables.settings.rows.len()), (1, 1));
    }

    #[test]
    fn a_small_recording_is_read_whole() {
        let dir = written();
        let choice = Choice { limits: Limits::GIGABYTE, ..CHOICE };
        let whole = Recording::open_excerpt(dir.path(), None, &choice).unwrap();
        assert!(whole.excerpt.is_none());
        assert_eq!(points(&whole, "other_7").len(), SECONDS as usize);
    }

    /// A damaged row group is noticed only by who reads it.
    #[test]
    fn row_groups_of_another_time_are_not_read() {
        let dir = written();
        let file = std::fs::File::options().write(true).open(dir.path().join("samples.parquet"));
        let mut file = file.unwrap();
        file.seek(SeekFrom::Start(4)).unwrap();
        file.write_all(&[0xff; 64]).unwrap();
        assert!(Recording::open_excerpt(dir.path(), None, &CHOICE).is_err());
        let last = 3_900 * S..SECONDS * S;
        let part = Recording::open_excerpt(dir.path(), Some(last.clone()), &CHOICE).unwrap();
        assert_eq!(part.excerpt.as_ref().unwrap().stretch, last);
        assert!(part.course().is_none());
        assert_eq!(points(&part, "other_7").len(), 160);
    }
}
