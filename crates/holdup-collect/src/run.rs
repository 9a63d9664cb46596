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

impl Running {
    /// Stops all collectors after one last sample each and returns what they could see and what it cost. One that hangs in a read
    /// is waited for so long.
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

/// By up to this share (0-1) of an interval samples come later than its beginning. Even load repeats itself every 1/rate, and in step with
/// it samples would find the same part of that cycle each time: what stands in a queue always, or never.
const SPREAD: f64 = 0.2;

/// Multiples of it, without their whole part, fill what is between 0 and 1 more evenly than random numbers, however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// How long after the first sample the one of that number is due.
fn due_after(number: u32, interval: Duration) -> Duration {
    let later = (f64::from(number) * GOLDEN_RATIO).fract() * SPREAD;
    interval * number + interval.mul_f64(later)
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
    let mut number = 1;
    let wait = |number| due_after(number, interval).saturating_sub(begun.elapsed());
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait(number)) {
        read(&mut collector, false);
        number += 1;
        while wait(number).is_zero() {
            number += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

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
