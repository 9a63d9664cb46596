//! Runs collectors beside the load: one thread each, one sample per interval, with its cost
//! measured on its thread's CPU clock. A source that does not answer yet is recorded once it does. A slow source delays only itself: late samples are skipped,
//! and a read so long that samples were missed is an event of kind gap. A collector that panics has
//! failed, as the coverage then says; the others continue.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::writer::RowSink;
use holdup_recording::{Batch, Coverage, CoverageState, Labels, clock};

use crate::Collector;
use crate::arrival::{self, LOOK_EVERY};
pub use crate::arrival::{Arrival, NoAnswer};
use crate::changes::Known;
use crate::own_thread::lock;
use crate::reading::{event, thread_cpu_time};

/// The running collectors.
pub struct Running {
    workers: Vec<Worker>,
    news: mpsc::Receiver<String>,
}

struct Worker {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Coverage>>,
    /// As it is known so far.
    coverage: Arc<Mutex<Vec<Coverage>>>,
}

/// For how long the start of a recording, and so the load, waits for first samples: what is captured or counted from then on
/// misses no request. A source that needs longer delays nothing else.
const FIRST_SAMPLES: Duration = Duration::from_millis(250);

/// What the threads of all collectors have in common.
#[derive(Clone)]
struct Common {
    sink: RowSink,
    interval: Duration,
    news: mpsc::Sender<String>,
}

/// Asks all sources, each given with its address, until a recording can begin. Tells `say` what is
/// missing and why.
///
/// # Errors
/// If no source answers within a bounded time, or `stop` was set.
pub fn ask(
    sources: Vec<(String, Box<dyn Collector>)>,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Arrival>, NoAnswer> {
    arrival::first_answers(sources, stop, say)
}

/// Starts to record all `arrivals`, at one sample every `interval`. Those that have not answered yet
/// begin when they do. Returns when all others have sampled once, or after [`FIRST_SAMPLES`].
pub fn start(arrivals: Vec<Arrival>, sink: &RowSink, interval: Duration) -> std::io::Result<Running> {
    let mut workers = Vec::new();
    let (sender, news) = mpsc::channel();
    let common = Common { sink: sink.clone(), interval, news: sender };
    let (reading, all_have_read) = mpsc::channel();
    for arrival in arrivals {
        let (stop, stopped) = mpsc::channel();
        let coverage = Arc::new(Mutex::new(arrival.coverage()));
        let (common, shown, reading) = (common.clone(), Arc::clone(&coverage), reading.clone());
        // Linux cuts thread names at 15 bytes.
        let name: String = format!("collect {}", arrival.source()).chars().take(15).collect();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || record(arrival, &common, &shown, &stopped, reading))?;
        workers.push(Worker { stop, thread, coverage });
    }
    drop(reading);
    // It is disconnected once each thread has dropped its end.
    let _ = all_have_read.recv_timeout(FIRST_SAMPLES);
    Ok(Running { workers, news })
}

impl Running {
    /// What has changed since the last call: lines about sources that do not answer yet, or do now.
    pub fn news(&self) -> Vec<String> {
        self.news.try_iter().collect()
    }

    /// The coverage as far as it is known now; reads are counted at the end.
    pub fn coverage(&self) -> Vec<Coverage> {
        self.workers.iter().flat_map(|worker| lock(&worker.coverage).clone()).collect()
    }

    /// Stops all collectors after one last sample each and returns their coverage and cost. A
    /// collector that hangs in a read is waited for at most `patience`.
    pub fn stop(self, patience: Duration) -> Vec<Coverage> {
        for worker in &self.workers {
            let _ = worker.stop.send(());
        }
        let deadline = Instant::now() + patience;
        let mut coverage = Vec::new();
        for worker in self.workers {
            while !worker.thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let known = lock(&worker.coverage).clone();
            if worker.thread.is_finished() {
                let failed = |_| stopped(known, CoverageState::Failed, "its collector panicked; please report this");
                coverage.extend(worker.thread.join().unwrap_or_else(failed));
            } else {
                let why = "did not respond any more when the run ended";
                coverage.extend(stopped(known, CoverageState::Partial, why));
            }
        }
        coverage
    }
}

/// The `coverage` of a collector that stopped without a report, for the reason `why`.
fn stopped(coverage: Vec<Coverage>, state: CoverageState, why: &str) -> Vec<Coverage> {
    coverage.into_iter().map(|part| Coverage { state, why: Some(why.to_owned()), ..part }).collect()
}

/// Waits for the first answer, then collects; returns the coverage when it is stopped. Drops `reading` after the first sample, or
/// where none can be had yet.
fn record(
    mut arrival: Arrival,
    common: &Common,
    shown: &Mutex<Vec<Coverage>>,
    stopped: &mpsc::Receiver<()>,
    reading: mpsc::Sender<()>,
) -> Vec<Coverage> {
    let gap = arrival.begin();
    common.sink.push(Batch { events: gap.into_iter().collect(), ..Batch::default() });
    let reading = Some(reading).filter(|_| arrival.is_answered());
    while !arrival.is_answered() {
        if !matches!(stopped.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
            return arrival.coverage();
        }
        let news = arrival.poll();
        if !news.is_empty() {
            *lock(shown) = arrival.coverage();
            news.into_iter().for_each(|text| drop(common.news.send(text)));
        }
    }
    match arrival.into_collector() {
        Some((collector, coverage)) => collect(collector, coverage, common, stopped, reading),
        None => Vec::new(),
    }
}

/// A read that exceeds both this and the interval is reported as a gap: seconds are missing
/// although the source did not fail.
const LATE: Duration = Duration::from_secs(1);

/// Settings are read again after this time, for what changed.
const SETTINGS_EVERY: Duration = Duration::from_secs(60);

/// Which settings to read along with a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingsRead {
    No,
    /// Those that changed are kept.
    Again,
    /// At the start and at the end: all of them.
    All,
}

/// Samples are shifted by up to this share (0-1) of an interval. Even load repeats every 1/rate,
/// and samples in step with it would always find the same phase of that cycle: a queue would look
/// always full, or always empty.
const SPREAD: f64 = 0.2;

/// The fractional parts of its multiples fill the range from 0 to 1 more evenly than random
/// numbers, however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// Time from the first sample to the one with this number.
fn due_after(number: u32, interval: Duration) -> Duration {
    let later = (f64::from(number) * GOLDEN_RATIO).fract() * SPREAD;
    interval * number + interval.mul_f64(later)
}

fn collect(
    mut collector: Box<dyn Collector>,
    mut coverage: Vec<Coverage>,
    Common { sink, interval, .. }: &Common,
    stopped: &mpsc::Receiver<()>,
    reading: Option<mpsc::Sender<()>>,
) -> Vec<Coverage> {
    let interval = *interval;
    let source = collector.source();
    let (begun, cpu_begun) = (Instant::now(), thread_cpu_time());
    let mut reads = ReadStats { source: source.clone(), interval, ..ReadStats::default() };
    reads.read(&mut collector, SettingsRead::All, sink);
    drop(reading);
    let mut number = 1;
    let mut settings_at = Instant::now();
    let wait = |number| due_after(number, interval).saturating_sub(begun.elapsed());
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait(number)) {
        let is_due = settings_at.elapsed() >= SETTINGS_EVERY;
        reads.read(&mut collector, if is_due { SettingsRead::Again } else { SettingsRead::No }, sink);
        if is_due {
            settings_at = Instant::now();
        }
        number += 1;
        while wait(number).is_zero() {
            number += 1;
        }
    }
    reads.read(&mut collector, SettingsRead::All, sink);
    let ReadStats { reads, gaps, last_error, panicked, .. } = reads;
    if let Some(own) = coverage.first_mut() {
        own.reads_total = reads;
        own.gaps_total += gaps;
        let cpu = cpu_begun.zip(thread_cpu_time()).map(|(a, b)| b - a + collector.other_cpu_time());
        own.cpu_ratio = cpu.map(|cpu| cpu.as_secs_f64() / begun.elapsed().as_secs_f64());
        if let Some(why) = panicked {
            (own.state, own.why) = (CoverageState::Failed, Some(why));
        } else if gaps > 0 && own.why.is_none() {
            own.state = CoverageState::Partial;
            own.why = Some(format!("{gaps} of {} reads failed: {last_error}", reads + gaps));
        }
    }
    coverage
}

/// The results of one collector's samples.
#[derive(Default)]
struct ReadStats {
    source: String,
    interval: Duration,
    /// The settings so far.
    known: Known,
    reads: u64,
    gaps: u64,
    last_error: String,
    /// Whether the previous read took too long; only the first of several in a row is reported.
    is_late: bool,
    /// The message about a panic; after a panic in its own sample the collector is not called
    /// again.
    panicked: Option<String>,
    is_dead: bool,
}

impl ReadStats {
    /// One sample, with `settings` if requested.
    fn read(&mut self, collector: &mut Box<dyn Collector>, settings: SettingsRead, sink: &RowSink) {
        if self.is_dead {
            self.gaps += 1;
            return;
        }
        let (mut batch, begun) = (Batch::default(), Instant::now());
        // After a panic the collector is not called again, so its inconsistent state stays unseen.
        let results = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut results = vec![collector.sample(&mut batch)];
            match settings {
                SettingsRead::No => {}
                SettingsRead::Again => results.push(collector.settings_again(&mut batch)),
                SettingsRead::All => results.push(collector.settings(&mut batch)),
            }
            (results, collector.has_panicked())
        }));
        let (results, has_panicked) = results.unwrap_or_else(|_| {
            self.is_dead = true;
            (Vec::new(), true)
        });
        for result in results {
            match result {
                Ok(()) => self.reads += 1,
                Err(error) => {
                    self.gaps += 1;
                    let text = error.to_string();
                    if text != self.last_error {
                        batch.events.push(self.event("gap", text.clone()));
                        self.last_error = text;
                    }
                }
            }
        }
        self.tell_of_late(begun.elapsed(), &mut batch);
        self.known.take(&mut batch, settings == SettingsRead::Again);
        if has_panicked && self.panicked.is_none() {
            let why = if self.is_dead {
                "its collector panicked, and nothing was read afterwards; please report this"
            } else {
                "one of its threads panicked, and that thread's data is missing afterwards; please report this"
            };
            batch.events.push(self.event("failed", why.to_owned()));
            self.panicked = Some(why.to_owned());
        }
        sink.push(batch);
    }

    fn tell_of_late(&mut self, took: Duration, batch: &mut Batch) {
        let is_late = took > self.interval.max(LATE);
        if is_late && !std::mem::replace(&mut self.is_late, is_late) {
            let text = format!("a read took {:.1} s: the samples due in that time are missing", took.as_secs_f64());
            batch.events.push(self.event("gap", text));
        }
        self.is_late = is_late;
    }

    fn event(&self, kind: &str, text: String) -> Event {
        event(&self.source, clock::now_ns(), kind, text, Labels::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::complete;
    use crate::own_thread::OwnThread;
    use crate::{ProbeError, ReadError};

    /// Panics at its second sample, itself or in a thread of its own.
    struct Broken {
        samples: u32,
        in_thread: bool,
        thread: Option<OwnThread>,
    }

    impl Collector for Broken {
        fn source(&self) -> String {
            "broken".to_owned()
        }

        fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
            Ok(vec![complete("broken")])
        }

        fn settings(&mut self, _: &mut Batch) -> Result<(), ReadError> {
            Ok(())
        }

        fn sample(&mut self, _: &mut Batch) -> Result<(), ReadError> {
            self.samples += 1;
            assert!(self.in_thread || self.samples < 2, "on purpose");
            if self.in_thread {
                let thread =
                    self.thread.get_or_insert_with(|| OwnThread::spawn("own", || panic!("on purpose")).unwrap());
                while self.samples == 2 && !thread.is_finished() {
                    std::thread::yield_now();
                }
            }
            Ok(())
        }

        fn has_panicked(&mut self) -> bool {
            self.thread.as_mut().is_some_and(OwnThread::has_panicked)
        }
    }

    #[test]
    fn a_collector_that_panics_has_failed_and_the_others_go_on() {
        for in_thread in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().join("recording");
            let host = holdup_recording::manifest::Host::default();
            let manifest = holdup_recording::Manifest::starting("x", clock::now_ns(), host);
            let recorder = holdup_recording::Recorder::create(&dir, &manifest).unwrap();
            let host = crate::host::make("host", &crate::watch::Options::default()).unwrap();
            let broken: Box<dyn Collector> = Box::new(Broken { samples: 0, in_thread, thread: None });
            let sources = [broken, host].map(|it| (String::new(), it)).into();
            let arrivals = ask(sources, &AtomicBool::new(false), &mut |_| ()).unwrap();
            let running = start(arrivals, &recorder.sink(), Duration::from_millis(20)).unwrap();
            let coverage = running.stop(Duration::from_secs(60));
            recorder.finish(manifest, holdup_recording::RunState::Complete).unwrap();
            let states: Vec<String> = coverage.iter().map(|part| format!("{} {:?}", part.source, part.state)).collect();
            assert_eq!(states[0], "broken Failed", "in a thread of its own: {in_thread}");
            assert!(coverage[0].why.as_ref().is_some_and(|why| why.contains("panic")), "{coverage:?}");
            assert!(coverage[1].state != CoverageState::Absent && coverage[1].reads_total > 0, "{coverage:?}");
            let recording = holdup_recording::Recording::open(&dir).unwrap();
            let events = &recording.tables.events.rows;
            assert_eq!(events.iter().filter(|event| event.kind == "failed").count(), 1, "{events:?}");
        }
    }

    #[test]
    fn a_read_that_takes_long_is_told_once_until_one_does_not() {
        let mut reads = ReadStats { interval: Duration::from_millis(200), ..ReadStats::default() };
        let mut batch = Batch::default();
        for ms in [100, 900, 3_000, 2_000, 100, 1_500] {
            reads.tell_of_late(Duration::from_millis(ms), &mut batch);
        }
        let told: Vec<&str> = batch.events.iter().map(|event| event.text.as_str()).collect();
        assert!(told.len() == 2 && told[0].contains("took 3.0 s") && told[1].contains("took 1.5 s"), "{told:?}");
        let mut slow = ReadStats { interval: Duration::from_secs(10), ..ReadStats::default() };
        slow.tell_of_late(Duration::from_secs(5), &mut batch);
        assert_eq!(batch.events.len(), 2, "no sample was due");
    }

    /// 70 requests a second, evenly: 35 of them begin between one sample and the next, and each is at a database for 57 % of the time until
    /// the next begins.
    #[test]
    fn samples_are_not_in_step_with_even_load() {
        let interval = Duration::from_millis(500);
        let due: Vec<f64> = (0..40).map(|number| due_after(number, interval).as_secs_f64()).collect();
        let there = due.iter().filter(|at| (**at * 70.0 + 0.3).fract() < 0.57).count();
        assert!((20..=26).contains(&there), "{there} of 40");
        assert!(due.windows(2).all(|two| (0.35..0.65).contains(&(two[1] - two[0]))), "{due:?}");
    }
}
