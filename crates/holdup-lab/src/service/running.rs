//! The running service, of whichever kind.

use std::net::SocketAddr;

use crate::service::capacity::Kind;
use crate::service::{Options, ServiceError, blocking, queue, server};

/// See the module.
pub enum Running {
    /// Handlers with a pool.
    Handlers(server::Server),
    /// A queue of exact speed.
    Queue(queue::Server),
    /// Threads that block.
    Blocking(blocking::Server),
}

impl Running {
    /// Starts the service that `options` select.
    ///
    /// # Errors
    ///
    /// If options contradict each other, an address is not available, or the database cannot be
    /// reached.
    pub fn start(options: &Options) -> Result<Self, ServiceError> {
        Ok(match Kind::from_options(options)? {
            Kind::Handlers => Self::Handlers(server::Server::start(options)?),
            Kind::Queue(shape, overflow) => Self::Queue(queue::Server::start(options, shape, overflow)?),
            Kind::Blocking { workers, service_time, backlog } => {
                Self::Blocking(blocking::Server::start(options, workers, service_time, backlog)?)
            }
        })
    }

    /// Its address.
    pub fn listen(&self) -> SocketAddr {
        match self {
            Self::Handlers(server) => server.listen,
            Self::Queue(server) => server.listen,
            Self::Blocking(server) => server.listen,
        }
    }

    /// Address of its metrics, if it has any.
    pub fn admin(&self) -> Option<SocketAddr> {
        match self {
            Self::Handlers(server) => server.admin,
            Self::Queue(_) | Self::Blocking(_) => None,
        }
    }

    /// Ends it.
    pub fn stop(self) {
        match self {
            Self::Handlers(server) => server.stop(),
            Self::Queue(server) => server.stop(),
            Self::Blocking(server) => server.stop(),
        }
    }
}
