//! Tells when a process is ready: a port accepts, a text was written, or a URL answers 200. It
//! checks repeatedly; the stage acts on the result.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::command::Ready;
use super::placeholder::Scope;
use super::process::Log;

/// Limit of a single check, so that an interruption is noticed soon.
const LOOK_WITHIN: Duration = Duration::from_millis(500);

/// Checks whether one process is ready.
pub(super) struct Watcher<'a> {
    ready: Ready,
    log: &'a Log,
    position: u64,
    /// The end of the output read so far, in which the text may have begun.
    seen: Vec<u8>,
}

impl<'a> Watcher<'a> {
    /// Watches for `ready`, with its placeholders filled in.
    ///
    /// # Errors
    /// The name of a process that has not been started.
    pub fn new(ready: &Ready, scope: &Scope, log: &'a Log) -> Result<Self, String> {
        let ready = match ready {
            Ready::Tcp(text) => Ready::Tcp(scope.fill(text)?),
            Ready::Stdout(text) => Ready::Stdout(scope.fill(text)?),
            Ready::Http(text) => Ready::Http(scope.fill(text)?),
        };
        Ok(Self { ready, log, position: 0, seen: Vec::new() })
    }

    /// Whether it is ready now.
    pub fn is_ready(&mut self) -> bool {
        match &self.ready {
            Ready::Tcp(port) => accepts(port),
            Ready::Http(url) => answers_200(url),
            Ready::Stdout(text) => {
                let (bytes, position) = self.log.read_from(self.position);
                self.position = position;
                self.seen.extend(bytes);
                let found = self.seen.windows(text.len().max(1)).any(|part| part == text.as_bytes());
                let keep = self.seen.len().saturating_sub(text.len());
                self.seen.drain(..keep);
                found
            }
        }
    }

    /// The awaited sign, in words.
    pub fn words(&self) -> String {
        match &self.ready {
            Ready::Tcp(port) => format!("a connection to {port}"),
            Ready::Stdout(text) => format!("\"{}\" in its output", text.trim()),
            Ready::Http(url) => format!("status 200 from {url}"),
        }
    }
}

/// Connects to `HOST:PORT`, or to a port of 127.0.0.1.
fn connect(target: &str) -> Option<TcpStream> {
    let address: SocketAddr = match target.parse::<u16>() {
        Ok(port) => ([127, 0, 0, 1], port).into(),
        Err(_) => target.to_socket_addrs().ok()?.next()?,
    };
    let stream = TcpStream::connect_timeout(&address, LOOK_WITHIN).ok()?;
    // On loopback a socket that asks for a free port may get the very port it connects to, and then
    // talks to itself.
    (stream.local_addr().ok()? != stream.peer_addr().ok()?).then_some(stream)
}

/// Whether `HOST:PORT`, or a port of 127.0.0.1, accepts connections.
pub fn accepts(target: &str) -> bool {
    connect(target).is_some()
}

/// Whether `url`, which begins with `http://`, answers 200. Redirects count as they are, and no proxy is asked.
pub fn answers_200(url: &str) -> bool {
    let config = ureq::Agent::config_builder().timeout_global(Some(LOOK_WITHIN)).max_redirects(0).proxy(None);
    let agent: ureq::Agent = config.max_redirects_will_error(false).http_status_as_error(false).build().into();
    agent.get(url).call().is_ok_and(|answer| answer.status() == 200)
}
