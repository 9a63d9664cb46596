//! Exports spans: a bounded queue, and a thread that empties it in batches over HTTP/1.1. A request
//! never waits for it. Spans that find the queue full are dropped and counted, and a refused batch is
//! tried once more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Span, wire};
use crate::service::ServiceError;

/// Most spans that wait to be sent: some seconds of a busy service.
const QUEUE: usize = 32_768;

/// Most spans per body, as in OpenTelemetry's packages.
const BATCH: usize = 512;

/// How long the thread waits to fill a batch. OpenTelemetry's packages wait five seconds; a lab may
/// be over by then.
const DELAY: Duration = Duration::from_millis(200);

/// Longest time of one request.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running exporter.
#[derive(Debug)]
pub struct Exporter {
    spans: RwLock<Option<SyncSender<Span>>>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Exporter {
    /// Begins to send to `endpoint`, e.g. `http://127.0.0.1:4318`.
    ///
    /// # Errors
    ///
    /// If the endpoint is not an address, or the system refuses a thread.
    pub fn start(endpoint: &str) -> Result<Self, ServiceError> {
        let authority = endpoint.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let authority = authority.filter(|rest| !rest.is_empty() && !rest.contains(['/', '@', '?']));
        let Some(authority) = authority.map(str::to_owned) else {
            let why = "write http://HOST:PORT, e.g. http://127.0.0.1:4318".to_owned();
            return Err(ServiceError::BadOption { option: "--otlp", why });
        };
        let authority = if authority.contains(':') { authority } else { authority + ":4318" };
        let (sender, receiver) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        let thread = thread::Builder::new()
            .name("spans".to_owned())
            .spawn(move || export(&authority, &receiver, &counted))
            .map_err(|source| ServiceError::System { what: "start a thread", source })?;
        Ok(Self { spans: RwLock::new(Some(sender)), dropped, thread: Mutex::new(Some(thread)) })
    }

    /// Takes a span, unless the queue is full.
    pub fn push(&self, span: Span) {
        let spans = self.spans.read().unwrap_or_else(PoisonError::into_inner);
        if spans.as_ref().is_none_or(|spans| spans.try_send(span).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends the remaining spans, and ends.
    pub fn finish(&self) {
        self.spans.write().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.finish();
    }
}

fn export(authority: &str, spans: &Receiver<Span>, dropped: &AtomicU64) {
    let agent = agent();
    let url = format!("http://{authority}/v1/traces");
    let mut has_warned = false;
    let mut is_over = false;
    while !is_over {
        let Ok(first) = spans.recv() else { break };
        let mut batch = vec![first];
        let due = Instant::now() + DELAY;
        while batch.len() < BATCH {
            match spans.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    is_over = true;
                    break;
                }
            }
        }
        let body = wire::body(&batch);
        // The second attempt uses a new connection: the receiver may have closed the old one
        // meanwhile.
        let sent = post(&agent, &url, &body).or_else(|_| post(&agent, &url, &body));
        if let Err(error) = sent {
            let lost = dropped.fetch_add(batch.len() as u64, Ordering::Relaxed) + batch.len() as u64;
            if !std::mem::replace(&mut has_warned, true) {
                eprintln!("spans: failed to send {lost} to {authority}: {error}; further failures are not reported");
            }
        }
    }
    let dropped = dropped.load(Ordering::Relaxed);
    if dropped > 0 {
        eprintln!("spans: {dropped} were dropped");
    }
}

/// No redirects, and no proxy from the environment: the receiver is one of the lab.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).max_redirects(0).proxy(None);
    config.build().into()
}

/// Posts one batch.
fn post(agent: &ureq::Agent, url: &str, body: &str) -> Result<(), ureq::Error> {
    let mut answer = agent.post(url).header("Content-Type", "application/json").send(body)?;
    // Read to its end, so that the connection can be used again.
    answer.body_mut().read_to_vec().map(drop)
}
