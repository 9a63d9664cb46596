//! Runs collectors beside the load: a thread each, one sample an interval, the cost of each measured on
//! its own thread's CPU clock. A slow source delays nobody but itself: late samples are skipped, and counted as gaps.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::writer::RowSink;
use holdup_recording::{Batch, Coverage, CoverageState, Labels, clock};

use crate::reading::thread_cpu_time;
use crate::{Collector, ProbeError};

/// Collectors at work.
pub struct Running {
    workers: Vec<Worker>,
}

struct Worker {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Coverage>>,
    coverage: Vec<Coverage>,
}

/// Probes all `collectors`, in order.
///
/// # Errors
/// The first source that can't be used.
pub fn probe(collectors: &mut [Box<dyn Collector>]) -> Result<Vec<Vec<Coverage>>, ProbeError> {
    collectors.iter_mut().map(|collector| collector.probe()).collect()
}

/// Starts all of `collectors`, whose coverage `probe` has found out, at one sample every `interval`.
pub fn start(
    collectors: Vec<Box<dyn Collector>>,
    coverage: Vec<Vec<Coverage>>,
    sink: &RowSink,
    interval: Duration,
) -> std::io::Result<Running> {
    let mut workers = Vec::new();
    for (collector, coverage) in collectors.into_iter().zip(coverage) {
        let (stop, stopped) = mpsc::channel();
        let (sink, found) = (sink.clone(), coverage.clone());
        // Linux cuts thread names at 15 bytes.
        let name: String = format!("collect {}", collector.source()).chars().take(15).collect();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || collect(collector, found, &sink, interval, &stopped))?;
        workers.push(Worker { stop, thread, coverage });
    }
    Ok(Running { workers })
}

/// How long a collector that hangs in a read is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    /// Stops all collectors after one last sample each and returns what they could see and what it cost.
    pub fn stop(self) -> Vec<Coverage> {
        for worker in &self.workers {
            let _ = worker.stop.send(());
        }
        let deadline = Instant::now() + PATIENCE;
        let mut coverage = Vec::new();
        for worker in self.workers {
            while !worker.thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if worker.thread.is_finished() {
                coverage.extend(worker.thread.join().unwrap_or(worker.coverage));
            } else {
                coverage.extend(worker.coverage.into_iter().map(|c| Coverage {
                    state: CoverageState::Partial,
                    why: Some("did not answer any more when the run ended".to_owned()),
                    ..c
                }));
            }
        }
        coverage
    }
}

fn collect(
    mut collector: Box<dyn Collector>,
    mut coverage: Vec<Coverage>,
    sink: &RowSink,
    interval: Duration,
    stopped: &mpsc::Receiver<()>,
) -> Vec<Coverage> {
    let source = collector.source();
    let (begun, cpu_begun) = (Instant::now(), thread_cpu_time());
    let (mut reads, mut gaps) = (0, 0);
    let mut last_error = String::new();
    let mut read = |collector: &mut Box<dyn Collector>, with_settings: bool| {
        let mut batch = Batch::default();
        let mut results = vec![collector.sample(&mut batch)];
        if with_settings {
            results.push(collector.settings(&mut batch));
        }
        for result in results {
            match result {
                Ok(()) => reads += 1,
                Err(error) => {
                    gaps += 1;
                    let text = error.to_string();
                    if text != last_error {
                        batch.events.push(Event {
                            observed_at: clock::now_ns(),
                            source: source.clone(),
                            kind: "gap".to_owned(),
                            text: text.clone(),
                            labels: Labels::none(),
                        });
                        last_error = text;
                    }
                }
            }
        }
        sink.push(batch);
    };
    read(&mut collector, true);
    let mut due = begun + interval;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
        read(&mut collector, false);
        let now = Instant::now();
        due += interval;
        while due <= now {
            due += interval;
        }
    }
    read(&mut collector, true);
    if let Some(own) = coverage.first_mut() {
        own.reads_total = reads;
        own.gaps_total = gaps;
        let cpu = cpu_begun.zip(thread_cpu_time()).map(|(a, b)| b - a + collector.other_cpu_time());
        own.cpu_ratio = cpu.map(|cpu| cpu.as_secs_f64() / begun.elapsed().as_secs_f64());
        if gaps > 0 && own.why.is_none() {
            own.state = CoverageState::Partial;
            own.why = Some(format!("{gaps} of {} reads failed: {last_error}", reads + gaps));
        }
    }
    coverage
}
