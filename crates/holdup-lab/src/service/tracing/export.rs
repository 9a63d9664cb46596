//! Exports spans: a bounded queue, and a thread that empties it in batches over one HTTP/1.1
//! connection. A request never waits for it. Spans that find the queue full are dropped and
//! counted, and a refused batch is tried once more.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
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

/// Timeout of every operation on the connection.
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
    let mut connection = None;
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
        let sent = post(&mut connection, authority, &body).or_else(|_| post(&mut connection, authority, &body));
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

/// Posts one batch over the open connection, or a new one; keeps it only after success.
fn post(connection: &mut Option<TcpStream>, authority: &str, body: &str) -> io::Result<()> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => connect(authority)?,
    };
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8 * 1024 {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(io::Error::other(head.lines().next().unwrap_or_default().to_owned()));
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<u64>().ok());
    if let Some(length) = length {
        io::copy(&mut (&stream).take(length.min(64 * 1024)), &mut io::sink())?;
        *connection = Some(stream);
    }
    Ok(())
}

fn connect(authority: &str) -> io::Result<TcpStream> {
    let address = authority.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such host"))?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
