//! `--watch kubernetes:`: pods as the cluster's API reports them: limits, probes, restarts with
//! their reasons, and OOM kills. Inside a pod it uses the pod's service account, elsewhere a token
//! file. It lists pods and events of one namespace at its own slow pace, and changes nothing.
//! [`objects`] interprets the answers.

mod address;
mod api;
pub mod objects;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::kubernetes::objects::{ObjectTracker, ReadTime};
use holdup_recording::{Batch, Coverage, clock};

pub use self::address::{Address, PodEnvironment};
use self::api::{Api, ListError};
use crate::coverage::{Line as _, part};
use crate::options::Options;
use crate::own_thread::{OwnThread, lock};
use crate::reading::thread_cpu_time;
use crate::{Collector, ProbeError, ReadError};

/// Interval between two polls. All clients share the cluster's API, and its timestamps are whole
/// seconds.
const EVERY: Duration = Duration::from_secs(5);

/// Time limit for the last poll at the end.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// Largest number of rows waiting for the next sample.
const ROWS_MAX: usize = 100_000;

/// Pods of one namespace as a source.
pub struct Kubernetes {
    source: String,
    address: Address,
    /// Whether events may be listed, as `probe` found out.
    events: bool,
    every: Duration,
    poller: Option<Poller>,
    settings_read: u32,
    cpu: Duration,
}

/// The polling thread.
struct Poller {
    seen: Arc<Mutex<PollResults>>,
    /// Requests a last poll; dropping it ends the thread.
    end: mpsc::Sender<mpsc::Sender<()>>,
    thread: OwnThread,
}

/// Rows and errors since the last sample.
#[derive(Default)]
struct PollResults {
    batch: Batch,
    failed: Option<String>,
    left_out: usize,
    cpu: Option<Duration>,
}

/// Makes the collector for `kubernetes:…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Kubernetes::new(Address::parse(rest, &PodEnvironment::from_environment())?, EVERY)))
}

impl Kubernetes {
    /// A source for `address`, polled at this interval.
    pub fn new(address: Address, every: Duration) -> Self {
        let source = crate::kubernetes::objects::source(&address.namespace, address.pod.as_deref());
        let cpu = Duration::ZERO;
        Self { source, address, events: true, every, poller: None, settings_read: 0, cpu }
    }

    fn start(&self) -> Result<Poller, ReadError> {
        let api = Api::new(&self.address).map_err(ReadError)?;
        let seen = Arc::new(Mutex::new(PollResults::default()));
        let (end, ended) = mpsc::channel();
        // The cluster reports whole seconds, so an event of the current second is not older than
        // the recording.
        let now = clock::now_ns();
        let tracker = ObjectTracker::since(now - now.rem_euclid(1_000_000_000), self.address.selects_pods());
        let (events, every) = (self.events, self.every);
        let thread = OwnThread::spawn("kubernetes", {
            let seen = Arc::clone(&seen);
            move || look(&api, tracker, events, every, &seen, &ended)
        });
        let thread = thread.map_err(|e| ReadError(format!("cannot start the polling thread: {e}")))?;
        Ok(Poller { seen, end, thread })
    }

    /// Moves the collected rows into `batch`.
    fn take(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let Some(poller) = &self.poller else { return Ok(()) };
        let mut seen = lock(&poller.seen);
        let PollResults { batch: rows, failed, left_out, cpu } = std::mem::take(&mut *seen);
        seen.cpu = cpu;
        drop(seen);
        self.cpu = cpu.unwrap_or(self.cpu);
        batch.append(rows);
        if left_out > 0 {
            return Err(ReadError(format!(
                "{left_out} rows were dropped: samples came too late, and the buffer holds {ROWS_MAX} rows"
            )));
        }
        failed.map_or(Ok(()), |why| Err(ReadError(why)))
    }

    /// The command that grants an account the right to list pods and events.
    fn grant(&self) -> String {
        let namespace = &self.address.namespace;
        format!(
            "kubectl create role holdup -n {namespace} --verb=list --resource=pods,events; kubectl create rolebinding holdup -n {namespace} \
             --role=holdup --serviceaccount={namespace}:ACCOUNT"
        )
    }
}

/// Polls until the source is dropped; once more on request.
fn look(
    api: &Api,
    mut tracker: ObjectTracker,
    events: bool,
    every: Duration,
    seen: &Mutex<PollResults>,
    ended: &mpsc::Receiver<mpsc::Sender<()>>,
) {
    loop {
        let due = Instant::now() + every;
        once(api, &mut tracker, events, seen);
        match ended.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(done) => {
                once(api, &mut tracker, events, seen);
                let _ = done.send(());
                return;
            }
        }
    }
}

fn once(api: &Api, tracker: &mut ObjectTracker, events: bool, seen: &Mutex<PollResults>) {
    let (begun_at, begun) = (clock::now_ns(), Instant::now());
    let mut documents = Vec::new();
    let mut failed = None;
    for what in ["pods", "events"].into_iter().take(if events { 2 } else { 1 }) {
        match api.list(what) {
            Ok(listed) => {
                documents.extend(listed.documents);
                failed = failed.or(listed.cut.then(|| {
                    format!("only the first {} {what} were read; narrow it with pod= or selector=", api::MOST)
                }));
            }
            Err(refused) => failed = Some(format!("{what}: {refused}")),
        }
    }
    let window_ns = begun.elapsed().as_nanos() as i64;
    let batch = tracker.take(&documents, ReadTime { at: begun_at + window_ns / 2, window_ns });
    let mut seen = lock(seen);
    if seen.batch.len() + batch.len() > ROWS_MAX {
        seen.left_out += batch.len();
    } else {
        seen.batch.append(batch);
    }
    seen.failed = failed.or(seen.failed.take());
    seen.cpu = thread_cpu_time();
}

impl Collector for Kubernetes {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let unreachable = |why: String| ProbeError::unreachable(&self.source, why);
        let api = Api::new(&self.address).map_err(unreachable)?;
        let pods = api.list("pods").map_err(|refused| match refused {
            ListError::Denied(why) => ProbeError::denied(&self.source, format!("{why}; run: {}", self.grant())),
            ListError::Failed(why) => unreachable(why),
        })?;
        let mut parts = Vec::new();
        if pods.documents.iter().all(|document| document.pods() == 0) {
            let why = format!("no matching pod exists in namespace {} yet", self.address.namespace);
            let enable = format!("kubectl get pods -n {} --show-labels lists them", self.address.namespace);
            parts.push(part(&self.source, "pods").partial(why).enable(enable));
        }
        if let Err(refused) = api.list("events") {
            self.events = false;
            parts.push(part(&self.source, "events").absent(format!("events: {refused}")).enable(self.grant()));
        }
        Ok(Coverage::with_parts(&self.source, parts))
    }

    /// The polls report the settings of pods. At the end there is a last poll.
    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.settings_read += 1;
        let Some(poller) = self.poller.as_ref().filter(|_| self.settings_read > 1) else { return Ok(()) };
        let (done, is_done) = mpsc::channel();
        let asked = poller.end.send(done);
        let came = asked.is_ok() && is_done.recv_timeout(LAST_LOOK).is_ok();
        self.take(batch)?;
        if came {
            Ok(())
        } else {
            Err(ReadError("the API did not answer the last poll, at the end of the run".to_owned()))
        }
    }

    /// Each poll reads them.
    fn settings_again(&mut self, _: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.poller.is_none() {
            self.poller = Some(self.start()?);
        }
        self.take(batch)
    }

    fn has_panicked(&mut self) -> bool {
        self.poller.as_mut().is_some_and(|poller| poller.thread.has_panicked())
    }

    fn other_cpu_time(&self) -> Duration {
        self.cpu
    }
}
