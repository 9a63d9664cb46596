//! Ports and connections: HTTP/1.1 and HTTP/2 (including gRPC) on each port, distinguished by their
//! first bytes. One thread serves them all. Connections beyond the limit, without a timely request,
//! or idle for long are closed, so clients, however many or slow, cost no more than the limits say.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::Batch;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::bounds::Bounds;
use crate::connections::Shared;
use crate::http::answer;
use crate::intake::{Intake, RefusedBodies};

/// The first bytes of every HTTP/2 connection.
const HTTP2: &[u8; 4] = b"PRI ";

/// Longest head of a request.
const HEAD_BYTES_MAX: u32 = 16 << 10;

/// Concurrent calls on one HTTP/2 connection.
const STREAMS_MAX: u32 = 16;

/// Flow-control window of an HTTP/2 connection: bytes in transit that are not read yet.
const WINDOW_BYTES: u32 = 256 << 10;

/// A running receiver; dropping this stops it.
#[derive(Debug)]
pub struct Receiver {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Listens on all `addresses` for rows of `source`. The caller decides whether addresses other
    /// than loopback are allowed.
    ///
    /// # Errors
    /// The address, and why it cannot be opened.
    pub fn start(source: &str, addresses: &[SocketAddr], bounds: Bounds) -> Result<Self, (SocketAddr, io::Error)> {
        let mut listeners = Vec::new();
        for address in addresses {
            let listener = TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            });
            listeners.push(listener.map_err(|error| (*address, error))?);
        }
        let shared = Arc::new(Shared::new(Intake::new(source, bounds)));
        let (stop, stopped) = watch::channel(false);
        let bound = listeners.iter().map(|(address, _)| *address).collect();
        let of_thread = Arc::clone(&shared);
        let first = addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| (first, error))?;
        let thread = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || runtime.block_on(serve(listeners, of_thread, stopped)))
            .map_err(|error| (first, error))?;
        Ok(Self { addresses: bound, shared, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// All rows since the last call, and the receiver's own counters.
    pub fn drain(&self) -> Batch {
        self.shared.intake.drain()
    }

    /// Whether it, or one of its answers, has panicked.
    pub fn has_panicked(&self) -> bool {
        // It ends only with a drop or a panic.
        let is_over = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        is_over || self.shared.has_panicked.load(Ordering::Relaxed)
    }

    /// All bodies refused so far.
    pub fn refused_bodies(&self) -> RefusedBodies {
        self.shared.intake.refused_bodies()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listeners: Vec<(SocketAddr, TcpListener)>, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    for (_, listener) in listeners {
        let shared = Arc::clone(&shared);
        if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
            tokio::spawn(accept(listener, shared));
        }
    }
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let place = Slot(Arc::clone(&shared));
                if shared.connections.fetch_add(1, Ordering::Relaxed) >= shared.intake.bounds().connections_max {
                    // The client treats this as a server that is temporarily unavailable, and tries
                    // again.
                    shared.intake.count_refused_connection();
                    continue;
                }
                tokio::spawn(serve_one(stream, place));
            }
            // Most likely out of file descriptors: retrying at once would only burn CPU.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The slot of an open connection; returned when the connection ends, however it ends.
struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_one(stream: TcpStream, place: Slot) {
    let shared = Arc::clone(&place.0);
    let bounds = *shared.intake.bounds();
    let Some(is_http2) = is_http2(&stream, bounds.patience).await else { return };
    let _ = stream.set_nodelay(true);
    let requests = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&requests);
    let service = service_fn(move |request| {
        counted.fetch_add(1, Ordering::Relaxed);
        answer(request, Arc::clone(&shared))
    });
    let io = TokioIo::new(stream);
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX)
            .keep_alive_interval(bounds.idle / 2)
            .keep_alive_timeout(bounds.patience)
            .serve_connection(io, service);
        while_used(connection, &requests, &bounds).await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.patience)
            .max_buf_size(HEAD_BYTES_MAX as usize)
            .serve_connection(io, service);
        while_used(connection, &requests, &bounds).await;
    }
}

/// Serves until the connection ends or is idle for too long.
async fn while_used(connection: impl Future, requests: &AtomicU64, bounds: &Bounds) {
    let mut connection = std::pin::pin!(connection);
    let mut answered = 0;
    let mut patience = bounds.patience;
    while tokio::time::timeout(patience, &mut connection).await.is_err() {
        let asked = requests.load(Ordering::Relaxed);
        if asked == answered {
            return;
        }
        answered = asked;
        patience = bounds.idle;
    }
}

/// Whether the first bytes are HTTP/2's; none if they do not arrive in time.
async fn is_http2(stream: &TcpStream, patience: Duration) -> Option<bool> {
    let deadline = Instant::now() + patience;
    let mut first = [0; HTTP2.len()];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let count = tokio::time::timeout(left, stream.peek(&mut first)).await.ok()?.ok()?;
        if count == 0 {
            return None;
        }
        if !HTTP2.starts_with(first.get(..count)?) {
            return Some(false);
        }
        if count == HTTP2.len() {
            return Some(true);
        }
        // The bytes already there would be peeked again at once.
        tokio::time::sleep(Duration::from_millis(5).min(left)).await;
        if left.is_zero() {
            return None;
        }
    }
}
