//! A server as many are underneath: a few threads, each busy with one connection from its
//! acceptance to its end, and behind them nothing but the kernel's accept queue. Its capacity is
//! threads divided by service time. Load beyond that fills the queue, and then the kernel drops
//! connections, which the server neither refuses nor accepts.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::StatusCode;

use crate::service::http::{NoRequest, Wire};
use crate::service::listener::{bind, own_address, readable, set_backlog};
use crate::service::{Options, ServiceError};

/// How long an accepted client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running blocking server.
pub struct Server {
    /// Its address.
    pub listen: SocketAddr,
    stopping: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds and serves with `workers` threads, which take `service_time` for a request, while up
    /// to `backlog` connections wait.
    ///
    /// # Errors
    ///
    /// If the address is not on loopback (and that was not allowed) or taken, or threads are
    /// refused.
    pub fn start(options: &Options, workers: u32, service_time: Duration, backlog: u32) -> Result<Self, ServiceError> {
        let listener = bind(options.listen, "--listen", options.allow_remote)?;
        set_backlog(&listener, backlog)?;
        let listen = own_address(&listener)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let listener = Arc::new(listener);
        let workers = (0..workers).map(|number| {
            let (listener, stopping) = (Arc::clone(&listener), Arc::clone(&stopping));
            thread::Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || work(&listener, service_time, &stopping))
                .map_err(|source| ServiceError::System { what: "start a thread", source })
        });
        let workers = workers.collect::<Result<_, _>>()?;
        Ok(Self { listen, stopping, workers })
    }

    /// Stops accepting, and waits for the workers to finish their requests.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        for worker in self.workers {
            let _ = worker.join();
        }
    }
}

fn work(listener: &TcpListener, service_time: Duration, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Relaxed) {
        if !readable(listener) {
            continue;
        }
        // Another worker may have been faster.
        let Ok((stream, _)) = listener.accept() else { continue };
        if stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PATIENCE))).is_err() {
            continue;
        }
        let mut wire = Wire::new(stream);
        match wire.read() {
            Ok(request) => {
                thread::sleep(service_time);
                let body = if request.method == "HEAD" { "" } else { "{}" };
                // The whole request has been read: closing at once loses nothing, and the worker is
                // free.
                let _ = wire.write(StatusCode::OK, "application/json", "", body, false);
            }
            Err(NoRequest::Refused(status, _)) => {
                if wire.write(status, "application/json", "", "{}", false).is_ok() {
                    wire.close();
                }
            }
            Err(NoRequest::Closed) => {}
        }
    }
}
