//! The bundled service as a target: answers at once, on a free port, gone when the test is.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::program::holdup;

pub struct Service {
    child: Child,
    port: u16,
}

impl Service {
    /// One that works for a millisecond a request and needs no database.
    pub fn start() -> Self {
        Self::with(&["--work-ms=1", "--route=/="])
    }

    /// The order service.
    pub fn orders() -> Self {
        Self::with(&["--orders"])
    }

    /// One with these options, without a database.
    pub fn with(options: &[&str]) -> Self {
        let arguments = ["service", "--database=none", "--stop-on-stdin-eof"].iter().chain(options);
        let mut child = holdup(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("listen="));
        let port = address.and_then(|a| a.rsplit_once(':')?.1.parse().ok());
        Self { child, port: port.unwrap_or_else(|| panic!("the service said {line:?}")) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
