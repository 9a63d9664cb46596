//! The connections of a loop: which are open and free, which have no socket, and which have
//! something left to do.

use std::collections::VecDeque;
use std::io;

use crate::engine::connection::Connection;
use crate::engine::driver::Driver;
use crate::engine::plan::Plan;
use crate::sys::Epoll;

/// See the module.
pub(super) struct Pool {
    pub(super) epoll: Epoll,
    pub(super) connections: Vec<Connection>,
    /// Free slots of open connections with the connection's generation; stale ones are skipped.
    pub(super) idle: VecDeque<(u32, u32)>,
    /// Connections without a socket (open model).
    pub(super) vacant: Vec<u32>,
    /// Connections being made.
    pub(super) connecting: usize,
    /// Connections with something left to read, and HTTP/2 sessions with something to write.
    pub(super) more: Vec<u32>,
    pub(super) unflushed: Vec<u32>,
}

impl Pool {
    /// As many connections as `slots` need, without sockets. `is_shared` if any request may open any.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub(super) fn new(plan: &Plan<'_>, slots: usize, is_shared: bool) -> io::Result<Self> {
        let http = &plan.scenario.http;
        let streams = http.streams.max(1);
        let count = slots.div_ceil(streams as usize) as u32;
        let login = plan.scenario.target.sql.as_ref().map(|address| address.login());
        let connection = |index: u32| {
            let driver = Driver::new(plan.scenario, login.as_ref(), plan.manner.as_ref(), index * streams);
            Connection::new(driver, http.keep_alive)
        };
        Ok(Self {
            epoll: Epoll::new()?,
            connections: (0..count).map(connection).collect(),
            idle: VecDeque::with_capacity(slots),
            vacant: if is_shared { (0..count).rev().collect() } else { Vec::new() },
            connecting: 0,
            more: Vec::new(),
            unflushed: Vec::new(),
        })
    }
}
