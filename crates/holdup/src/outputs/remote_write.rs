//! `prometheus:URL`: sends each second to a receiver of Prometheus remote write, from its own
//! thread.
//!
//! The load never waits for it: between them is a bounded queue, and what does not fit is dropped
//! and counted. A receiver that is away or busy gets the request again; one that refuses does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_collect::http::reason;
use holdup_recording::priority::give_way;

use super::endpoint::Endpoint;
use super::protobuf;

/// Seconds that are queued for a receiver that is away.
const QUEUE: usize = 300;

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The first pause before a request is repeated, and the longest.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MOST: Duration = Duration::from_secs(5);

/// How long after the end of the load the rest is still sent.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Most characters of an answer's text in a message.
const SAID_MOST: usize = 200;

/// A receiver and the thread that writes to it.
pub struct RemoteWrite {
    endpoint: Endpoint,
    queue: Option<SyncSender<Vec<u8>>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Why the first request was dropped or delayed.
    why: Mutex<Option<String>>,
    /// When to give up; none while the load runs.
    until: Mutex<Option<Instant>>,
}

/// The receiver's answer to one request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    /// Not now: its text, and the shortest pause before the next attempt.
    Later(String, Option<Duration>),
    /// Never.
    Refused(u16, String),
}

impl RemoteWrite {
    /// Checks that a receiver answers, by a request without series.
    ///
    /// # Errors
    /// If no server answers, or the server does not accept remote writes from holdup.
    pub fn open(endpoint: &Endpoint, notes: Sender<String>) -> Result<Self, String> {
        let agent = agent();
        let shown = &endpoint.shown;
        match protobuf::body(&[], 0).map_err(|e| e.to_string()).map(|body| send(&agent, endpoint, &body))? {
            Answer::Refused(status @ (401 | 403), _) => {
                return Err(format!(
                    "{shown} answers with status {status}: give user and password as http://USER:PASSWORD@…"
                ));
            }
            Answer::Refused(status @ (300..=399 | 404 | 405), _) => {
                return Err(format!(
                    "{shown} answers with status {status}: it does not accept remote writes there; Prometheus accepts them at /api/v1/write if started with --web.enable-remote-write-receiver"
                ));
            }
            Answer::Later(why, None) => return Err(format!("{shown} cannot be reached: {why}")),
            // It is busy, or rejects an empty request: the next requests will show.
            Answer::Taken | Answer::Later(_, Some(_)) | Answer::Refused(..) => {}
        }
        let (queue, bodies) = sync_channel(QUEUE);
        let state = Arc::new(State::default());
        let sending = Sending { endpoint: endpoint.clone(), state: Arc::clone(&state), notes, agent };
        let thread = std::thread::Builder::new().name("remote-write".to_owned());
        let thread = thread.spawn(move || sending.run(&bodies)).map_err(|e| e.to_string())?;
        Ok(Self { endpoint: endpoint.clone(), queue: Some(queue), state, thread: Some(thread) })
    }

    /// The queue for other threads.
    pub fn queue(&self) -> Option<Queue> {
        Some(Queue { queue: self.queue.clone()?, state: Arc::clone(&self.state) })
    }

    /// Waits a little while the rest is sent; reports what was not sent.
    pub fn finish(mut self) -> Option<String> {
        self.close();
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let (sent, dropped) = (count(&self.state.sent), count(&self.state.dropped));
        let why = locked(&self.state.why).take().unwrap_or_else(|| "it was too slow".to_owned());
        let all = sent + dropped;
        (dropped > 0).then(|| format!("{}: {dropped} of {all} writes were dropped: {why}", self.endpoint.shown))
    }

    fn close(&mut self) {
        *locked(&self.state.until) = Some(Instant::now() + AFTERWARDS);
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// If a run ends in an error, the rest is still sent for a while.
impl Drop for RemoteWrite {
    fn drop(&mut self) {
        self.close();
    }
}

/// The queue to a receiver's thread.
pub struct Queue {
    queue: SyncSender<Vec<u8>>,
    state: Arc<State>,
}

impl Queue {
    /// Queues `body`, if there is room for it.
    pub fn push(&self, body: Vec<u8>) {
        if self.queue.try_send(body).is_err() {
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The state of the sending thread.
struct Sending {
    endpoint: Endpoint,
    state: Arc<State>,
    notes: Sender<String>,
    agent: ureq::Agent,
}

impl Sending {
    fn run(&self, bodies: &Receiver<Vec<u8>>) {
        give_way();
        while let Ok(body) = bodies.recv() {
            let counted = if self.deliver(&body) { &self.state.sent } else { &self.state.dropped };
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends `body`; true once the receiver has accepted it.
    fn deliver(&self, body: &[u8]) -> bool {
        let mut wait = BACKOFF;
        while !self.is_late() {
            match send(&self.agent, &self.endpoint, body) {
                Answer::Taken => return true,
                Answer::Refused(status, said) => {
                    self.note(&format!("status {status}{said}"), "holdup drops what it refuses");
                    return false;
                }
                Answer::Later(why, at_least) => {
                    self.note(&why, "holdup tries again");
                    self.sleep(wait.max(at_least.unwrap_or_default()).min(BACKOFF_MOST));
                    wait = (wait * 2).min(BACKOFF_MOST);
                }
            }
        }
        false
    }

    fn is_late(&self) -> bool {
        locked(&self.state.until).is_some_and(|until| Instant::now() >= until)
    }

    fn sleep(&self, length: Duration) {
        let until = Instant::now() + length;
        while Instant::now() < until && !self.is_late() {
            std::thread::sleep(Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Reports the first problem.
    fn note(&self, why: &str, then: &str) {
        let mut first = locked(&self.state.why);
        if first.is_none() {
            let _ = self.notes.send(format!("{}: {why}; {then}, and the load goes on", self.endpoint.shown));
            *first = Some(why.to_owned());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No redirects (they could carry the password elsewhere) and no proxy from the environment.
fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("holdup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn send(agent: &ureq::Agent, endpoint: &Endpoint, body: &[u8]) -> Answer {
    let mut request = agent
        .post(&endpoint.url)
        .header("Content-Encoding", "snappy")
        .header("Content-Type", "application/x-protobuf")
        .header("X-Prometheus-Remote-Write-Version", "0.1.0");
    if let Some(authorization) = &endpoint.authorization {
        request = request.header("Authorization", authorization);
    }
    match request.send(body) {
        Ok(mut response) => {
            let status = response.status().as_u16();
            let after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            let said = response.body_mut().with_config().limit(64 << 10).read_to_string().unwrap_or_default();
            answer(status, after, &said)
        }
        Err(error) => Answer::Later(reason(&error), None),
    }
}

/// The meaning of a status (remote write 1.0, "Retries & Backoff").
fn answer(status: u16, retry_after_s: Option<u64>, said: &str) -> Answer {
    let words: String = said.trim().chars().filter(|c| !c.is_control()).take(SAID_MOST).collect();
    let words = if words.is_empty() { words } else { format!(": {words}") };
    match status {
        200..=299 => Answer::Taken,
        429 | 500..=599 => {
            Answer::Later(format!("status {status}{words}"), Some(Duration::from_secs(retry_after_s.unwrap_or(0))))
        }
        _ => Answer::Refused(status, words),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    use super::*;

    /// A receiver that answers the n-th request with the n-th of `statuses`, and the last of them from then on; the
    /// requests that it took.
    fn receiver(statuses: &'static [u16]) -> (Endpoint, Receiver<u16>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}/w", listener.local_addr().unwrap())).unwrap();
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let mut got = Vec::new();
                let mut buffer = [0; 4_096];
                let whole = |got: &[u8]| {
                    let text = String::from_utf8_lossy(got).to_ascii_lowercase();
                    let Some(head) = text.find("\r\n\r\n") else { return false };
                    let length =
                        text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
                    got.len() >= head + 4 + length.unwrap_or(0)
                };
                while !whole(&got) {
                    let n = stream.read(&mut buffer).unwrap();
                    assert!(n > 0, "the request was cut off");
                    got.extend(&buffer[..n]);
                }
                let status = statuses[n.min(statuses.len() - 1)];
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\nConnection: close\r\n\r\nwhy");
                // Before the answer: its reader may look at once.
                let _ = sender.send(status);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (endpoint, seen)
    }

    #[test]
    fn a_busy_receiver_is_retried_and_a_refusal_is_not() {
        let (endpoint, seen) = receiver(&[204, 503, 429, 204, 400, 204]);
        let (notes, said) = channel();
        let remote = RemoteWrite::open(&endpoint, notes).unwrap();
        let queue = remote.queue().unwrap();
        (0..3).for_each(|_| queue.push(vec![1]));
        drop(queue);
        let end = remote.finish().unwrap();
        assert!(end.ends_with("1 of 3 writes were dropped: status 503: why"), "{end}");
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [204, 503, 429, 204, 400, 204]);
        assert_eq!(said.try_iter().count(), 1, "once");
    }

    #[test]
    fn a_receiver_that_goes_away_does_not_block_the_run() {
        let (endpoint, _seen) = receiver(&[204, 503]);
        let remote = RemoteWrite::open(&endpoint, channel().0).unwrap();
        let queue = remote.queue().unwrap();
        (0..QUEUE + 50).for_each(|_| queue.push(vec![1]));
        drop(queue);
        let end = remote.finish().unwrap();
        assert!(end.contains(&format!("{0} of {0} writes", QUEUE + 50)), "{end}");
    }

    #[test]
    fn an_unreachable_or_wrong_receiver_is_found_at_once() {
        let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = Endpoint::parse(&format!("http://u:s3cret@{down}/w?token=s3cret")).unwrap();
        let why = RemoteWrite::open(&endpoint, channel().0).err().unwrap();
        assert!(why.contains("refused") && !why.contains("s3cret"), "{why}");
        for (statuses, words) in [(&[404][..], "/api/v1/write"), (&[401], "user and password"), (&[302], "302")] {
            let why = RemoteWrite::open(&receiver(statuses).0, channel().0).err().unwrap();
            assert!(why.contains(words), "{why}");
        }
        assert!(RemoteWrite::open(&receiver(&[503]).0, channel().0).is_ok(), "busy is no reason to give up");
    }
}
