//! The running service, of whichever kind.

use std::net::SocketAddr;

use crate::service::queue::Shape;
use crate::service::{Options, ServiceError, blocking, queue, server};

/// See the module.
pub struct Running {
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    stop: Box<dyn FnOnce()>,
}

impl Running {
    /// Starts the service that `options` select: routes with SQL or the order service, a queue before
    /// servers of exact speed, or threads that block.
    ///
    /// # Errors
    ///
    /// If options contradict each other, an address is not available, or the database cannot be
    /// reached.
    pub fn start(options: &Options) -> Result<Self, ServiceError> {
        let capacity = &options.capacity;
        Ok(match (capacity.servers, capacity.blocking_workers, capacity.service_time) {
            (Some(servers), _, Some(time)) => {
                let shape = Shape {
                    servers: servers as usize,
                    service_ns: time.as_nanos() as u64,
                    room: capacity.room.map_or(usize::MAX, |room| room as usize),
                    contention: capacity.contention,
                    coherency: capacity.coherency,
                };
                let server = queue::Server::start(options, shape, capacity.overflow)?;
                Self { listen: server.listen, admin: None, stop: Box::new(|| server.stop()) }
            }
            (None, Some(workers), Some(time)) => {
                let server = blocking::Server::start(options, workers, time, capacity.backlog)?;
                Self { listen: server.listen, admin: None, stop: Box::new(|| server.stop()) }
            }
            (_, _, Some(_)) => {
                let why = "it needs --servers N or --blocking-workers N as well".to_owned();
                return Err(ServiceError::BadOption { option: "--service-time", why });
            }
            _ => {
                let server = server::Server::start(options)?;
                Self { listen: server.listen, admin: server.admin, stop: Box::new(|| server.stop()) }
            }
        })
    }

    /// Its address.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Address of its metrics, if it has any.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Ends it.
    pub fn stop(self) {
        (self.stop)();
    }
}
