//! Makes one recording from beginning to end: probe the sources, check the target, record, send the
//! load, stop. All errors in the input are found before a file is written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use holdup_collect::ProbeError;
use holdup_collect::run::{self as collectors, Arrival, NoAnswer};
use holdup_collect::slow::SlowRequests;
use holdup_collect::watch::{self, Options};
use holdup_diagnose::CHOICE;
use holdup_load::engine::{Engine, OperationSummary, Outputs, Summary};
use holdup_load::scenario::{EndReason, RateOf, Scenario, WarmUp};
use holdup_load::schedule::Share;
use holdup_load::stats::{Live, Second};
use holdup_recording::hlog::Interval;
use holdup_recording::manifest::{Aborted, Host, LoadFacts, Threshold, Totals};
use holdup_recording::objective::Judgement;
use holdup_recording::pipeline::Stage;
use holdup_recording::priority::give_way;
use holdup_recording::reader::SEARCH;
use holdup_recording::rows::Event;
use holdup_recording::{Batch, Labels, Limits, Manifest, Recorder, Recording, RunState, clock, files, hlog};

use crate::around;
use crate::descriptors;
use crate::ending;
use crate::failure::Failure;
use crate::objectives::Objectives;
use crate::outputs::{self, Feed, Outputs as Ways};
use crate::progress::{Moment, Progress};
use crate::recorded::Recorded;
use crate::replay::PlayedFacts;
use crate::storing::{Storing, Target};
use crate::underway::Underway;

/// A recording to make.
pub struct Session<'a> {
    /// The recording's name.
    pub name: &'a str,
    /// The load to send; none to watch only.
    pub scenario: Option<&'a Scenario>,
    /// How long to watch without a load.
    pub watch_for: Option<Duration>,
    /// Objectives of what is watched without a load.
    pub thresholds: Vec<Threshold>,
    /// The stages of the pipeline, in place of the scenario's.
    pub pipeline: &'a [Stage],
    /// Addresses of sources.
    pub watch: &'a [String],
    /// Time between samples.
    pub interval: Duration,
    /// The recording's directory.
    pub dir: &'a Path,
    /// Accept sources that lack a grant and can be read only in part.
    pub partial: bool,
    /// Requests slower than this are examined by sources that can do so; none to disable that.
    pub slow: Option<Duration>,
    /// The limits of the recording's size.
    pub limits: Limits,
    /// The id that the recordings of one case share on all hosts.
    pub recording_id: Option<&'a str>,
    /// The store to send it to, beside its directory.
    pub store: Option<&'a Target>,
}

impl<'a> Session<'a> {
    /// A session that samples the sources `watch` every `interval`, without load, objectives and store.
    pub fn new(name: &'a str, watch: &'a [String], interval: Duration, dir: &'a Path) -> Self {
        Self {
            name,
            scenario: None,
            watch_for: None,
            thresholds: Vec::new(),
            pipeline: &[],
            watch,
            interval,
            dir,
            partial: false,
            slow: None,
            limits: Limits::default(),
            recording_id: None,
            store: None,
        }
    }

    /// The stages of the pipeline: the session's, or else the scenario's.
    fn stages(&self) -> Vec<Stage> {
        let of_scenario = self.scenario.map_or(&[][..], |scenario| &scenario.pipeline);
        if self.pipeline.is_empty() { of_scenario } else { self.pipeline }.to_vec()
    }
}

/// How a load, or watching, ended.
struct Ending {
    interrupted: bool,
    failed: Option<String>,
    played: Option<PlayedFacts>,
}

/// Everything a recording needs, checked and ready.
struct Ready<'a> {
    arrivals: Vec<Arrival>,
    engine: Option<Engine<'a>>,
}

impl<'a> Ready<'a> {
    fn prepare(
        session: &Session<'a>,
        slow: Option<SlowRequests>,
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> Result<Self, Failure> {
        let options = Options { partial: session.partial, slow };
        let probes = session.scenario.map_or(&[][..], |scenario| &scenario.probes);
        let watched = session.watch.iter().map(String::as_str);
        watch::check_interval(watched, session.interval).map_err(Failure::unusable)?;
        let sources = session
            .watch
            .iter()
            .chain(probes)
            .map(|address| Ok((address.clone(), watch::collector(address, &options)?)))
            .collect::<Result<Vec<_>, ProbeError>>()
            .map_err(Failure::unusable)?;
        let connections = session.scenario.map_or(0, |scenario| scenario.slots().div_ceil(scenario.http.streams));
        descriptors::allow(connections)?;
        let engine = session.scenario.map(Engine::prepare).transpose().map_err(Failure::unusable)?;
        let arrivals = collectors::ask(sources, stop, &mut |text| progress.warn(text)).map_err(|why| match why {
            NoAnswer::Stopped => Failure::Interrupted,
            NoAnswer::Failed(why) => Failure::Unusable(why),
        })?;
        Ok(Self { arrivals, engine })
    }
}

/// Checks whether the session could be recorded, without recording: for sessions that follow
/// another.
///
/// # Errors
/// If a source or the target cannot be used.
pub fn check(session: &Session<'_>, progress: &mut Progress, stop: &AtomicBool) -> Result<(), Failure> {
    Ready::prepare(session, None, progress, stop).map(drop)
}

/// Records.
///
/// # Errors
/// If a source, the target or the directory cannot be used; nothing is left behind then.
pub fn record(session: &Session<'_>, progress: &mut Progress, stop: &AtomicBool) -> Result<Recorded, Failure> {
    record_to(&mut Ways::none(), session, progress, stop)
}

/// The same, and also sends the seconds of the load to `ways`.
///
/// # Errors
/// Also if one of `ways` cannot be opened.
pub fn record_to(
    ways: &mut Ways,
    session: &Session<'_>,
    progress: &mut Progress,
    stop: &AtomicBool,
) -> Result<Recorded, Failure> {
    session.store.map(|target| target.place(session.dir)).transpose()?;
    let slow = session.slow.map(SlowRequests::new);
    let Ready { arrivals, engine } = Ready::prepare(session, slow.clone(), progress, stop)?;

    ways.open(&outputs::run_name(session.dir), session.scenario.and_then(shard).as_deref())?;
    if let Some((scenario, engine)) = session.scenario.zip(engine.as_ref()) {
        around::set_up(scenario, engine, progress, stop)?;
    }

    let mut manifest = Manifest::starting(session.name, clock::now_ns(), host());
    manifest.coverage = arrivals.iter().flat_map(Arrival::coverage).collect();
    manifest.recording_id = session.recording_id.map(str::to_owned);
    manifest.thresholds.clone_from(&session.thresholds);
    manifest.pipeline = session.stages();
    manifest.scenario = session.scenario.and_then(|s| s.text.clone());
    manifest.load = session.scenario.zip(engine.as_ref()).map(|(scenario, engine)| load_facts(scenario, engine));
    let _recording = ending::Recording::begin();
    let mut recorder = Recorder::create_within(session.limits, session.dir, &manifest).map_err(Failure::unusable)?;
    let folder = recorder.folder();
    if let Some(slow) = slow {
        recorder.tap(Arc::new(move |rows| slow.note(rows)));
    }
    let storing = session.store.map(|target| Storing::begin(target, &folder, recorder.notifier())).transpose()?;
    let running = collectors::start(arrivals, &recorder.sink(), session.interval).map_err(Failure::unusable)?;
    let recording = Underway { recorder, running };

    let outcome = match engine {
        Some(engine) => put_load_on(&engine, ways, session, &recording, &mut manifest, progress, stop),
        None => {
            let interrupted = recording.wait(session.watch_for, &mut manifest, progress, stop);
            Ok(Ending { interrupted, failed: None, played: None })
        }
    };
    let Underway { recorder, running } = recording;
    if recorder.is_full() {
        recorder.sink().push(ended(clock::now_ns(), "the recording has reached its largest size (--max-size)"));
    }
    // A user who stops the recording does not wait for a source that hangs.
    manifest.coverage = running.stop(if stop.load(Ordering::Relaxed) { PATIENCE_STOPPED } else { PATIENCE });
    let interrupted = outcome.as_ref().map_or(true, |ending| ending.interrupted);
    let state = if interrupted { RunState::Interrupted } else { RunState::Complete };
    recorder.notices().iter().for_each(|notice| progress.warn(notice));
    let trouble = recorder.finish(manifest, state).err().map(|error| error.to_string());
    let Ending { interrupted, failed, played } = outcome?;
    // Opened without rows of samples and statements, and of a day on a busy host only in part, so
    // that it fits in memory.
    let mut recording = Recording::open_excerpt(&folder.place(), None, &CHOICE)
        .map_err(|e| Failure::Unusable(folder.shown(&e.to_string())))?;
    recording.dir = folder.current();
    // A load that its own objective ended did what it was asked to do.
    let is_aborted = recording.manifest.load.as_ref().is_some_and(|load| load.aborted.is_some());
    Ok(Recorded { recording, folder, interrupted: interrupted && !is_aborted, trouble, failed, played, storing })
}

fn put_load_on(
    engine: &Engine<'_>,
    ways: &mut Ways,
    session: &Session<'_>,
    recording: &Underway,
    manifest: &mut Manifest,
    progress: &mut Progress,
    stop: &AtomicBool,
) -> Result<Ending, Failure> {
    let recorder = &recording.recorder;
    let dir = recorder.folder().place();
    write_planned(engine, manifest, &dir, progress);
    let live = Live::default();
    let (sender, seconds) = mpsc::channel();
    // Set from outside and by an objective; the objective's result tells them apart.
    let end = Arc::new(AtomicBool::new(false));
    let objectives = session.scenario.map(|scenario| Objectives::for_scenario(scenario, Arc::clone(&end)));
    let (shown, moments) = mpsc::channel();
    let feed = ways.begin();
    if let Some(text) = ways.announcement() {
        progress.say(&text);
    }
    let kept = keep_seconds(seconds, feed, objectives, shown, dir.clone());
    let outputs = Outputs { rows: Some(recorder.sink()), seconds: Some(sender), live: live.clone() };
    let summary = std::thread::scope(|scope| {
        let load =
            std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, || engine.run(outputs, &end));
        let load = load.map_err(Failure::unusable)?;
        while !load.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            if stop.load(Ordering::Relaxed) || recorder.is_full() {
                end.store(true, Ordering::Relaxed);
            }
            recording.show_news(manifest, progress);
            moments.try_iter().for_each(|moment| progress.moment(moment));
            ways.troubles().iter().for_each(|trouble| progress.warn(trouble));
            progress.load(&live.get());
        }
        load.join()
            .map_err(|_| Failure::Unusable("the load loop failed; please report this".to_owned()))?
            .map_err(Failure::unusable)
    })?;
    progress.end();
    let over = session.scenario.and_then(around::ended_early);
    let early = over.as_ref().map(|over| format!("the load ended early: {}", over.text));
    let trouble = session.scenario.and_then(|scenario| around::tear_down(scenario, engine, progress));
    early.iter().chain(&trouble).for_each(|text| progress.say(text));
    write_search(&summary, &dir, progress)?;
    let (written, (judgements, aborted)) =
        kept.join().map_err(|_| Failure::Unusable("writing histograms failed; please report this".to_owned()))?;
    if let Err(error) = written {
        progress.say(&format!("failed to write {}: {error}", hlog::HLOG));
    }
    refusals(&summary).for_each(|text| progress.say(&text));
    let aborted = aborted.filter(|_| summary.interrupted);
    recorder.sink().push(events(&summary, manifest.load.as_ref(), over.as_ref(), aborted.as_ref()));
    if let Some(load) = &mut manifest.load {
        load.generator_cpu_ratio = Some(summary.cpu_ratio);
        load.totals = totals(&summary);
        (load.objectives, load.aborted) = (judgements, aborted);
    }
    manifest.phases.clone_from(&summary.phases);
    Ok(Ending {
        interrupted: summary.interrupted,
        played: PlayedFacts::from_summary(&summary),
        failed: over.filter(|over| over.is_failure).map(|over| over.text),
    })
}

/// Writes the planned phases; the exact ones follow at the end. A recording that is cut off has
/// these.
fn write_planned(engine: &Engine<'_>, manifest: &mut Manifest, dir: &Path, progress: &mut Progress) {
    manifest.phases = engine.phases(clock::now_ns());
    if let Err(error) = manifest.write(dir) {
        progress.warn(&format!("the phases are not in the manifest yet: {error}"));
    }
}

/// How writing the histograms ended, and the results of the objectives.
type Kept = (io::Result<()>, (Vec<Judgement>, Option<Aborted>));

/// Passes the seconds of a load to the histograms in `dir`, the outputs, the objectives and the live
/// view, in a thread of its own.
fn keep_seconds(
    seconds: Receiver<Second>,
    mut feed: Feed,
    mut objectives: Option<Objectives>,
    shown: Sender<Moment>,
    dir: PathBuf,
) -> JoinHandle<Kept> {
    let started = UNIX_EPOCH + Duration::from_nanos(clock::now_ns().unsigned_abs());
    std::thread::spawn(move || {
        give_way();
        let mut seconds = seconds.into_iter().inspect(|second: &Second| {
            feed.second(second);
            objectives.iter_mut().for_each(|objectives| objectives.second(second));
            let _ = shown.send(Moment::from_second(second));
        });
        let written = hlog::write(&dir, started, seconds.by_ref().flat_map(intervals));
        // A full disk ends the histograms; the other outputs go on.
        seconds.for_each(drop);
        (written, objectives.map(Objectives::finish).unwrap_or_default())
    })
}

/// Writes what a search played beside the tables, if the load was one.
fn write_search(summary: &Summary, dir: &Path, progress: &mut Progress) -> Result<(), Failure> {
    if let Some(search) = &summary.search {
        let text = serde_json::to_string(search).map_err(Failure::unusable)?;
        if let Err(error) = files::replace(&dir.join(SEARCH), text.as_bytes()) {
            progress.say(&format!("failed to write {SEARCH}: {error}"));
        }
    }
    Ok(())
}

/// The first message of the database for each kind of failure, which the counts do not include.
fn refusals(summary: &Summary) -> impl Iterator<Item = String> {
    let all = summary.refusals.iter();
    all.map(|(operation, outcome, said)| format!("{operation}: {outcome}: first message of the database: {said}"))
}

/// What happened to the load.
fn events(summary: &Summary, load: Option<&LoadFacts>, over: Option<&EndReason>, aborted: Option<&Aborted>) -> Batch {
    let mut events: Vec<Event> =
        summary.phases.iter().map(|phase| event(phase.from, "phase", phase.name.clone())).collect();
    if let Some(length) = summary.connected_in {
        let connections = load.map_or(0, |l| l.connections);
        let text = format!("connections for {connections} requests in flight opened in {:.3} s", length.as_secs_f64());
        events.push(event(summary.started_at, "connected", text));
    }
    if let Some(over) = over {
        events.push(event(summary.ended_at, "ended", format!("the load ended early: {}", over.text)));
    }
    events.extend(refusals(summary).map(|text| event(summary.ended_at, "refused", text)));
    if let Some(aborted) = aborted {
        let text = format!("the load ended early because of {}", aborted.text);
        events.push(event(aborted.at, "aborted", text));
    }
    Batch { events, ..Batch::default() }
}

/// Counts of the whole load, by operation.
fn totals(summary: &Summary) -> Vec<Totals> {
    let total = |o: &OperationSummary| Totals {
        operation: o.operation.clone(),
        offered: o.offered,
        completed: o.completed,
        errors: o.failures.clone(),
    };
    summary.operations.iter().map(total).collect()
}

fn event(observed_at: i64, kind: &str, text: String) -> Event {
    Event { observed_at, source: "holdup".to_owned(), kind: kind.to_owned(), text, labels: Labels::none() }
}

/// The event of an early end, with its reason.
fn ended(at: i64, why: &str) -> Batch {
    Batch { events: vec![event(at, "ended", why.to_owned())], ..Batch::default() }
}

/// The histograms of one second, as in `latency.hlog`.
fn intervals(second: Second) -> Vec<Interval> {
    let (from, length) = (second.from, second.to.saturating_sub(second.from));
    let parts = second.operations.into_iter().flat_map(|operation| {
        let name = hlog::clean(&operation.name);
        operation.latencies.into_parts().map(|(part, histogram)| (format!("{name}.{part}"), histogram))
    });
    let of_any = parts.filter(|(_, histogram)| !histogram.is_empty());
    of_any.map(|(tag, histogram)| Interval { tag, from, length, histogram }).collect()
}

/// How long to wait at the end for a source that hangs in a read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same after a stop: the recording should be finished within 2 s.
const PATIENCE_STOPPED: Duration = Duration::from_secs(1);

fn load_facts(scenario: &Scenario, engine: &Engine<'_>) -> LoadFacts {
    let spoken = scenario.target.sql.as_ref().map_or(scenario.http.version.name(), |database| database.dialect.name());
    let over_tls = if scenario.target.tls { " over tls" } else { "" };
    let measured = scenario.operations.iter().zip(scenario.measured()).filter(|(_, measured)| *measured);
    LoadFacts {
        target: scenario.target.url(),
        connections: scenario.slots(),
        timeout_ns: scenario.timeout.as_nanos() as i64,
        operations: measured.map(|(o, _)| o.name.clone()).collect(),
        thresholds: scenario.thresholds.clone(),
        generator_cpu_ratio: None,
        model: scenario.load.model(),
        rate_of: (scenario.rate_of == RateOf::Sessions).then(|| "sessions".to_owned()),
        protocol: format!("{spoken}{over_tls}"),
        loops: engine.loops(),
        wake_quantum_ns: scenario.generator.pace.quantum_ns(),
        shard: shard(scenario),
        warm_up_ns: match scenario.warm_up {
            WarmUp::Detect => None,
            WarmUp::None => Some(0),
            WarmUp::For(length) => Some(length.as_nanos() as i64),
        },
        ..LoadFacts::default()
    }
}

/// This process's share of the load, e.g. `2/5`; none if it is the whole load.
pub fn shard(scenario: &Scenario) -> Option<String> {
    let Share { index, of } = scenario.shard;
    (scenario.shard != Share::WHOLE).then(|| format!("{}/{of}", index + 1))
}

/// This machine, as the manifest describes it.
pub fn host() -> Host {
    let text = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let kernel = text("osrelease").trim().to_owned();
    let name = Some(text("hostname").trim().to_owned()).filter(|name| !name.is_empty());
    Host { kernel, name, cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32) }
}

/// The default directory of a recording: `recordings/<name>-<date>T<time>Z`.
pub fn default_dir(name: &str) -> PathBuf {
    let clean: String = name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '-' }).collect();
    let time = clock::rfc3339(clock::now_ns());
    let stamp: String = time.chars().take(19).filter(|c| *c != ':' && *c != '-').collect();
    Path::new("recordings").join(format!("{clean}-{stamp}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour of them takes gigabytes as rows.
    #[test]
    fn a_recording_is_judged_without_rows_of_samples() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session {
            name: "watch",
            scenario: None,
            watch_for: Some(Duration::from_millis(300)),
            thresholds: Vec::new(),
            pipeline: &[],
            watch: &["host".to_owned()],
            interval: Duration::from_millis(100),
            dir: &dir.path().join("recording"),
            partial: false,
            slow: None,
            limits: Limits::default(),
            recording_id: None,
            store: None,
        };
        let recorded = record(&session, &mut Progress::new(true, None), &AtomicBool::new(false)).unwrap();
        let tables = &recorded.recording.tables;
        assert!(tables.samples.present && tables.samples.rows.is_empty(), "{} rows", tables.samples.rows.len());
        let series = &tables.condensed.as_ref().unwrap().series;
        assert!(series.by_metric.contains_key("system_cpu_time_seconds_total"), "{:?}", series.sources);
        assert!(recorded.whole().is_ok() && !recorded.interrupted);
    }
}
