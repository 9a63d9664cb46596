//! A service whose capacity is known: a number of servers, each busy for an exact time with a
//! request, and a bounded waiting line before them (M/D/c/K in Kendall's notation, if requests come
//! at random). One thread speaks HTTP, and another waits for the moments at which requests end. A
//! request costs them nothing but waiting, so the capacity is that of the arithmetic in [`Line`] and
//! not of the CPU. Tests compare what a tool reports with these known figures. It is not a model of
//! a real service.
//!
//! If a client closes, the request it had in line is still served, as by a server that cannot see
//! that the client is gone.

mod line;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::body::{Body as _, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::service::http::HEAD_BYTES_MAX;
use crate::service::listener::{bind, own_address, set_backlog};
use crate::service::{Options, ServiceError};
use line::Line;
pub use line::Shape;

/// Connections that may wait in the kernel to be accepted. Small, because the line is to be the
/// only queue.
const BACKLOG: u32 = 4_096;

/// Pause after a connection could not be accepted, most likely for lack of file descriptors.
const AGAIN: Duration = Duration::from_millis(50);

/// What is still read of a connection before it is closed, and for how long.
const REST_BYTES_MAX: u64 = 256 * 1024;
const REST_WITHIN: Duration = Duration::from_millis(200);

/// The response to a request that finds no room.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// A 503.
    Refuse,
    /// A closed connection.
    Close,
    /// No answer, ever.
    Drop,
}

/// A running queue.
pub struct Server {
    /// Its address.
    pub listen: SocketAddr,
    queue: Arc<Queue>,
    stop: oneshot::Sender<()>,
    threads: [JoinHandle<()>; 2],
}

impl Server {
    /// Binds and begins to serve.
    ///
    /// # Errors
    ///
    /// If the address is not on loopback (and that was not allowed) or taken, or the system refuses
    /// epoll or a thread.
    pub fn start(options: &Options, shape: Shape, overflow: Overflow) -> Result<Self, ServiceError> {
        let listener = bind(options.listen, "--listen", options.allow_remote)?;
        set_backlog(&listener, BACKLOG)?;
        let listen = own_address(&listener)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|source| ServiceError::System { what: "use epoll", source })?;
        let queue = Arc::new(Queue::new(shape, overflow));
        let (stop, stopped) = oneshot::channel::<()>();
        let (most, serving, ending) = (options.max_connections as usize, Arc::clone(&queue), Arc::clone(&queue));
        let serve = move || {
            runtime.spawn(accept(listener, serving, most));
            let _ = runtime.block_on(stopped);
        };
        let started =
            |result: io::Result<_>| result.map_err(|source| ServiceError::System { what: "start a thread", source });
        let threads = [
            started(thread::Builder::new().name("queue".to_owned()).spawn(serve))?,
            started(thread::Builder::new().name("queue ends".to_owned()).spawn(move || ending.end_in_time()))?,
        ];
        Ok(Self { listen, queue, stop, threads })
    }

    /// Ends it; waiting requests are not answered.
    pub fn stop(self) {
        let _ = self.stop.send(());
        self.queue.state().is_over = true;
        self.queue.changed.notify_one();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// The line, and who waits for the end of each request in it.
struct Queue {
    begun: Instant,
    overflow: Overflow,
    state: Mutex<State>,
    /// Another request ends next, or it is over.
    changed: Condvar,
}

struct State {
    line: Line<u64>,
    clients: HashMap<u64, oneshot::Sender<()>>,
    arrived: u64,
    is_over: bool,
}

impl State {
    /// Answers the requests that have ended by `now`, in order; each made room for the next.
    fn end(&mut self, now: u64) {
        while let Some(request) = self.line.ended(now) {
            if let Some(client) = self.clients.remove(&request) {
                // One that is gone does not hear of it.
                let _ = client.send(());
            }
        }
    }
}

impl Queue {
    fn new(shape: Shape, overflow: Overflow) -> Self {
        let state = State { line: Line::new(shape), clients: HashMap::new(), arrived: 0, is_over: false };
        Self { begun: Instant::now(), overflow, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Puts a request in line. Returns what hears of its end; none if the line is full.
    fn arrive(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state();
        let now = self.now_ns();
        state.end(now);
        let next = state.line.next_end();
        state.arrived += 1;
        let request = state.arrived;
        if !state.line.arrive(request, now) {
            return None;
        }
        let (client, ended) = oneshot::channel();
        state.clients.insert(request, client);
        if state.line.next_end() != next {
            self.changed.notify_one();
        }
        Some(ended)
    }

    /// Waits for the end of each request.
    fn end_in_time(&self) {
        let mut state = self.state();
        while !state.is_over {
            let now = self.now_ns();
            state.end(now);
            state = match state.line.next_end().map(|end| Duration::from_nanos(end.saturating_sub(now))) {
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<String>> {
        let is_head = request.method() == Method::HEAD;
        let mut body = request.into_body();
        while let Some(piece) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            piece.map_err(io::Error::other)?;
        }
        let status = match (self.arrive(), self.overflow) {
            (Some(ended), _) => {
                ended.await.map_err(io::Error::other)?;
                StatusCode::OK
            }
            (None, Overflow::Refuse) => StatusCode::SERVICE_UNAVAILABLE,
            (None, Overflow::Close) => return Err(io::Error::other("the line is full")),
            // The connection stays as it is, busy with a request that is never served.
            (None, Overflow::Drop) => pending().await,
        };
        let text = if is_head { "" } else { "{}" };
        let response = Response::builder().status(status).header(CONTENT_LENGTH, text.len());
        response.header("Content-Type", "application/json").body(text.to_owned()).map_err(io::Error::other)
    }
}

/// Accepts connections. While `most` are open, further ones wait in the kernel.
async fn accept(listener: TcpListener, queue: Arc<Queue>, most: usize) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("queue: {error}"),
    };
    let slots = Arc::new(Semaphore::new(most));
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&queue), slot))),
            Err(error) => {
                eprintln!("queue: failed to accept a connection: {error}");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Serves one connection, one request after the other.
async fn serve(stream: TcpStream, queue: Arc<Queue>, _slot: OwnedSemaphorePermit) {
    // A response is one write: without this its last segment could wait for the client's delayed ACK.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| Box::pin(Arc::clone(&queue).answer(request)));
    let mut connection = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .auto_date_header(false)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service);
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    // A socket closed with unread bytes resets the connection, and the client may lose the answer.
    let mut stream = connection.into_parts().io.into_inner();
    let _ = stream.shutdown().await;
    let mut rest = stream.take(REST_BYTES_MAX);
    let _ = tokio::time::timeout(REST_WITHIN, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
