//! `--watch probe:URL`: the service as a Kubernetes liveness probe sees it. A thread probes at the
//! configured interval, over a new connection each time like kubelet, and `sample` takes its
//! results. The rules decide whether these results would have had the container killed. A probe is
//! not part of the load, and is in no table of requests.
//!
//! A hanging probe blocks only its own thread; at the end holdup does not wait for it, and it is
//! not recorded.

mod address;
mod check;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::{Batch, Coverage, Labels, clock, metrics};

use self::address::Address;
use self::check::{Check, ProbeFailure, Reason};
use crate::coverage::{Line as _, complete};
use crate::options::Options;
use crate::own_thread::{OwnThread, lock};
use crate::reading::{Out, event, tell, thread_cpu_time};
use crate::{Collector, ProbeError, ReadError};

/// Time limit of the probe before the recording, whatever the configured timeout.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(1);

/// Largest number of results waiting for the next sample: at the fastest pace, more than a minute
/// of them.
const ANSWERS_MAX: usize = 10_000;

/// One probe as a source.
struct Probe {
    source: String,
    address: Address,
    prober: Option<Prober>,
    /// Consecutive failed probes, and the start of the first of them (ns since 1970).
    failing: Option<(u32, i64)>,
    cpu: Duration,
}

/// The probing thread. After a drop it ends with the probe in flight, without being waited for.
struct Prober {
    seen: Arc<Mutex<ProbeAnswers>>,
    _stop: mpsc::Sender<()>,
    thread: OwnThread,
}

/// The results so far.
#[derive(Default)]
struct ProbeAnswers {
    answers: Vec<Answer>,
    left_out: u64,
    cpu: Option<Duration>,
}

/// One finished probe.
struct Answer {
    begun_at: i64,
    length: Duration,
    result: Result<(), ProbeFailure>,
}

/// Makes the collector for `probe:URL`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = Address::parse(rest)?;
    let source = format!("probe:{}", address.shown);
    Ok(Box::new(Probe { source, address, prober: None, failing: None, cpu: Duration::ZERO }))
}

impl Probe {
    fn start(&self) -> std::io::Result<Prober> {
        let check = Check::new(&self.address.place, self.address.timeout);
        let seen = Arc::new(Mutex::new(ProbeAnswers::default()));
        let (stop, stopped) = mpsc::channel();
        let (every, delay) = (self.address.every, self.address.delay);
        let thread = OwnThread::spawn("probe", {
            let seen = Arc::clone(&seen);
            move || ask(&check, every, delay, &seen, &stopped)
        })?;
        Ok(Prober { seen, _stop: stop, thread })
    }

    /// The event for `answer`: a failure, or the first success after failures.
    fn event(&mut self, answer: &Answer) -> Option<Event> {
        let ended_at = answer.begun_at + answer.length.as_nanos() as i64;
        let event = |kind, text: String, labels| event(&self.source, ended_at, kind, text, labels);
        match &answer.result {
            Ok(()) => {
                let (in_a_row, since) = self.failing.take()?;
                let failed_ms = (ended_at - since) / 1_000_000;
                let labels = Labels::new([("in_a_row", in_a_row.to_string()), ("failed_ms", failed_ms.to_string())]);
                let text = format!("answered again after {in_a_row} failed probes in a row, {failed_ms} ms");
                Some(event("probe_recovered", text, labels))
            }
            Err(failed) => {
                let (before, since) = self.failing.unwrap_or((0, answer.begun_at));
                let in_a_row = before + 1;
                let duration_ms = answer.length.as_millis();
                let mut labels = Labels::new([
                    ("reason", failed.reason.name().to_owned()),
                    ("duration_ms", duration_ms.to_string()),
                    ("in_a_row", in_a_row.to_string()),
                ]);
                if let Reason::Status(status) = failed.reason {
                    labels = labels.with("status", status.to_string());
                }
                let text = format!(
                    "{}, after {duration_ms} ms; {in_a_row} in a row; at {} a liveness probe kills the container",
                    failed.text, self.address.failures
                );
                let event = event("probe_failed", text, labels);
                self.failing = Some((in_a_row, since));
                Some(event)
            }
        }
    }
}

/// Probes until the source is dropped. Like kubelet, it skips probes that fall due while one is in
/// flight.
fn ask(check: &Check, every: Duration, delay: Duration, seen: &Mutex<ProbeAnswers>, stopped: &mpsc::Receiver<()>) {
    let mut due = Instant::now() + delay;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        let result = check.once();
        let length = begun.elapsed();
        let mut seen = lock(seen);
        if seen.answers.len() < ANSWERS_MAX {
            seen.answers.push(Answer { begun_at, length, result });
        } else {
            seen.left_out += 1;
        }
        seen.cpu = thread_cpu_time();
        drop(seen);
        let now = Instant::now();
        due += every;
        while due <= now {
            due += every;
        }
    }
}

impl Collector for Probe {
    fn source(&self) -> String {
        self.source.clone()
    }

    /// Probes once, unless an initial delay is set. A failure does not stop the run: failures are
    /// what a probe is for. But the path may be wrong, so the coverage reports it.
    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let timeout = self.address.timeout.min(FIRST_LOOK_MAX);
        let failed = match self.address.delay.is_zero() {
            true => Check::new(&self.address.place, timeout).once().err(),
            false => None,
        };
        // A timeout shorter than configured is not a failure.
        let failed = failed.filter(|it| it.reason != Reason::Timeout || timeout == self.address.timeout);
        let own = complete(&self.source);
        Ok(vec![match failed {
            Some(failed) => own.partial(format!("the probe failed before the recording began: {}", failed.text)),
            None => own,
        }])
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let Address { every, timeout, failures, delay, .. } = &self.address;
        let seconds = |length: &Duration| length.as_secs_f64().to_string();
        let told = [
            ("probe.every_s", seconds(every)),
            ("probe.timeout_s", seconds(timeout)),
            ("probe.failures", failures.to_string()),
            ("probe.delay_s", seconds(delay)),
        ];
        tell(batch, &self.source, told);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.prober.is_none() {
            self.prober = Some(self.start().map_err(|e| ReadError(format!("cannot start the probe's thread: {e}")))?);
        }
        let Some(prober) = &self.prober else { return Ok(()) };
        let mut seen = lock(&prober.seen);
        let (answers, left_out) = (std::mem::take(&mut seen.answers), std::mem::take(&mut seen.left_out));
        self.cpu = seen.cpu.unwrap_or_default();
        drop(seen);
        for answer in answers {
            let mut out = Out::new(batch, &self.source);
            out.set_window(answer.begun_at, answer.length.as_nanos() as i64);
            out.put_plain(metrics::probe::SUCCESS, if answer.result.is_ok() { 1.0 } else { 0.0 });
            out.put_plain(metrics::probe::DURATION, answer.length.as_secs_f64());
            batch.events.extend(self.event(&answer));
        }
        if left_out > 0 {
            return Err(ReadError(format!(
                "{left_out} results of the probe were dropped: samples came too late, and the buffer holds {ANSWERS_MAX} results"
            )));
        }
        Ok(())
    }

    fn has_panicked(&mut self) -> bool {
        self.prober.as_mut().is_some_and(|prober| prober.thread.has_panicked())
    }

    fn other_cpu_time(&self) -> Duration {
        self.cpu
    }
}
