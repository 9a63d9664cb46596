//! An OpenSearch node on loopback that asks for an account.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{PASSWORD, PATIENCE, Process, free_port, kit, output};

/// The account that may read all.
pub const ACCOUNT: &str = "holdup";

/// The account that may not read settings of indices.
pub const HALF: &str = "half";

/// A running one.
pub struct OpenSearch {
    /// Its port of HTTP.
    pub port: u16,
    process: Option<Process>,
    folder: tempfile::TempDir,
}

impl OpenSearch {
    /// Starts it with these `settings`, each as `name=value`; none where it is not to be had.
    pub fn start(settings: &[&str]) -> Option<Self> {
        if let Err(why) = output(Command::new("sh").arg(kit("opensearch.sh")).arg("fetch")) {
            // Its jars come from another registry than the rest, so it may be missing with `CI` set, too.
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = Self { port: free_port(), process: None, folder };
        node.start_again(settings);
        Some(node)
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it where it was, and waits until it answers.
    pub fn start_again(&mut self, settings: &[&str]) {
        let folder = self.folder.path();
        let ports = [format!("http.port={}", self.port), format!("transport.port={}", free_port())];
        let mut command = Command::new("sh");
        command.arg(kit("opensearch.sh")).arg("serve").arg(folder).args(ports).args(settings);
        let mut process = Process::start(&mut command, &folder.join("log"), libc::SIGKILL);
        process
            .wait("answer", || self.say("GET", "/_cluster/health", "").is_some_and(|said| said.contains("\"status\"")));
        self.process = Some(process);
    }

    /// What it answers to a request of the administrator, head and body; none without a whole answer.
    pub fn say(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let login = STANDARD.encode(format!("admin:{PASSWORD}"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {login}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }
}
