//! Listeners and their threads: one thread per client connection, and separate threads for the
//! admin side, so that metrics and health respond while every handler is stuck.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::StatusCode;

use crate::service::answer::Answer;
use crate::service::handler::Service;
use crate::service::http::{NoRequest, Request, Wire};
use crate::service::listener::{bind, own_address, readable};
use crate::service::pool::Pool;
use crate::service::{Options, ServiceError, process};

/// How long requests in progress may take after a stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stack of a connection's thread. It reads a head, runs a statement and writes, and there are
/// thousands of these threads.
const STACK_BYTES: usize = 256 * 1024;

/// A running service.
pub struct Server {
    /// Its address.
    pub listen: SocketAddr,
    /// Address of its metrics.
    pub admin: Option<SocketAddr>,
    service: Arc<Service>,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds, opens the database and begins to serve.
    ///
    /// # Errors
    ///
    /// If an address is not on loopback (and that was not allowed) or taken, or the database cannot
    /// be reached.
    pub fn start(options: &Options) -> Result<Self, ServiceError> {
        let listener = bind(options.listen, "--listen", options.allow_remote)?;
        let admin = options.admin.map(|address| bind(address, "--admin", options.allow_remote)).transpose()?;
        let service = Arc::new(Service::open(options)?);
        let stopping = Arc::new(AtomicBool::new(false));
        let mut server = Self {
            listen: own_address(&listener)?,
            admin: admin.as_ref().map(own_address).transpose()?,
            service: Arc::clone(&service),
            stopping: Arc::clone(&stopping),
            threads: Vec::new(),
        };
        let of_service = Arc::clone(&service);
        server.accept("accept", listener, options.max_connections, move |wire| serve(wire, &of_service))?;
        if let Some(admin) = admin {
            // Only a few scrapers connect; the bound limits the damage of a mistake.
            server.accept("admin", admin, 64, move |wire| serve_admin(wire, &service))?;
        }
        Ok(server)
    }

    fn accept(
        &mut self,
        name: &'static str,
        listener: TcpListener,
        connections_max: u32,
        serve: impl Fn(Wire) + Clone + Send + 'static,
    ) -> Result<(), ServiceError> {
        let stopping = Arc::clone(&self.stopping);
        let body = move || accept(name, &listener, connections_max, &serve, &stopping);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .map_err(|source| ServiceError::System { what: "start a thread", source })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Stops accepting, and gives requests in progress a moment to end.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        let deadline = Instant::now() + PATIENCE;
        while self.service.metrics.active_requests.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.service.tracing.finish();
    }
}

fn accept(
    name: &str,
    listener: &TcpListener,
    connections_max: u32,
    serve: &(impl Fn(Wire) + Clone + Send + 'static),
    stopping: &AtomicBool,
) {
    let open = Arc::new(AtomicU32::new(0));
    while !stopping.load(Ordering::Relaxed) {
        if open.load(Ordering::Relaxed) >= connections_max {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        if !readable(listener) {
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let place = ConnectionSlot::take(&open);
                let serve = serve.clone();
                let spawned =
                    thread::Builder::new().name(format!("{name}ed")).stack_size(STACK_BYTES).spawn(move || {
                        let _place = place;
                        if stream.set_nonblocking(false).is_ok() {
                            serve(Wire::new(stream));
                        }
                    });
                if let Err(error) = spawned {
                    eprintln!("{name}: failed to start a thread for a connection: {error}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Most likely out of file descriptors: trying again at once would only burn CPU.
                eprintln!("{name}: failed to accept a connection: {error}");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// One of the allowed connections, returned when it is dropped.
struct ConnectionSlot(Arc<AtomicU32>);

impl ConnectionSlot {
    fn take(open: &Arc<AtomicU32>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(mut wire: Wire, service: &Service) {
    let metrics = &service.metrics;
    loop {
        let (request, begun) = match wire.read() {
            Ok(request) => {
                let begun = request.begun;
                (Ok(request), begun)
            }
            Err(NoRequest::Closed) => return,
            Err(NoRequest::Refused(status, begun)) => (Err(status), begun),
        };
        metrics.active_requests.fetch_add(1, Ordering::Relaxed);
        let trace = request.as_ref().ok().and_then(|request| service.tracing.begin(request));
        let (mut answer, method, keep_alive) = match &request {
            Ok(request) => (service.answer(request, trace.as_ref()), known_method(request), request.keep_alive),
            Err(status) => {
                let body = format!("{{\"error\":\"{}\"}}", status.canonical_reason().unwrap_or_default());
                (Answer { body, ..Answer::empty(*status) }, "_OTHER", false)
            }
        };
        if method == "HEAD" {
            // The answer to a HEAD has no body; with one, the client would misread the next
            // response on this connection.
            answer.body.clear();
        }
        if let Some(trace) = &trace {
            answer.fields.push_str(&trace.response_field());
        }
        let written = wire.write(answer.status, answer.content_type, &answer.fields, &answer.body, keep_alive);
        let labels = format!(
            "http_route=\"{}\",http_request_method=\"{method}\",http_response_status_code=\"{}\"",
            answer.route,
            answer.status.as_u16()
        );
        metrics.request.observe(&labels, begun.elapsed());
        if let Some(trace) = trace {
            trace.end(&answer.route, answer.status.as_u16());
        }
        metrics.active_requests.fetch_sub(1, Ordering::Relaxed);
        if written.is_err() {
            return;
        }
        if !keep_alive {
            return wire.close();
        }
    }
}

/// The method as a label. OpenTelemetry uses `_OTHER` for unknown ones, so that clients cannot
/// create series.
fn known_method(request: &Request) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == request.method).unwrap_or("_OTHER")
}

fn serve_admin(mut wire: Wire, service: &Service) {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    loop {
        let request = match wire.read() {
            Ok(request) => request,
            Err(NoRequest::Closed) => return,
            Err(NoRequest::Refused(status, _)) => {
                let _ = wire.write(status, TEXT, "", status.canonical_reason().unwrap_or_default(), false);
                return wire.close();
            }
        };
        let (status, body) = match request.path.as_str() {
            "/metrics" => {
                let pool = service.pool.as_ref().map(Pool::snapshot);
                (StatusCode::OK, service.metrics.render(pool, process::usage()))
            }
            "/health" => (StatusCode::OK, "ok\n".to_owned()),
            _ => (StatusCode::NOT_FOUND, "there are /metrics and /health\n".to_owned()),
        };
        if wire.write(status, TEXT, "", &body, request.keep_alive).is_err() {
            return;
        }
        if !request.keep_alive {
            return wire.close();
        }
    }
}
